"""SummaryWriter: what a program adds to it is in event files, which TensorBoard reads while they grow."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import takewhile
from typing import Any

from google.protobuf import text_format
from tensorboard.compat import tf
from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from pullback.utils.tensorboard import _embedding as embedding
from pullback.utils.tensorboard import summary
from pullback.utils.tensorboard._convert_np import make_np
from pullback.utils.tensorboard._utils import figure_to_image


class FileWriter:
    """Writes messages to one event file, in a thread of its own.

    Args:
        log_dir: the folder of the file.
        max_queue: how many messages wait before the next one waits for the file.
        flush_secs: how often the file is flushed.
        filename_suffix: how its name ends.
    """

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self.event_writer.get_logdir()  # type: ignore[no-any-return]

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an event: of this step, and of now unless a time is given."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a summary as an event."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Write a graph and the times of its parts, given as messages."""
        graph, times = graph_profile[0], graph_profile[1]
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        run = TaggedRunMetadata(tag="step1", run_metadata=times.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Write a graph, given as a message."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Write what is waiting."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what is waiting, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begin a new file, if this one was closed."""
        self.event_writer.reopen()


def growing(first: float) -> Iterator[float]:
    """Numbers that grow by a tenth."""
    while True:
        yield first
        first *= 1.1


class SummaryWriter:
    """Writes numbers, histograms, images and more for TensorBoard, each by a method `add_...`.

    Args:
        log_dir: the folder of the event files; one under `runs` named by the time and the computer if None.
        comment: how the name of that folder ends.
        purge_step: TensorBoard hides what an earlier run, which crashed, wrote from this step on.
        max_queue: how many messages wait before the next one waits for the file.
        flush_secs: how often the files are flushed.
        filename_suffix: how their names end.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        bins = list(takewhile(lambda limit: limit < 1e20, growing(1e-12)))
        self.default_bins = [*(-limit for limit in reversed(bins)), 0, *bins]

    def _get_file_writer(self) -> FileWriter:
        """The writer of the folder's own file; a new one after `close`."""
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._file_in(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                started = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=self.purge_step, session_log=started))
                self.purge_step = None
        return self.file_writer

    def _file_in(self, folder: Any) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _add(self, message: Any, step: Any = None, walltime: float | None = None) -> None:
        self._get_file_writer().add_summary(message, step, walltime)

    def get_logdir(self) -> Any:
        """The folder of the event files."""
        return self.log_dir

    def flush(self) -> None:
        """Write what is waiting."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what is waiting and close the files; what is added later is in new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()

    # -------------------------------------------------------------- numbers

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Add a number.

        Args:
            tag: its name.
            scalar_value: a number, or a tensor of one element.
            global_step: the step it belongs to.
            walltime: seconds since 1970; now if None.
            new_style: whether it is stored as a tensor.
            double_precision: whether that is of float64.
        """
        self._add(summary.scalar(tag, scalar_value, None, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add several numbers to one chart; each gets a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            assert self.all_writers is not None
            if name not in self.all_writers:
                self.all_writers[name] = self._file_in(name)
            self.all_writers[name].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add a whole tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
        run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """Add the hyperparameters of a run and what came of it, in a folder of their own.

        Args:
            hparam_dict: the hyperparameters by name: numbers, texts, True or False, or None.
            metric_dict: the metrics by name.
            hparam_domain_discrete: all values that a hyperparameter may have, by its name.
            run_name: the name of the folder; the time if None.
            global_step: the step they belong to.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        messages = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for message in messages:
                writer._add(message, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    # -------------------------------------------------------------- histograms

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Add a histogram of values.

        Args:
            tag: its name.
            values: a tensor or an array.
            global_step: the step it belongs to.
            bins: limits that grow by a tenth, or what np.histogram takes.
            walltime: seconds since 1970; now if None.
            max_bins: the most bins there are; several become one.
        """
        limits = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, limits, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float, bucket_limits: Any,
        bucket_counts: Any, global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a histogram from its numbers: how many values lie below each limit and above the one before."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        message = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(message, global_step, walltime)

    # -------------------------------------------------------------- images and sounds

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Add an image of bytes, or of numbers from 0 to 1; the letters name its dimensions. Needs Pillow."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Add a batch of images side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: Any = None, walltime: float | None = None,
        rescale: float = 1, dataformats: str = "CHW", labels: Any = None,
    ) -> None:  # fmt: skip
        """Add an image with boxes, given as (left, top, right, bottom), and with labels, if there is one for each."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        self._add(summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Add a figure of matplotlib, or several, as an image; they are closed unless told otherwise."""
        order = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, dataformats=order)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """Add videos in the order NTCHW, side by side. Needs moviepy."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: Any = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a sound of numbers from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate=sample_rate), global_step, walltime)

    # -------------------------------------------------------------- texts and charts

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Add a text, which is shown as Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a curve of precision and recall.

        Args:
            tag: its name.
            labels: what is true, 0 or 1.
            predictions: how sure the model is of 1, from 0 to 1.
            global_step: the step it belongs to.
            num_thresholds: how many points the curve has, at most 127.
            weights: what each label counts.
            walltime: seconds since 1970; now if None.
        """
        message = summary.pr_curve(tag, make_np(labels), make_np(predictions), num_thresholds, weights)
        self._add(message, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: Any = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a curve of precision and recall from its numbers, one for each threshold."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        message = summary.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights)
        self._add(message, global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Say how scalars are shown together: {category: {title: ["Multiline", tags] or ["Margin", three tags]}}."""
        self._add(summary.custom_scalars(layout))

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show several scalars in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show a scalar between two that limit it."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # -------------------------------------------------------------- points and graphs

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None,
        global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a mesh or a cloud of points: (batch, number, 3) each of vertices, colors and indices of vertices."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    @staticmethod
    def _encode(rawstr: str) -> str:
        """A tag as the name of a folder."""
        return rawstr.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Add points for the embedding projector.

        Args:
            mat: one point in a row.
            metadata: a label for each; several with a header.
            label_img: an image for each, in the order NCHW.
            global_step: the step they belong to.
            tag: their name.
            metadata_header: the names of the labels, if there are several for each.
        """
        mat, step = make_np(mat), 0 if global_step is None else global_step
        folder = self._get_file_writer().get_logdir()
        inside = f"{str(step).zfill(5)}/{self._encode(tag)}"
        path, files = os.path.join(folder, inside), tf.io.gfile
        if not files.exists(path):
            files.makedirs(path)
        elif files.isdir(path):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        else:
            raise NotADirectoryError(f"Path: `{path}` exists, but is a file. Cannot proceed.")
        if metadata is not None:
            if len(mat) != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            embedding.make_tsv(metadata, path, metadata_header)
        if label_img is not None:
            if len(mat) != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            embedding.make_sprite(label_img, path)
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        embedding.make_mat(mat, path)
        if not hasattr(self, "_projector_config"):
            self._projector_config = ProjectorConfig()
        self._projector_config.embeddings.append(embedding.get_embedding_info(metadata, label_img, inside, step, tag))
        embedding.write(
            f"{folder}/projector_config.pbtxt", text_format.MessageToString(self._projector_config).encode()
        )

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Not here: torch draws the graph of TorchScript."""
        raise NotImplementedError(
            "SummaryWriter.add_graph draws graphs of TorchScript, which pullback has not; write the graph of a result "
            "as a page of its own with pullback.explore(model(*inputs)), or print torch.fx.symbolic_trace(model).graph"
        )

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Not here: pullback writes no ONNX files."""
        raise NotImplementedError("SummaryWriter.add_onnx_graph reads ONNX files, for which pullback has no reader")
