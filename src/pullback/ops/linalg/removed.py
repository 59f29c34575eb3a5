"""Names torch has removed: each still says what to use instead."""

from __future__ import annotations

from typing import Any, NoReturn

from pullback._op.declare import Publication, publish

REMOVED = {
    "solve": (
        "This function was deprecated since version 1.9 and is now removed. `torch.solve` is deprecated in favor of "
        "`torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and does not return the LU "
        "factorization.\n\nTo get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` or "
        "`torch.lu_unpack`.\nX = torch.solve(B, A).solution should be replaced with:\nX = torch.linalg.solve(A, B)"
    ),
    "eig": (
        "This function was deprecated since version 1.9 and is now removed. `torch.linalg.eig` returns complex tensors "
        "of dtype `cfloat` or `cdouble` rather than real tensors mimicking complex tensors.\n\nL, _ = torch.eig(A) "
        "should be replaced with:\nL_complex = torch.linalg.eigvals(A)\n\nand\n\nL, V = torch.eig(A, eigenvectors=True)"
        " should be replaced with:\nL_complex, V_complex = torch.linalg.eig(A)"
    ),
    "symeig": (
        "This function was deprecated since version 1.9 and is now removed. The default behavior has changed from "
        "using the upper triangular portion of the matrix by default to using the lower triangular portion.\n\nL, _ = "
        "torch.symeig(A, upper=upper) should be replaced with:\nL = torch.linalg.eigvalsh(A, UPLO='U' if upper else "
        "'L')\n\nand\n\nL, V = torch.symeig(A, eigenvectors=True) should be replaced with:\nL, V = torch.linalg.eigh("
        "A, UPLO='U' if upper else 'L')"
    ),
    "matrix_rank": (
        "This function was deprecated since version 1.9 and is now removed.\nPlease use the `torch.linalg.matrix_rank` "
        "function instead. The parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'."
    ),
    "lstsq": (
        "This function was deprecated since version 1.9 and is now removed. `torch.lstsq` is deprecated in favor of "
        "`torch.linalg.lstsq`.\n`torch.linalg.lstsq` has reversed arguments and does not return the QR decomposition "
        "in the returned tuple (although it returns other information about the problem).\n\nTo get the QR "
        "decomposition consider using `torch.linalg.qr`.\n\nThe returned solution in `torch.lstsq` stored the "
        "residuals of the solution in the last m - n columns of the returned value whenever m > n. In "
        "torch.linalg.lstsq, the residuals are in the field 'residuals' of the returned named tuple.\n\nThe unpacking "
        "of the solution, as in\nX, _ = "
        "torch.lstsq(B, A).solution[:A.size(1)]\nshould be replaced with:\nX = torch.linalg.lstsq(A, B).solution"
    ),
}


def removed(name: str, text: str) -> Any:
    """A function that only says what took its place."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(text)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Removed: `pullback.{name}` raises an error that names its replacement."
    return refuse


for _name, _text in REMOVED.items():
    publish(_name, removed(_name, _text), Publication(method=_name != "matrix_rank"))
