"""A callback for the Trainer of Lightning, by either of its names (`lightning.pytorch`, `pytorch_lightning`).

    trainer = Trainer(..., callbacks=[TrainVitalsCallback()])
    trainer.fit(model)      ->  {"step": 7, "loss": 2.31, "data_wait_seconds": 0.002, "learning_rate": 0.0003, ...}

A step is what Lightning counts as one in `global_step`: one of the optimizer, however many batches it takes.
"""

import math
from collections.abc import Callable, Mapping
from time import perf_counter as clock
from typing import Any

from trainvitals.integrations.training import OfTraining, Training, replace, samples_in
from trainvitals.run import harmless

try:
    from lightning.pytorch import Callback
except ImportError as missing:
    try:
        from pytorch_lightning import Callback
    except ImportError:
        raise ImportError(
            f"trainvitals.integrations.lightning needs Lightning: pip install lightning ({missing})"
        ) from missing

_FETCH = "train_dataloader_next"
_SETTINGS = ("max_epochs", "max_steps", "accumulate_grad_batches", "gradient_clip_val", "precision", "world_size")


class TrainVitalsCallback(OfTraining, Callback):
    """`log_interval`: a line of values each so many steps; a loss is then the mean of theirs. Other options are
    those of `trainvitals.start`."""

    def __init__(self, name: str | None = None, log_interval: int = 1, **start_options: Any) -> None:
        self._training = Training("lightning", name, start_options)
        self._log_interval = max(1, int(log_interval))
        self._undo: list[Callable[[], None]] = []
        self._evaluation: Any = None
        self._logged: dict[str, Any] = {}
        self._fetching_since = self._began = 0.0
        self._is_in_step = False
        self._done = self._before_epoch = 0
        self._clear()

    def _clear(self) -> None:
        self._loss: Any = None
        self._batches = self._steps = self._samples = 0
        self._seconds = 0.0

    @harmless
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.begin(
            type(pl_module).__name__, trainer.global_step, config=_config_of(trainer, pl_module),
            planned_steps=_planned(trainer, pl_module), rank=trainer.global_rank, local_rank=trainer.local_rank,
            world_size=trainer.world_size)  # fmt: skip
        self._done = self._before_epoch = trainer.global_step
        self._is_in_step = False
        self._logged = {}
        self._clear()
        self._leave()
        if self.run.status == "running":
            self._watch(trainer)

    def _watch(self, trainer: Any) -> None:
        self._undo = [
            replace(trainer.profiler, "start", self._before_fetch),
            replace(trainer.profiler, "stop", self._after_fetch),
            replace(trainer, "save_checkpoint", self._see_checkpoints),
        ]

    def _leave(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo = []

    def _before_fetch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start(action_name: str) -> Any:
            original(action_name)
            if action_name.endswith(_FETCH):
                self._fetching_since = clock()

        return start

    def _after_fetch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def stop(action_name: str) -> Any:
            if action_name.endswith(_FETCH):
                waited = clock() - self._fetching_since
                self._seconds += waited
                self.run.add_seconds(data_wait=waited)
            original(action_name)

        return stop

    def _see_checkpoints(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def save_checkpoint(filepath: Any, *more: Any, **named: Any) -> Any:
            with self.run.phase("checkpoint"):
                original(filepath, *more, **named)
            self.run.checkpoint(filepath)

        return save_checkpoint

    @harmless
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._began = clock()
        if not self._is_in_step:
            self._is_in_step = True
            self._rates = _learning_rates(trainer)
            self.run.begin_step(self._training.before + trainer.global_step + 1)

    @harmless
    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        took = clock() - self._began
        self.run.add_seconds(step_duration=took)
        self._seconds += took
        self._samples += samples_in(batch)
        self._add_loss(outputs, pl_module.automatic_optimization)
        if trainer.global_step > self._done:
            self._end_step(trainer)

    def _add_loss(self, outputs: Any, is_normalized: bool) -> None:
        """Of accumulated batches Lightning gives each its part of the mean, but only where it does the steps."""
        loss: Any = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if hasattr(loss, "detach") and loss.numel() == 1:
            self._loss = loss.detach() if self._loss is None else self._loss + loss.detach()
            self._batches += 0 if is_normalized else 1

    def _end_step(self, trainer: Any) -> None:
        self.run.end_step()
        self._is_in_step = False
        self._steps += 1
        number = self._training.before + trainer.global_step
        if self._steps >= self._log_interval:
            self.run.log(self._values(trainer), step=number)
            self._clear()
        self._done = trainer.global_step

    def _values(self, trainer: Any) -> dict[str, Any]:
        values: dict[str, Any] = {"epoch": trainer.current_epoch, **self._rates}
        if self._loss is not None:
            values["loss"] = self._loss / (self._batches or self._steps)
        if self._samples and self._seconds > 0:
            values["throughput_samples_per_sec"] = self._samples / self._seconds
        return {**self._news(trainer), **values}

    def _news(self, trainer: Any) -> dict[str, Any]:
        """What `self.log` brought since the last look; what it did not bring anew still lies in the same memory."""
        metrics = dict(trainer.callback_metrics)
        news = {name: value for name, value in metrics.items() if not _is_same(value, self._logged.get(name))}
        self._logged = metrics
        return news

    def _log_news(self, trainer: Any) -> None:
        if news := self._news(trainer):
            self.run.log(news, step=self._training.before + trainer.global_step)

    @harmless
    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._log_news(trainer)  # of the epoch before, which are ready only now
        if not pl_module.automatic_optimization:
            self._training.plan(_planned_after(trainer, trainer.global_step - self._before_epoch))
            self._before_epoch = trainer.global_step

    @harmless
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self.run.status == "running" and trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._evaluation = self.run.phase("evaluation")
            self._evaluation.__enter__()

    @harmless
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._evaluation is not None:
            self._evaluation.__exit__(None, None, None)
            self._evaluation = None
            self._log_news(trainer)

    @harmless
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._log_news(trainer)

    @harmless
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._leave()
        self._training.crash(exception)

    @harmless
    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Later than the end of the training: a last checkpoint is saved in between."""
        self._leave()
        if stage == "fit":
            self._training.end()


def _is_same(value: Any, known: Any) -> bool:
    return known is not None and bool(value.data_ptr() == known.data_ptr())


def _learning_rates(trainer: Any) -> dict[str, Any]:
    rates = [optimizer.param_groups[0]["lr"] for optimizer in trainer.optimizers if optimizer.param_groups]
    return {f"learning_rate_{number}" if number else "learning_rate": rate for number, rate in enumerate(rates)}


def _planned(trainer: Any, pl_module: Any) -> int | None:
    """Lightning's estimate is of batches: optimized by hand, each optimizer may step once in each, until an epoch has
    shown what they do."""
    steps = trainer.estimated_stepping_batches
    if not pl_module.automatic_optimization:
        steps = _limited(steps * len(trainer.optimizers), trainer)
    return int(steps) if math.isfinite(steps) and steps > 0 else None


def _planned_after(trainer: Any, in_last_epoch: int) -> int | None:
    if in_last_epoch <= 0 or (trainer.max_epochs or 0) <= 0:
        return None
    left = trainer.max_epochs - trainer.current_epoch
    return int(_limited(trainer.global_step + left * in_last_epoch, trainer))


def _limited(steps: float, trainer: Any) -> float:
    return steps if trainer.max_steps < 0 else min(steps, trainer.max_steps)


def _config_of(trainer: Any, pl_module: Any) -> dict[str, Any]:
    settings = {name: getattr(trainer, name, None) for name in _SETTINGS}
    return {**getattr(pl_module, "hparams", {}), "trainer": settings}
