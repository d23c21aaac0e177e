"""TensorBoard event files written where they are asked for: DIR/events.out.tfevents.<start>.<host>.<pid>

training/loss, resources/cpu_percent, parameters/<layer>, gradients/<layer>
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

# Not the plugins' own summary modules, which import TensorFlow where it is installed.
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from trainvitals.journal import layout
from trainvitals.run.harmless import harmless, warn
from trainvitals.run.off import is_switched_off

BUCKETS = 30


class TensorBoardMonitor:
    """By the calling thread, and on disk when the call returns. The first error ends it, with one warning."""

    def __init__(self, log_dir: str | os.PathLike[str]) -> None:
        self._writer: Any = None
        if not is_switched_off():
            harmless(self._open)(Path(log_dir).expanduser())

    def log_training_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        self._write(step, _scalars("training", metrics))

    def log_resource_metrics(self, step: int, metrics: Mapping[str, Any]) -> None:
        self._write(step, _scalars("resources", metrics))

    def log_model_parameters(self, step: int, model: Any) -> None:
        """Each parameter, and its gradient where it has one, as a histogram."""
        self._write(step, _histograms(model))

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            # What a full disk did not take it does not take now either.
            with suppress(OSError):
                writer.close()

    def failed(self, error: BaseException) -> None:
        self.close()
        warn(error)

    def _open(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{layout.host_name()}.{os.getpid()}"
        self._writer = RecordWriter(open(folder / name, "ab"))  # noqa: SIM115 - the writer closes it
        self._append(Event(wall_time=time.time(), file_version="brain.Event:2"))

    @harmless
    def _write(self, step: int, values: Iterator[Any]) -> None:
        if self._writer is not None and (found := list(values)):
            self._append(Event(wall_time=time.time(), step=int(step), summary=Summary(value=found)))

    def _append(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())
        self._writer.flush()


def _scalars(kind: str, metrics: Mapping[str, Any]) -> Iterator[Any]:
    """Of what lies within another, the path to it: gpu_metrics/gpu_0/memory_allocated."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _scalars(f"{kind}/{name}", value)
        elif value is not None:
            yield Summary.Value(tag=f"{kind}/{name}", simple_value=float(value))


def _histograms(model: Any) -> Iterator[Any]:
    for name, parameter in model.named_parameters():
        for kind, tensor in (("parameters", parameter), ("gradients", parameter.grad)):
            if tensor is not None and (counted := _histogram(tensor)) is not None:
                yield Summary.Value(tag=f"{kind}/{name}", histo=counted)


def _histogram(tensor: Any) -> Any:
    """None where no value is finite."""
    torch: Any = sys.modules["torch"]
    values = tensor.detach().float().flatten()
    values = values[values.isfinite()]
    if not values.numel():
        return None
    low, high = values.min().item(), values.max().item()
    first, width = (low, (high - low) / BUCKETS) if high > low else (low - 0.5, 1 / BUCKETS)
    counts = torch.histc(values, BUCKETS, first, first + BUCKETS * width)
    return HistogramProto(min=low, max=high, num=values.numel(), sum=values.sum().item(),
                          sum_squares=values.square().sum().item(), bucket=counts.tolist(),
                          bucket_limit=[first + width * (place + 1) for place in range(BUCKETS)])  # fmt: skip
