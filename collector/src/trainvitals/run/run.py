"""A training run, as the code that trains sees it: each call appends to the journal, and none can fail or wait."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from orjson import OPT_APPEND_NEWLINE, dumps

from trainvitals.journal.append import WarnOnce
from trainvitals.journal.layout import PREEMPTION_SECONDS
from trainvitals.journal.record import timestamp
from trainvitals.journal.run_files import RunFiles
from trainvitals.run import alerts, cuda, endings, facts, names
from trainvitals.run import values as values_of
from trainvitals.run.arrivals import Arrivals, line_of
from trainvitals.run.data import data
from trainvitals.run.files import Files
from trainvitals.run.harmless import harmless, let_through
from trainvitals.run.harmless import told as told_of
from trainvitals.run.here import Here
from trainvitals.run.lines import Lines
from trainvitals.run.off import Loader, OffRun, Untimed
from trainvitals.run.timing import Phase, Step, Timer

# A GPU that was not in use when the run began is looked for again, and so is who listens to signals by then.
_LOOK_AFTER_STEPS = frozenset({1, 2, 10, 100})


class Run(Here):
    _elsewhere = OffRun

    def __init__(self, name: str, rank: int, local_rank: int, world_size: int) -> None:
        self.name, self.rank, self.local_rank, self.world_size = name, rank, local_rank, world_size
        self.id, self.status = "", "running"
        self.folder: Path | None = None
        self.troubles = 0
        self.warn = WarnOnce()
        self._timer = Timer(self._write_times, self._announce, self.failed)
        self._later = values_of.Later()
        self._lines = Lines(self._later, self.failed, self.warn)
        self._arrivals = Arrivals(self._later, self._timer, self.failed)
        self._alerts = alerts.Alerts(self.write_event, self.warn)
        self._files: Files | None = None
        self._append_line: Any = _ignore
        self._signal = ("", 0.0)
        self._helpers: list[Any] = []
        self._agent: Any = None
        self._knows_gpus = False

    def record_to(self, files: Files) -> None:
        self._files = files
        if self._append_line is _ignore:  # not open yet
            self._append_line = files.append_line

    def opened(self, files: RunFiles) -> None:
        """By the thread that opened them, in the middle of the training where that took its time."""
        self.id, self.folder = files.rank.run, files.rank.folder
        self._timer.go_on(files.last_step)
        if self.status == "running":
            self._append_line = files.metrics.append_line

    def refused(self) -> None:
        self.forget()
        endings.let_go(self)

    def keep_agent(self, agent: Any) -> None:
        self._agent = agent
        if agent is not None and self.status != "running":
            agent.remove()

    def keep(self, helper: Any) -> None:
        """Something that is to be removed when the run ends."""
        if helper is not None:
            self._helpers.append(helper)

    @property
    def number(self) -> int:
        """The step under way, or the last one."""
        return self._timer.number

    @property
    def dropped(self) -> int:
        """Records that could not be written."""
        files = self._files
        if files is None:
            return self.troubles
        open_files = files.files
        kept = () if open_files is None else (open_files.metrics, open_files.events)
        return self.troubles + files.dropped + sum(appender.counts.dropped for appender in kept)

    def log(self, values: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:
        """Any names; numbers, text or tensors. On disk when the call returns, but for what a GPU still computes."""
        try:
            if values is not None:
                more = values if type(values) is dict and not more else {**values, **more}
            if step is not None or not names.own.issuperset(more):
                more, step = self._lines.named(more, step)
            number, times = self._timer.take(step)
            if number in _LOOK_AFTER_STEPS:
                self._look_around()
            record = {"timestamp": timestamp(), "step": number, **(times or {}), **more}
            try:
                line = dumps(record, option=OPT_APPEND_NEWLINE)
            except TypeError:
                line = self._lines.of(record)
            # None, NaN, a list, a mapping, or text that looks like one: rare, and found faster so than by their types.
            if line.rfind(b"null") > 0 or line.rfind(b"[") > 0 or line.rfind(b"{") > 0:
                line = self._lines.of(record)
            self._append_line(line if len(line) <= values_of.MAX_LINE_BYTES else self._lines.shorter(record))
            if self._later.waiting or self._timer.later or self._alerts:
                self._see_to(record)
        except Exception as error:
            try:
                self.failed(error)
            except RecursionError:  # so near its limit that even to say so fails
                return

    def _see_to(self, record: Mapping[str, Any]) -> None:
        came = self._arrivals.write(self._append_line)
        if self._alerts:
            self._alerts.ask(record)
            for number, values in came:
                self._alerts.ask({"step": number, **values})

    def step(self, number: int | None = None) -> Step | Untimed:
        if number is not None:
            self._timer.count(self._lines.step(number))
        if self._timer.begun in _LOOK_AFTER_STEPS:
            self._look_around()
        try:
            return Step(self._timer)
        except RecursionError:
            return Untimed()

    def data(self, loader: Loader) -> Loader:
        return data(self._timer, loader)  # type: ignore[no-any-return]

    def phase(self, name: object) -> Phase:
        return Phase(self._timer, name if isinstance(name, str) else type(name).__name__)

    @harmless
    def begin_step(self, number: int | None = None) -> None:
        self.step(number)
        self._timer.begin_anew()

    @harmless
    def end_step(self, error: object = None) -> None:
        self._timer.end(error if isinstance(error, BaseException) else None)

    @harmless
    def add_seconds(self, **seconds: float) -> None:
        """Times that somebody else took, in the step under way: `add_seconds(data_wait=0.1)`."""
        self._timer.add(**seconds)

    @harmless
    def checkpoint(self, path: object, *, step: int | None = None) -> None:
        self.write_event("checkpoint", path=str(path), **({} if step is None else {"step": step}))

    @harmless
    def event(self, text: str, /, **fields: Any) -> None:
        self.write_event("note", **{**fields, "text": str(text)})

    @harmless
    def write_event(self, kind: str, /, **fields: Any) -> None:
        if self._files is not None and self.status == "running":
            self._files.event({"step": self.number, **self._lines.fields(fields), "event": kind})

    @harmless
    def alert_when(self, name: str, condition: alerts.Condition, severity: str = "ticket", message: str = "",
                   cooldown_seconds: float = 300.0) -> None:  # fmt: skip
        self._alerts.add(alerts.Alert(name, condition, severity, message, cooldown_seconds))

    def watch(self, model: Any, optimizer: Any = None, **options: Any) -> Any:
        watching = self._watch(model, optimizer, **options)
        return watching or OffRun()

    @harmless
    def _watch(self, model: Any, optimizer: Any, **options: Any) -> Any:
        from trainvitals.run.watch import watch

        watching = watch(self, model, optimizer, **options)
        self.keep(watching)
        return watching

    def profile_inference(self, model: Any, inputs: Any, **options: Any) -> Any:
        return self._profile_inference(model, inputs, **options) or {}

    @harmless
    def _profile_inference(self, model: Any, inputs: Any, **options: Any) -> Any:
        from trainvitals.run.inference import profile_inference

        return profile_inference(self, model, inputs, **options)

    @harmless
    def describe(self, config: object = None, *, framework: str | None = None, planned_steps: int | None = None,
                 tags: Sequence[str] | None = None) -> None:  # fmt: skip
        """What is known of the run only now; a configuration is added to the one that is there."""
        told = {"framework": framework, "planned_steps": planned_steps, "tags": tags and facts.tags_of(tags)}
        if self._files is not None and self.status == "running":
            known = {key: value for key, value in told.items() if value is not None}
            self._files.describe(config=facts.config_of(config), **self._lines.fields(known))

    @harmless
    def finish(self, status: str = "finished", error: str = "") -> None:
        self._finish(*endings.said(status, error, self.failed))

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        if error is None:
            self.finish()
        else:
            harmless(self.crash)(error)

    def crash(self, error: BaseException) -> None:
        self._finish(*endings.verdict(error))

    def note_signal(self, name: str, is_last: bool) -> None:
        self._signal = (name, time.monotonic())
        self.write_event("signal", signal=name)
        if is_last:
            self._finish("preempted", name)

    def end_at_exit(self) -> None:
        """Nobody said how it ended: a step that failed last is how, else it came to its end."""
        self._finish(*(self._timer.failure or ("finished", "")))

    def wait(self, deadline: float) -> None:
        if self._files is not None and self.status != "running":
            self._files.wait(deadline)

    def forget(self) -> None:
        """In a forked child, where the run is somebody else's."""
        self.status = "off"
        self._append_line = _ignore
        self._files = None

    def failed(self, error: BaseException) -> None:
        let_through(error)
        self.troubles += 1
        said = str(error) if isinstance(error, values_of.Refused) else told_of(error)
        # Where the system refuses everything (no descriptors, no space) one warning says so.
        kind = "dropping" if isinstance(error, OSError) else "failed"
        self.warn(kind, f"run {self.name}: something is not recorded, and training goes on: {said}")

    def _finish(self, status: str, error: str) -> None:
        if self.status != "running" or self._files is None:
            return
        signal, when = self._signal
        if signal and status in ("finished", "crashed") and time.monotonic() - when < PREEMPTION_SECONDS:
            status, error = "preempted", error or signal
        self._remove_helpers()
        self._timer.flush()
        if rest := self._timer.rest():
            self._write_times(self.number, rest)
        self.status = status
        self._append_line = _ignore
        endings.let_go(self)
        details = {"error": error} if error else {}
        self._arrivals.write_last(self._files.append_line, harmless(lambda: self._end(status, details)))

    def _end(self, status: str, details: Mapping[str, Any]) -> None:
        if self._files is not None:
            self._files.end(status, details)
        if self._agent is not None:
            self._agent.remove()

    def _remove_helpers(self) -> None:
        for helper in self._helpers:
            harmless(helper.remove)()

    def _write_times(self, number: int, times: Mapping[str, float]) -> None:
        self._append_line(line_of(number, times))

    def _announce(self, phase: str, is_open: bool) -> None:
        self.write_event("phase", phase=phase, open=is_open)

    @harmless
    def _look_around(self) -> None:
        endings.listen()
        files = None if self._files is None or self._knows_gpus else self._files.files
        if files is not None and (gpus := cuda.gpus()):
            self._knows_gpus = True
            files.rank.tell(gpus=gpus)


def _ignore(_: bytes) -> bool:
    return False
