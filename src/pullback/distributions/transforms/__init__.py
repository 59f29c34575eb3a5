"""Transforms: differentiable maps of events, with their inverses and the logarithms of their Jacobians."""

from pullback.distributions.transforms.base import ComposeTransform as ComposeTransform
from pullback.distributions.transforms.base import IndependentTransform as IndependentTransform
from pullback.distributions.transforms.base import ReshapeTransform as ReshapeTransform
from pullback.distributions.transforms.base import Transform as Transform
from pullback.distributions.transforms.base import _InverseTransform as _InverseTransform
from pullback.distributions.transforms.base import identity_transform as identity_transform
from pullback.distributions.transforms.elementwise import AbsTransform as AbsTransform
from pullback.distributions.transforms.elementwise import AffineTransform as AffineTransform
from pullback.distributions.transforms.elementwise import (
    CumulativeDistributionTransform as CumulativeDistributionTransform,
)
from pullback.distributions.transforms.elementwise import ExpTransform as ExpTransform
from pullback.distributions.transforms.elementwise import PowerTransform as PowerTransform
from pullback.distributions.transforms.elementwise import SigmoidTransform as SigmoidTransform
from pullback.distributions.transforms.elementwise import SoftplusTransform as SoftplusTransform
from pullback.distributions.transforms.elementwise import TanhTransform as TanhTransform
from pullback.distributions.transforms.parts import CatTransform as CatTransform
from pullback.distributions.transforms.parts import StackTransform as StackTransform
from pullback.distributions.transforms.vectors import CorrCholeskyTransform as CorrCholeskyTransform
from pullback.distributions.transforms.vectors import LowerCholeskyTransform as LowerCholeskyTransform
from pullback.distributions.transforms.vectors import PositiveDefiniteTransform as PositiveDefiniteTransform
from pullback.distributions.transforms.vectors import SoftmaxTransform as SoftmaxTransform
from pullback.distributions.transforms.vectors import StickBreakingTransform as StickBreakingTransform

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
