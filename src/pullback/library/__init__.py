"""`torch.library`: ops of your own, with a name in `torch.ops`, a schema, a derivative and rules for batches and modes.

@torch.library.custom_op("my::scale", mutates_args=())
def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by

scale.register_autograd(lambda ctx, grad: (grad * ctx.by, None), setup_context=...)
torch.ops.my.scale(x, 2.0)

schema.py, infer.py, binding.py ..... what an op takes and gives
overloads.py, aten.py ............... torch.ops
libraries.py, custom_ops.py ......... defining ops
calls.py, generated.py .............. what a call does
dispatch.py, names.py ............... modes that are told of every op
"""

from pullback.library.custom_ops import CustomOpDef as CustomOpDef
from pullback.library.custom_ops import custom_op as custom_op
from pullback.library.dispatch import prepare as prepare
from pullback.library.infer import infer_schema as infer_schema
from pullback.library.libraries import Library as Library
from pullback.library.libraries import _scoped_library as _scoped_library
from pullback.library.libraries import define as define
from pullback.library.libraries import fallthrough_kernel as fallthrough_kernel
from pullback.library.libraries import get_ctx as get_ctx
from pullback.library.libraries import get_kernel as get_kernel
from pullback.library.libraries import impl as impl
from pullback.library.libraries import impl_abstract as impl_abstract
from pullback.library.libraries import register_autocast as register_autocast
from pullback.library.libraries import register_autograd as register_autograd
from pullback.library.libraries import register_fake as register_fake
from pullback.library.libraries import register_kernel as register_kernel
from pullback.library.libraries import register_torch_dispatch as register_torch_dispatch
from pullback.library.libraries import register_vmap as register_vmap
from pullback.library.libraries import triton_op as triton_op
from pullback.library.libraries import wrap_triton as wrap_triton
from pullback.library.opcheck import opcheck as opcheck
from pullback.library.overloads import OpOverload as OpOverload
from pullback.library.overloads import ops as ops
from pullback.library.tags import Tag as Tag
from pullback.library.unlisted import told_too as told_too

__all__ = [
    "Library",
    "impl",
    "define",
    "fallthrough_kernel",
    "impl_abstract",
    "register_autocast",
    "register_fake",
    "register_torch_dispatch",
    "register_vmap",
    "get_ctx",
    "get_kernel",
    "custom_op",
    "triton_op",
    "wrap_triton",
    "infer_schema",
]
