"""Why rows of the CUDA device are over their budgets, by the beginnings of their names."""

REASONS: dict[str, str] = {}


def reason(name: str) -> str:
    """The reason that is given for a row; nothing if there is none."""
    return next((text for start, text in REASONS.items() if name.startswith(start)), "")
