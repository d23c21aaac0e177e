"""All that decides what is on the screen, and what follows from it: the chosen GPU and run, what the filter leaves.

View(heard=…, history=…, filter="gemma").gpus  ->  those of the runs whose name holds gemma
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from trainvitals.tui.feed import Heard
from trainvitals.tui.history import History
from trainvitals.tui.picture import Finding, Gpu, Picture, Run

NOBODY = Heard(None, "", 0.0)
# Ticks of whoever tells that may be missed before nothing is known any more, and seconds at least.
PATIENT_TICKS, PATIENT_SECONDS = 3.0, 5.0


@dataclass(frozen=True)
class Asked:
    """What the user wants to see, by flags."""

    gpus: tuple[int, ...] = ()
    run: str = ""


@dataclass(frozen=True)
class View:
    """`now` by the monotonic clock; `filtering`: the filter is being typed; `helping`: the help is shown."""

    heard: Heard = NOBODY
    now: float = 0.0
    history: History = field(default_factory=History)
    asked: Asked = field(default_factory=Asked)
    interval: float = 1.0
    gpu: int | None = None
    run: str | None = None
    filter: str = ""
    filtering: bool = False
    helping: bool = False
    paused: bool = False
    message: str = ""

    @cached_property
    def picture(self) -> Picture:
        """What is known now; nothing where that was too long ago."""
        return Picture() if self.is_lost or self.heard.picture is None else self.heard.picture

    @cached_property
    def is_lost(self) -> bool:
        """What was heard last is no longer what is."""
        interval = max(self.interval, self.heard.picture.interval if self.heard.picture else 0.0)
        is_old = self.now - self.heard.at > max(PATIENT_SECONDS, PATIENT_TICKS * interval)
        return bool(self.heard.source) and (self.heard.picture is None or is_old)

    @property
    def knows(self) -> bool:
        return self.picture.at is not None

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """Those that answered before and do not now are missing ones; of all of them nothing is known where nobody
        tells."""
        there = {gpu.number: gpu for gpu in self.picture.gpus}
        there |= {number: replace(gpu, values={}, throttle=(), processes=(), is_missing=self.knows)
                  for number, gpu in self.history.gpus.items() if number not in there}  # fmt: skip
        found = (there[number] for number in sorted(there))
        return tuple(gpu for gpu in found if self._is_asked(gpu) and self._passes(*self._words_of(gpu)))

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Where nobody tells, the names that were told last."""
        asked, told = self.asked.run, self.picture.runs if self.knows else map(Run, self.history.runs)
        return tuple(run for run in told if (not asked or asked in (run.run, run.name))
                     and self._passes(run.run, run.name, run.framework, run.status))  # fmt: skip

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.picture.findings
                     if self._passes(one.name, one.where, one.what, one.severity))  # fmt: skip

    @cached_property
    def users(self) -> dict[str, str]:
        """What runs on each GPU: `r0 demo-gpt`."""
        found: dict[str, str] = {}
        for run in self.picture.runs:
            for rank in run.ranks if run.is_live else ():
                for gpu in rank.gpus:
                    found.setdefault(gpu, f"r{rank.number} {run.run}")
        return found

    @property
    def chosen_gpu(self) -> Gpu | None:
        return self.gpus[self.gpu_place] if self.gpus else None

    @property
    def gpu_place(self) -> int:
        return _place([gpu.number for gpu in self.gpus], self.gpu)

    @property
    def chosen_run(self) -> Run | None:
        return self.runs[self.run_place] if self.runs else None

    @property
    def run_place(self) -> int:
        return _place([run.run for run in self.runs], self.run)

    def with_next_gpu(self, by: int) -> "View":
        return replace(self, gpu=self.gpus[(self.gpu_place + by) % len(self.gpus)].number) if self.gpus else self

    def with_next_run(self, by: int) -> "View":
        return replace(self, run=self.runs[(self.run_place + by) % len(self.runs)].run) if self.runs else self

    def _is_asked(self, gpu: Gpu) -> bool:
        return not self.asked.gpus or gpu.number in self.asked.gpus

    def _words_of(self, gpu: Gpu) -> list[str]:
        people = [word for process in gpu.processes for word in (process.user, process.command, process.pid)]
        return [f"gpu {gpu.number}", f"gpu{gpu.number}", gpu.name, gpu.uuid, *people,
                self.users.get(str(gpu.number), "")]  # fmt: skip

    def _passes(self, *words: str) -> bool:
        wanted = self.filter.casefold()
        return not wanted or any(wanted in word.casefold() for word in words)


def _place(there: Sequence[int | str], wanted: int | str | None) -> int:
    """The first one where the chosen one is not there."""
    return there.index(wanted) if wanted in there else 0
