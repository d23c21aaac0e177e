"""A callback for the Trainer of Hugging Face Transformers, and for the trainers built on it.

    trainer = Trainer(..., callbacks=[TrainVitalsCallback()])
    trainer.train()     ->  {"step": 7, "loss": 2.31, "data_wait_seconds": 0.002, "learning_rate": 0.0003, ...}

The Trainer shows a callback neither the loss of a step nor the wait for its batches, and what it logs hides a NaN.
So while it trains, its `training_step` and `get_batch_samples` are looked into.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter as clock
from typing import Any

from trainvitals.integrations.training import OfTraining, Training, callers, replace, samples_in
from trainvitals.run import Run, harmless

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError(
        f"trainvitals.integrations.transformers needs transformers: pip install 'transformers[torch]' ({error})"
    ) from error

# Means over the whole training, under names that mean the step's own.
_MEANS = frozenset({"train_runtime", "train_samples_per_second", "train_steps_per_second", "train_tokens_per_second"})
_KNOWN_BY_STEP = frozenset({"loss", "learning_rate"})


class Batches:
    """What the micro-batches of the steps since the last line brought, summed where the tensors are."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._undo: list[Callable[[], None]] = []
        self.clear()

    def clear(self) -> None:
        self.loss: Any = None
        self.steps = self.samples = self.tokens = 0
        self.seconds = 0.0

    def watch(self, trainer: Any) -> None:
        self._undo = [
            replace(trainer, "training_step", self._see_steps),
            replace(trainer, "get_batch_samples", self._time_fetching),
        ]

    def leave(self) -> None:
        for undo in self._undo:
            undo()

    def _see_steps(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def training_step(model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
            try:
                loss = original(model, inputs, *more, **named)
            except BaseException as error:
                self._run.end_step(error)
                raise
            self._add(loss, inputs)
            return loss

        return training_step

    def _time_fetching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def get_batch_samples(batches: Iterator[Any], *more: Any, **named: Any) -> Any:
            return original(iter(self._run.data(batches)), *more, **named)

        return get_batch_samples

    @harmless
    def _add(self, loss: Any, inputs: Any) -> None:
        self.loss = loss.detach() if self.loss is None else self.loss + loss.detach()
        if isinstance(inputs, Mapping):
            self.samples += samples_in(inputs)
            self.tokens += inputs["input_ids"].numel() if "input_ids" in inputs else 0

    def failed(self, error: BaseException) -> None:
        self._run.failed(error)

    def values(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if self.loss is not None:
            values["loss"] = self.loss / self.steps
        if self.seconds > 0:
            counts = {"throughput_samples_per_sec": self.samples, "tokens_per_second": self.tokens}
            values |= {name: count / self.seconds for name, count in counts.items() if count}
        return values


class TrainVitalsCallback(OfTraining, TrainerCallback):
    """`log_interval`: a line of values each so many steps; a loss is then the mean of theirs. Other options are
    those of `trainvitals.start`."""

    def __init__(self, name: str | None = None, log_interval: int = 1, **start_options: Any) -> None:
        self._training = Training("transformers", name, start_options)
        self._log_interval = max(1, int(log_interval))
        self._batches = Batches(self._training.run)
        self._is_watching = False
        # Up to here all time is accounted for.
        self._mark = self._began = 0.0
        self._phase = ""
        self._tokens_seen = 0
        self._learning_rate: Any = None

    @harmless
    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._training.begin(
            _name_of(args), state.global_step, config=_config_of(args, more.get("model")),
            planned_steps=state.max_steps or None, rank=args.process_index, local_rank=args.local_process_index,
            world_size=args.world_size)  # fmt: skip
        self._tokens_seen = state.num_input_tokens_seen
        self._phase = ""
        self._watch_trainer()
        self._mark = clock()

    def _watch_trainer(self) -> None:
        self._batches.leave()
        self._batches = Batches(self.run)
        trainer = _caller_with(self)
        self._is_watching = hasattr(trainer, "training_step") and hasattr(trainer, "get_batch_samples")
        if self._is_watching and self.run.status == "running":
            self._batches.watch(trainer)

    @harmless
    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._phase:  # announced, and then left out
            self._announce(False)
        self._began = clock()
        waited = self._began - self._mark
        self._batches.seconds += waited
        if not self._is_watching:
            self.run.add_seconds(data_wait=waited)
        self._learning_rate = _learning_rate_of(more.get("optimizer"))
        self.run.begin_step(self._training.before + state.global_step + 1)

    @harmless
    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.run.end_step()
        self._mark = clock()
        batches = self._batches
        batches.seconds += self._mark - self._began
        batches.steps += 1
        if state.num_input_tokens_seen > self._tokens_seen:
            batches.tokens = (state.num_input_tokens_seen - self._tokens_seen) // args.world_size
        if self.run.number % self._log_interval == 0:
            self._log_step(state)
        self._expect(control)

    def _log_step(self, state: Any) -> None:
        values = {"epoch": state.epoch, "learning_rate": self._learning_rate, **self._batches.values()}
        self.run.log({name: value for name, value in values.items() if value is not None})
        self._batches.clear()
        self._tokens_seen = state.num_input_tokens_seen

    @harmless
    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if self._phase != "evaluation":
            self._mark = clock()
        logs = dict(logs or {})
        if "total_flos" in logs:
            self.run.event("training ended", **logs)
            return
        hidden = _MEANS | (_KNOWN_BY_STEP if self._is_watching else frozenset())
        values = {name: value for name, value in logs.items() if name not in hidden}
        if values.keys() - {"epoch"}:
            self.run.log(values, step=self._training.before + state.global_step)

    @harmless
    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._phase != "evaluation":
            self._announce_phase("evaluation")

    @harmless
    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._account("evaluation")
        self._expect(control)

    on_predict = on_evaluate

    @harmless
    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._account("checkpoint")
        self.run.checkpoint(Path(args.output_dir).absolute() / f"checkpoint-{state.global_step}",
                            step=self._training.before + state.global_step)  # fmt: skip

    @harmless
    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._expect(control)

    @harmless
    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._batches.leave()
        self._training.end()

    def _expect(self, control: Any) -> None:
        """What the Trainer was told to do next may last."""
        if control.should_evaluate:
            self._announce_phase("evaluation")
        elif control.should_save:
            self._announce_phase("checkpoint")

    def _announce_phase(self, name: str) -> None:
        if self._phase != name:
            if self._phase:
                self._announce(False)
            self._phase = name
            self._announce(True)

    def _announce(self, is_open: bool) -> None:
        self.run.write_event("phase", phase=self._phase, open=is_open)
        if not is_open:
            self._phase = ""

    def _account(self, phase: str) -> None:
        now = clock()
        self.run.add_seconds(**{phase: now - self._mark})
        self._mark = now
        if self._phase:
            self._announce(False)


def _caller_with(callback: TrainerCallback) -> Any:
    """The trainer whose callback this is: it is among those who are calling."""
    for frame in callers():
        handler = getattr(frame.get("self"), "callback_handler", None)
        if callback in getattr(handler, "callbacks", ()):
            return frame["self"]
    return None


def _name_of(args: Any) -> str:
    """`run_name` was the output folder's path where none was given, up to transformers 4."""
    given = args.run_name if args.run_name != args.output_dir else None
    return given or Path(os.path.abspath(args.output_dir)).name or "transformers"


def _config_of(args: Any, model: Any) -> dict[str, Any]:
    config: Any = getattr(model, "config", None)
    return {**args.to_dict(), "model": config.to_dict() if hasattr(config, "to_dict") else config}


def _learning_rate_of(optimizer: Any) -> Any:
    groups = getattr(optimizer, "param_groups", None)
    return groups[0].get("lr") if groups else None
