"""SummaryWriter: the same calls on torch and on pullback write the same event files."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import attempt, same

pytest.importorskip("tensorboard", reason="event files are written through the package tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event

pytestmark = pytest.mark.filterwarnings("ignore")  # those of tensorboard and of what it imports


def home(torch, name=""):
    return importlib.import_module(f"{torch.__name__}.utils.tensorboard{name}")


def events(folder):
    """What the files of a folder hold, and the other files: by the path, without times and names of computers."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "tfevents" in name:
            parts = [Event.FromString(record) for record in RawEventFileLoader(str(path)).Load()]
            for part in parts:
                part.ClearField("source_metadata")
                part.wall_time = round(part.wall_time) if part.wall_time < 100 else 100
            found.setdefault(str(Path(name).parent), []).extend([repr(part) for part in parts])
        elif path.is_file():
            found[name] = path.read_bytes().decode("latin1")
    return found


def image(torch, *shape):
    return (torch.arange(float(np.prod(shape))) / np.prod(shape)).reshape(shape)


def floats(torch, **options):
    return torch.tensor([-3.0, 0.0, 1e-13, 0.5, 0.5, 2.0, 1e21], **options)


GIVEN = dict(global_step=3, walltime=7.0)
CALLS = {
    "a number": lambda w, torch: w.add_scalar("a/b", 1.5, **GIVEN),
    "a tensor of one element": lambda w, torch: w.add_scalar("a", torch.tensor([[2.5]], requires_grad=True), 1),
    "a number of low precision": lambda w, torch: w.add_scalar("a", torch.tensor(0.1, dtype=torch.bfloat16)),
    "a number of numpy": lambda w, torch: w.add_scalar("a", np.float64(0.1), np.int64(4)),
    "a number in the new style": lambda w, torch: w.add_scalar("a", 0.1, new_style=True, **GIVEN),
    "a precise number": lambda w, torch: w.add_scalar("a", 0.1, new_style=True, double_precision=True),
    "several numbers": lambda w, torch: w.add_scalars("run/x", {"one": 1, "two": torch.tensor(2.0)}, **GIVEN),
    "more numbers than one": lambda w, torch: w.add_scalar("a", torch.ones(2)),
    "a text as a number": lambda w, torch: w.add_scalar("a", "x"),
    "a list as a number": lambda w, torch: w.add_scalar("a", [1.0]),
    "a histogram": lambda w, torch: w.add_histogram("h", floats(torch), **GIVEN),
    "a histogram of integers": lambda w, torch: w.add_histogram("h", torch.arange(6).reshape(2, 3)),
    "a histogram of numpy": lambda w, torch: w.add_histogram("h", np.linspace(-1, 1, 50), bins="auto"),
    "a histogram of few bins": lambda w, torch: w.add_histogram("h", torch.arange(100.0), bins=50, max_bins=7),
    "a histogram of limits": lambda w, torch: w.add_histogram("h", torch.arange(9.0), bins=[0.0, 2.0, 7.0, 9.0]),
    "a histogram of nothing": lambda w, torch: w.add_histogram("h", torch.ones(0)),
    "a histogram of what is far away": lambda w, torch: w.add_histogram("h", torch.full((2,), 1e30)),
    "a raw histogram": lambda w, torch: w.add_histogram_raw("h", 0, 2, 3, 3.0, 5.0, [1, 2], [1, 2], **GIVEN),
    "a wrong raw histogram": lambda w, torch: w.add_histogram_raw("h", 0, 2, 3, 3.0, 5.0, [1, 2], [1]),
    "an image": lambda w, torch: w.add_image("i", image(torch, 3, 4, 5), **GIVEN),
    "a gray image": lambda w, torch: w.add_image("i", image(torch, 1, 4, 5)),
    "a flat image": lambda w, torch: w.add_image("i", image(torch, 4, 5), dataformats="HW"),
    "an image of bytes": lambda w, torch: w.add_image("i", (image(torch, 4, 5, 3) * 255).byte(), dataformats="HWC"),
    "an image out of range": lambda w, torch: w.add_image("i", image(torch, 4, 5, 3) * 3 - 1, dataformats="hwc"),
    "an image of other names": lambda w, torch: w.add_image("i", image(torch, 4, 5), dataformats="CHW"),
    "an image of equal names": lambda w, torch: w.add_image("i", image(torch, 4, 5), dataformats="HH"),
    "images": lambda w, torch: w.add_images("i", image(torch, 10, 3, 4, 5), **GIVEN),
    "gray images": lambda w, torch: w.add_images("i", image(torch, 3, 4, 5, 1).double(), dataformats="NHWC"),
    "images of two colors": lambda w, torch: w.add_images("i", image(torch, 3, 2, 4, 5)),
    "an image with boxes": lambda w, torch: w.add_image_with_boxes(
        "i", image(torch, 3, 40, 50), torch.tensor([[2.0, 3.0, 20.0, 30.0], [1.0, 1.0, 9.0, 39.0]]), **GIVEN
    ),
    "boxes with labels": lambda w, torch: w.add_image_with_boxes(
        "i", image(torch, 3, 40, 50), torch.tensor([[2, 3, 40, 30], [1, 1, 9, 39]]), rescale=2, labels=["cat", ""]
    ),
    "a box with a label": lambda w, torch: w.add_image_with_boxes(
        "i", image(torch, 40, 50, 3), np.array([[2, 3, 40, 30]]), dataformats="HWC", labels="cat"
    ),
    "boxes with too few labels": lambda w, torch: w.add_image_with_boxes(
        "i", image(torch, 3, 40, 50), torch.tensor([[2, 3, 40, 30], [1, 1, 9, 39]]), labels=["cat"]
    ),
    "a sound": lambda w, torch: w.add_audio("s", image(torch, 1, 50) * 2 - 1, sample_rate=8000, **GIVEN),
    "a loud sound": lambda w, torch: w.add_audio("s", image(torch, 50) * 4 - 2),
    "sounds": lambda w, torch: w.add_audio("s", image(torch, 2, 50)),
    "a text": lambda w, torch: w.add_text("t", "größer **als**", **GIVEN),
    "a curve": lambda w, torch: w.add_pr_curve(
        "c", torch.tensor([1, 0, 1, 1, 0]), torch.tensor([0.9, 0.2, 0.4, 0.8, 0.7]), **GIVEN
    ),
    "a short curve": lambda w, torch: w.add_pr_curve(
        "c", np.array([1, 0, 1]), torch.tensor([0.9, 0.2, 0.4]), num_thresholds=5, weights=np.array([1.0, 2.0, 0.5])
    ),
    "a raw curve": lambda w, torch: w.add_pr_curve_raw("c", [2, 1], [1, 0], [0, 1], [0, 1], [0.6, 1], [1, 0.5], 3, 2),
    "a long raw curve": lambda w, torch: w.add_pr_curve_raw("c", *[np.ones(200)] * 6, num_thresholds=200),
    "charts": lambda w, torch: w.add_custom_scalars(
        {"a": {"b": ["Multiline", ["x", "y"]], "c": ["Margin", ["x", "y", "z"]]}, "d": {"e": ["Multiline", []]}}
    ),
    "lines": lambda w, torch: w.add_custom_scalars_multilinechart(["x", "y"], title="lines"),
    "limits": lambda w, torch: w.add_custom_scalars_marginchart(["x", "y", "z"], "a"),
    "too few limits": lambda w, torch: w.add_custom_scalars_marginchart(["x", "y"]),
    "too few limits of charts": lambda w, torch: w.add_custom_scalars({"a": {"c": ["Margin", ["x", "y"]]}}),
    "hyperparameters": lambda w, torch: w.add_hparams(
        {"lr": 0.1, "size": 3, "name": "adam", "fast": True, "none": None, "t": torch.tensor([0.5])},
        {"loss": 0.25, "m": torch.tensor(1.0)},
        {"lr": [0.1, 0.2], "name": ["adam", "sgd"], "fast": [True, False], "size": [1, 2, 3]},
        "run",
        5,
    ),
    "a list as hyperparameters": lambda w, torch: w.add_hparams([1], {}),
    "a list as a hyperparameter": lambda w, torch: w.add_hparams({"a": [1]}, {}),
    "hyperparameters of another kind": lambda w, torch: w.add_hparams({"a": 1}, {}, {"a": ["x"]}),
    "hyperparameters nobody knows": lambda w, torch: w.add_hparams({"a": 1}, {}, {"b": [1]}),
    "hyperparameters in a list": lambda w, torch: w.add_hparams({"a": 1}, {}, [1]),
    "a mesh": lambda w, torch: w.add_mesh(
        "m",
        torch.arange(12.0).reshape(1, 4, 3),
        torch.tensor([[[255, 0, 0]] * 4]),
        torch.tensor([[[0, 2, 3], [0, 3, 1]]]),
        {"camera": {"near": 1}},
        **GIVEN,
    ),
    "a cloud": lambda w, torch: w.add_mesh("m", torch.arange(12.0).reshape(1, 4, 3)),
    "points": lambda w, torch: w.add_embedding(
        image(torch, 5, 3), ["a", 1, "c", "d", "e"], image(torch, 5, 3, 4, 4), 2, "of/a\\tag%"
    ),
    "points with headers": lambda w, torch: w.add_embedding(
        image(torch, 2, 3), [["a", 1], ["b", 2]], metadata_header=["name", "number"]
    ),
    "points twice": lambda w, torch: [w.add_embedding(np.ones((2, 3))) for _ in range(2)],
    "points with too few labels": lambda w, torch: w.add_embedding(image(torch, 2, 3), ["a"]),
    "points with too few images": lambda w, torch: w.add_embedding(
        image(torch, 2, 3), label_img=image(torch, 1, 3, 4, 4)
    ),
    "points with too few headers": lambda w, torch: w.add_embedding(
        image(torch, 2, 3), [["a", 1], ["b", 2]], metadata_header=["name"]
    ),
    "one point": lambda w, torch: w.add_embedding(image(torch, 3)),
    "tensors": lambda w, torch: [
        w.add_tensor(f"{dtype}", torch.tensor([[0.0, 1.0, 3.0]]).to(getattr(torch, dtype)), 1, 2.0)
        for dtype in ("float16", "bfloat16", "float32", "float64", "uint8", "int32", "int64", "bool", "complex64")
    ],
    "a tensor of a dtype files have not": lambda w, torch: w.add_tensor("t", torch.ones(2, dtype=torch.uint16)),
    "a tensor of int8": lambda w, torch: w.add_tensor("t", torch.ones(2, dtype=torch.int8)),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_added_is_in_the_files_as_torch_writes_it(call, tmp_path):
    def program(torch):
        folder = tmp_path / torch.__name__
        with home(torch).SummaryWriter(str(folder)) as writer:
            out = attempt(lambda: CALLS[call](writer, torch))
        return out, events(folder)

    same(program)


def test_figures_are_added_as_images(tmp_path):
    figures = pytest.importorskip("matplotlib.figure")
    pytest.importorskip("matplotlib.pyplot").switch_backend("Agg")

    def drawn():
        figure = figures.Figure(figsize=(1, 1))
        figure.subplots().plot([1, 2, 1])
        return figure

    def program(torch):
        with home(torch).SummaryWriter(tmp_path / torch.__name__) as writer:
            writer.add_figure("f", drawn(), 1)
            writer.add_figure("g", [drawn(), drawn()], close=False)
        return events(tmp_path / torch.__name__)

    same(program)


def test_videos_are_side_by_side_and_need_moviepy(tmp_path, capsys):
    video = np.random.default_rng(0).random((3, 2, 3, 4, 5))

    def program(torch):
        prepared = home(torch, "._utils")._prepare_video
        with home(torch).SummaryWriter(tmp_path / torch.__name__) as writer:
            said = attempt(lambda: writer.add_video("v", torch.tensor(video), 1))
        bytes = prepared((video * 255).astype(np.uint8))
        return prepared(video).tolist(), prepared(video[:2]).shape, bytes.tolist(), said, capsys.readouterr().out

    same(program)


def test_files_have_the_names_and_the_beginning_they_are_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def program(torch):
        with home(torch).SummaryWriter(comment="_x", purge_step=7, filename_suffix=".end", flush_secs=1) as writer:
            writer.add_scalar("a", 1, 7)
        logged, (path,) = writer.get_logdir(), Path("runs").iterdir()
        found = (
            events(path),
            path.name.endswith("_x"),
            Path(logged) == path,
            all(file.name.endswith(".end") for file in path.iterdir()),
        )
        path.rename(f"runs_{torch.__name__}")
        return found, writer.default_bins, sorted(set(vars(writer)) - {"_projector_config"})

    same(program)


def test_a_closed_writer_begins_a_new_file_and_one_that_flushes_can_be_read(tmp_path):
    def program(torch):
        folder = tmp_path / torch.__name__
        writer = home(torch).SummaryWriter(folder)
        writer.add_scalar("a", 1, 1)
        writer.flush()
        early = EventAccumulator(str(folder)).Reload().Scalars("a")[0][1:]
        writer.close()
        writer.close()
        writer.flush()
        writer.add_scalar("a", 2, 2)
        writer.close()
        return early, [part for part in events(folder)["."] if "simple_value" in part]

    same(program)


def test_a_file_writer_stands_alone(tmp_path):
    def program(torch):
        writer = home(torch).FileWriter(tmp_path / torch.__name__, max_queue=1, filename_suffix=".x")
        writer.add_summary(home(torch, ".summary").scalar("a", 2), "4", 5.0)
        writer.close()
        writer.reopen()
        writer.close()
        return events(writer.get_logdir()), hasattr(home(torch), "RecordWriter")

    same(program)


@pytest.mark.parametrize("name", ["scalar", "hparams", "histogram", "make_histogram", "image", "image_boxes", "video"])
def test_summaries_are_made_by_functions_of_torchs_parameters(name):
    codes = [getattr(home(torch, ".summary"), name).__code__ for torch in (peer, pullback)]
    theirs, own = (code.co_varnames[: code.co_argcount] for code in codes)
    assert theirs == own


def test_a_writer_has_torchs_methods_and_parameters():
    theirs, own = (home(torch).SummaryWriter for torch in (peer, pullback))
    names = [name for name in vars(theirs) if name.startswith("add_") or name in ("__init__", "close", "flush")]
    for name in names:
        codes = getattr(theirs, name).__code__, getattr(own, name).__code__
        assert len({code.co_varnames[: code.co_argcount] for code in codes}) == 1, name
        assert getattr(theirs, name).__defaults__ == getattr(own, name).__defaults__


def test_a_graph_of_torchscript_is_refused_with_what_to_do(tmp_path):
    with home(pullback).SummaryWriter(tmp_path) as writer:
        with pytest.raises(NotImplementedError, match=r"pullback\.explore"):
            writer.add_graph(pullback.nn.Linear(1, 1), pullback.ones(1))
        with pytest.raises(NotImplementedError, match="ONNX"):
            writer.add_onnx_graph("file")
