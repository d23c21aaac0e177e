"""A callback for Keras 3, on TensorFlow and on PyTorch.

    model.fit(..., callbacks=[TrainVitalsCallback("mnist")])
        ->  {"step": 7, "epoch": 0, "loss": 2.31, "data_wait_seconds": 0.002, "step_duration_seconds": 0.01, ...}

Keras hands callbacks the values of a batch as numbers, for which the host waits for the GPU. So nothing listens to the
end of a batch: `train_function`, which does a batch, is looked into while `fit` runs. `loss` is what Keras calls so,
the mean since the epoch began. What fetches the batches depends on the backend:

- PyTorch: an iterator of the epoch, before the step. It is timed.
- TensorFlow: the compiled step itself, out of which no clock could tell the wait. So its batch is fetched for it, just
  before. With `steps_per_execution` above 1 it takes several batches at once and is left alone: the wait is
  then part of the step, and no `data_wait_seconds` is claimed.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter as clock
from typing import Any

from trainvitals.integrations.training import OfTraining, Training, callers, replace, samples_in
from trainvitals.run import harmless

try:
    import keras
except ImportError as error:
    raise ImportError(f"trainvitals.integrations.keras needs Keras 3: pip install keras ({error})") from error


class TrainVitalsCallback(OfTraining, keras.callbacks.Callback):
    """`log_interval`: a line of values each so many steps. Other options are those of `trainvitals.start`."""

    def __init__(self, name: str | None = None, log_interval: int = 1, **start_options: Any) -> None:
        super().__init__()
        self._training = Training("keras", name, start_options)
        self._log_interval = max(1, int(log_interval))
        self._undo: list[Callable[[], None]] = []
        self._evaluation: Any = None
        self._named: set[str] = set()
        self._is_training = self._fetches = False
        self._epoch = self._batch = self._before_epoch = self._steps = self._samples = 0
        self._waited = self._seconds = 0.0

    @harmless
    def on_train_begin(self, logs: Any = None) -> None:
        self._leave()
        self._training.begin(self.model.name, 0, config=_config_of(self.model, self.params))
        self._is_training = True
        self._samples, self._waited, self._seconds = 0, 0.0, 0.0
        self._steps = -1
        if self.run.status == "running":
            self._watch()

    def _watch(self) -> None:
        own = type(self.model).make_train_function is keras.Model.make_train_function
        self._fetches = _is_tensorflow() and own and self.model.steps_per_execution == 1
        batches = next((frame["epoch_iterator"] for frame in callers() if "epoch_iterator" in frame), None)
        self._undo = [replace(self.model, "train_function", self._see_steps)]
        self._undo += [replace(self.model, name, self._see_checkpoints) for name in ("save", "save_weights")]
        if not _is_tensorflow() and hasattr(batches, "_get_iterator"):
            self._undo.append(replace(batches, "_get_iterator", self._time_fetching))

    def _leave(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo = []

    @harmless
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self._steps < 0:
            self._steps = 0
            planned = (self.params.get("epochs", 0) - epoch) * (self.params.get("steps") or 0)
            self.run.describe(planned_steps=self.run.number + planned if planned > 0 else None)
        self._before_epoch = self.run.number
        self._epoch = epoch

    @harmless
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._batch = batch

    def _see_steps(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def train_function(*arguments: Any) -> Any:
            if self._fetches:
                arguments = self._fetched(*arguments)
            began = clock()
            try:
                result = original(*arguments)
            except Exception as error:
                self._count_failure(error)
                raise
            self._count_step(clock() - began, result)
            return result

        return train_function

    def _fetched(self, batches: Any) -> tuple[Any]:
        """Keras takes any iterator here; the end of the data is told as it would tell it."""
        if not isinstance(batches, sys.modules["tensorflow"].data.Iterator):
            return (batches,)
        began = clock()
        batch = next(batches)
        self._note_fetch(clock() - began, batch)
        return (iter([batch]),)

    def _time_fetching(self, original: Callable[[], Any]) -> Callable[[], Iterator[Any]]:
        def get_iterator() -> Iterator[Any]:
            return _timed(iter(original()), self._note_fetch)

        return get_iterator

    @harmless
    def _note_fetch(self, seconds: float, batch: Any) -> None:
        self._waited += seconds
        self._samples += samples_in(batch)

    @harmless
    def _count_failure(self, error: Exception) -> None:
        """The end of the data is none, and is told from within the step where that fetches."""
        if not isinstance(error, StopIteration) and type(error).__name__ != "OutOfRangeError":
            self.run.begin_step(self._number())
            self.run.end_step(error)

    @harmless
    def _count_step(self, took: float, result: Any) -> None:
        number, together = self._number(), self._together()
        self._steps += together
        self._seconds += took + self._waited
        self.run.add_seconds(step_duration=took / together)
        if self._waited:
            self.run.add_seconds(data_wait=self._waited)
            self._waited = 0.0
        self.run.begin_step(number)
        self.run.end_step()
        if self._steps % self._log_interval < together:
            self._log_values(result)

    def _number(self) -> int:
        return self._before_epoch + self._batch + self._together()

    def _together(self) -> int:
        return self.model.steps_per_execution if _is_tensorflow() else 1

    def _log_values(self, result: Any) -> None:
        values = {name: _value_of(value) for name, value in _flat(result)}
        self._named = {*values}
        values["epoch"] = self._epoch
        if self.model.optimizer is not None:
            values["learning_rate"] = _value_of(self.model.optimizer.learning_rate)
        if self._samples and self._seconds > 0:
            values["throughput_samples_per_sec"] = self._samples / self._seconds
        self._samples, self._seconds = 0, 0.0
        self.run.log(values)

    def _see_checkpoints(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def save(filepath: Any, *more: Any, **named: Any) -> Any:
            with self.run.phase("checkpoint"):
                result = original(filepath, *more, **named)
            self.run.checkpoint(filepath)
            return result

        return save

    @harmless
    def on_test_begin(self, logs: Any = None) -> None:
        if self._is_training:
            self._evaluation = self.run.phase("evaluation")
            self._evaluation.__enter__()

    @harmless
    def on_test_end(self, logs: Any = None) -> None:
        if self._evaluation is not None:
            self._evaluation.__exit__(None, None, None)
            self._evaluation = None

    @harmless
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """What the steps did not bring: of validation, and of other callbacks."""
        values = {name: value for name, value in (logs or {}).items() if name not in self._named}
        if values:
            self.run.log({"epoch": epoch, **values}, step=self.run.number)

    @harmless
    def on_train_end(self, logs: Any = None) -> None:
        self._is_training = False
        self._leave()
        self._training.end()


def _is_tensorflow() -> bool:
    return bool(keras.backend.backend() == "tensorflow")


def _timed(batches: Iterator[Any], note: Callable[[float, Any], None]) -> Iterator[Any]:
    while True:
        began = clock()
        try:
            batch = next(batches)
        except StopIteration:
            return
        note(clock() - began, batch)
        yield batch


def _flat(values: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(values, Mapping):
        for name, value in values.items():
            if isinstance(value, Mapping):
                yield from _flat(value)
            else:
                yield name, value


def _value_of(value: Any) -> Any:
    """A tensor of PyTorch as it is, so that nobody waits for it; one of TensorFlow, which Keras reads at once itself,
    as a number."""
    value = getattr(value, "value", value)
    return value if hasattr(value, "detach") else float(value)


def _config_of(model: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    optimizer = model.optimizer.get_config() if model.optimizer is not None else None
    parameters = model.count_params() if model.built else None
    return {"epochs": params.get("epochs"), "steps_per_epoch": params.get("steps"), "optimizer": optimizer,
            "backend": keras.backend.backend(), "parameters": parameters}  # fmt: skip
