"""The functions of `functorch`: those of torch.func, with a warning that says where they are now."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from pullback import func
from pullback.compat.functorch import make_functional as modules


def get_warning(api: str, new_api: str | None = None, replace_newlines: bool = False) -> str:
    """What is said of a function, in lines or in one."""
    text = (
        "We've integrated functorch into PyTorch. As the final step of the \n"
        f"integration, `functorch.{api}` is deprecated as of PyTorch \n"
        "2.0 and will be deleted in a future version of PyTorch >= 2.3. \n"
        f"Please use `{new_api or f'torch.func.{api}'}` instead; see the PyTorch 2.0 release notes \n"
        "and/or the `torch.func` migration guide for more details \n"
        "https://pytorch.org/docs/main/func.migrating.html"
    )
    return text.replace("\n", "") if replace_newlines else text


def deprecated(function: Callable[..., Any], new_api: str | None = None) -> Any:
    """The function with its warning, on the line that calls it."""
    text = get_warning(function.__name__, new_api, replace_newlines=True)

    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    warned.__module__, warned.__signature__ = __name__, inspect.signature(function)  # type: ignore[attr-defined]
    return warned


vmap = deprecated(func.vmap, "torch.vmap")
grad = deprecated(func.grad)
grad_and_value = deprecated(func.grad_and_value)
vjp = deprecated(func.vjp)
jvp = deprecated(func.jvp)
jacrev = deprecated(func.jacrev)
jacfwd = deprecated(func.jacfwd)
hessian = deprecated(func.hessian)
functionalize = deprecated(func.functionalize)
make_functional = deprecated(modules.make_functional, "torch.func.functional_call")
make_functional_with_buffers = deprecated(modules.make_functional_with_buffers, "torch.func.functional_call")
combine_state_for_ensemble = deprecated(modules.combine_state_for_ensemble, "torch.func.stack_module_state")
