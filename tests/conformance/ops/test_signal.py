"""The short-time Fourier transform, its inverse, and the windows they use."""

import pytest

from tests.conformance.ops.expressions import agree

W = "window=torch.hann_window(8, dtype=f64)"
STFT = [
    f"torch.stft(x(40), 8, return_complex=True, {W})", f"torch.stft(x(2, 40), 8, 3, return_complex=True, {W})",
    f"torch.stft(x(40), 8, return_complex=True, center=False, {W})",
    f"torch.stft(x(40), 8, return_complex=True, normalized=True, onesided=False, {W})",
    "torch.stft(x(40), 8, win_length=5, return_complex=True, window=x(5))",
    "torch.stft(x(40), 8, win_length=5, return_complex=True, center=False, window=x(5), align_to_window=True)",
    f'torch.stft(x(40), 8, return_complex=True, pad_mode="constant", {W})', f"torch.stft(x(40, dtype=c128), 8, {W})",
    f"x(40).stft(8, 2, 8, return_complex=True, {W})",
    "torch.stft(x(40, grad=False).float(), 8, return_complex=True, window=torch.ones(8))",
    f"torch.stft(x(40), 8, {W})", f"torch.stft(x(40, grad=False).long(), 8, return_complex=True, center=False, {W})",
    f"torch.stft(x(1, 2, 20), 8, return_complex=True, center=False, {W})",
    f"torch.stft(x(20), 30, return_complex=True, center=False, {W})",
    f"torch.stft(x(20), 8, -1, return_complex=True, {W})",
    f"torch.stft(x(20), 8, 2, 9, return_complex=True, {W})", f"torch.stft(x(20), 8, 2, 4, return_complex=True, {W})",
    "torch.stft(x(20), 8, window=torch.ones(8) + 0j, onesided=True)", f"torch.stft(x(20), 0, return_complex=True, {W})",
    f"torch.stft(x(20), 8, return_complex=True, align_to_window=True, {W})",
    f"torch.stft(x(3), 8, return_complex=True, {W})",
]  # fmt: skip
Z = "x(5, 9, dtype=c128)"
O = "window=torch.ones(8, dtype=f64)"
ISTFT = [
    f"torch.istft({Z}, 8, {O})", f"torch.istft(x(2, 5, 9, dtype=c128), 8, 3, {O})",
    f"torch.istft({Z}, 8, length=12, {O})",
    f"torch.istft({Z}, 8, {W})", f"torch.istft({Z}, 8, center=False, {O})",
    f"torch.istft({Z}, 8, normalized=True, {O})",
    f"torch.istft(x(8, 9, dtype=c128), 8, return_complex=True, {O})", f"torch.istft(x(8, 9, dtype=c128), 8, {O})",
    f"torch.istft({Z}, 8, win_length=6, window=x(6) + 3)", f"{Z}.istft(8, 2, 8, {O})", f"torch.istft(x(20), 8, {O})",
    f"torch.istft({Z}[:0], 8, {O})", f"torch.istft({Z}[None, None], 8, {O})", f"torch.istft({Z}, 12, {O})",
    f"torch.istft({Z}, 8, onesided=False, {O})", f"torch.istft({Z}, 8, 9, {O})", f"torch.istft({Z}, 8, 2, 9, {O})",
    f"torch.istft({Z}, 8, window=torch.ones(3))", f"torch.istft({Z}, 8, return_complex=True, {O})",
    f"torch.istft({Z}, 8, window=torch.ones(8) + 0j)", f"torch.istft({Z}, 8, window=torch.zeros(8))",
    f"torch.istft({Z}, 8, center=False, {W})",
]  # fmt: skip


@pytest.mark.parametrize("expression", STFT)
def test_stft_is_torchs(expression):
    agree(expression)


@pytest.mark.parametrize("expression", ISTFT)
def test_istft_is_torchs(expression):
    agree(expression)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize(
    "arguments",
    [
        "5", "6, False", "1", "0", "-1", "2.5", "True", "5, dtype=torch.int32", "5, dtype=f64",
        "5, dtype=torch.complex64",
        "5, requires_grad=True", "17, periodic=False",
    ],
)  # fmt: skip
def test_a_window_is_torchs(name, arguments):
    agree(f"torch.{name}_window({arguments})")


@pytest.mark.parametrize(
    "expression",
    [
        "torch.hamming_window(5, True, 0.3, 0.7)", "torch.hamming_window(5, True, alpha=0.3)",
        "torch.kaiser_window(5, True, 3.0)", "torch.kaiser_window(6, False, beta=0.0)",
    ],
)  # fmt: skip
def test_the_parameters_of_a_window_are_torchs(expression):
    agree(expression)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("bartlett", ""), ("blackman", ""), ("cosine", ""), ("exponential", ", tau=2.0"), ("gaussian", ", std=0.7"),
        ("general_cosine", ", a=[0.5, 0.3, 0.2]"), ("general_hamming", ", alpha=0.4"), ("hamming", ""), ("hann", ""),
        ("kaiser", ", beta=5.0"), ("nuttall", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "arguments",
    [
        "7",
        "8, sym=False",
        "1",
        "1, sym=False",
        "0",
        "-2",
        "5, dtype=f64",
        "4, dtype=torch.int64",
    ],
)
def test_a_window_of_torch_signal_is_torchs(name, parameter, arguments):
    agree(f"torch.signal.windows.{name}({arguments}{parameter})")


@pytest.mark.parametrize(
    "expression",
    [
        "torch.signal.windows.exponential(4, tau=-1.0)", "torch.signal.windows.exponential(4, center=1)",
        "torch.signal.windows.exponential(4, center=1, sym=False)", "torch.signal.windows.gaussian(4, std=0)",
        "torch.signal.windows.kaiser(4, beta=-1)", "torch.signal.windows.general_cosine(4, a=0.5)",
        "torch.signal.windows.general_cosine(4, a=[])", "torch.signal.windows.hann(4, layout=torch.sparse_coo)",
    ],
)  # fmt: skip
def test_wrong_parameters_of_a_window_raise_torchs_errors(expression):
    agree(expression)


def test_a_window_of_torch_signal_may_require_gradients():
    agree("torch.signal.windows.hann(4, requires_grad=True).requires_grad")
