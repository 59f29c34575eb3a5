"""AdaptiveLogSoftmaxWithLoss: frequent classes in a short list, rare ones in clusters with smaller layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pullback
from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.container import ModuleList, Sequential
from pullback.nn.modules.linear import Linear
from pullback.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean of their negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over very many classes, sorted by frequency."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        check_cutoffs(cutoffs, n_classes)
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, device=device, dtype=dtype),
                    Linear(width, high - low, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for narrow, wide in self.tail:
            narrow.reset_parameters()
            wide.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probability of the targets and the loss, computing only the clusters that are needed."""
        check_target(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        output, head_column = self._in_clusters(input, target)
        of_head = F.log_softmax(self.head(input), dim=1)
        output += of_head.gather(1, head_column.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _in_clusters(self, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The log-probability of each target within its cluster, and its column in the head."""
        output = input.new_zeros(target.size(0))
        head_column = target.new_empty(target.size(0))
        found = 0
        for i, (low, high) in enumerate(pairwise([0, *self.cutoffs])):
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze()
            if rows.numel() == 0:
                continue
            if i == 0:
                head_column.index_copy_(0, rows, target[inside])
            else:
                head_column.index_fill_(0, rows, self.shortlist_size + i - 1)
                of_cluster = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
                chosen = of_cluster.gather(1, (target[inside] - low).unsqueeze(1))
                output.index_copy_(0, rows, chosen.squeeze(1))
            found += rows.numel()
        if found != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        return output, head_column

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """The log-probability of every class."""
        out = input.new_empty((head_output.size(0), self.n_classes))
        of_head = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = of_head[:, : self.shortlist_size]
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            of_cluster = F.log_softmax(self.tail[i](input), dim=1)
            out[:, low:high] = of_cluster + of_head[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probability of every class."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each example."""
        head_output = self.head(input)
        output = pullback.argmax(head_output, dim=1)
        rare = output >= self.shortlist_size
        if not rare.any():
            return output
        if rare.all():
            return pullback.argmax(self._get_full_log_prob(input, head_output), dim=1)
        output[rare] = pullback.argmax(self._get_full_log_prob(input[rare], head_output[rare]), dim=1)
        return output


def check_cutoffs(cutoffs: list[int], n_classes: int) -> None:
    """Refuse cutoffs that do not cut the classes into clusters."""
    if len(cutoffs) == 0:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    ordered = all(a < b for a, b in pairwise(cutoffs))
    if not ordered or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
            "is between 1 and n_classes-1"
        )


def check_target(input: Tensor, target: Tensor) -> None:
    """Refuse an input and a target that do not belong together."""
    if target.dim() == 1:
        if input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != 2:
            raise RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with size {input.size()}")
    elif target.dim() == 0:
        if input.dim() != 1:
            raise RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with size {input.size()}")
    else:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
