"""Which torch this library follows, under the names programs ask for."""

__version__ = "2.13.0+pullback"
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "unknown"
