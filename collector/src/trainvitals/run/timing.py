"""Where the time of a step goes: the step itself, the wait for data, and phases, in wall time of the training thread.

What is measured between the end of one step and the end of the next belongs to the later one:
    {"step_duration_seconds": 0.51, "data_wait_seconds": 0.03, "forward_seconds": 0.2}
"""

from collections.abc import Callable, Iterator
from sys import getrefcount
from threading import get_ident
from time import perf_counter as clock

from trainvitals.run import cuda
from trainvitals.run.endings import verdict
from trainvitals.run.here import Here
from trainvitals.run.off import Untimed

Seconds = dict[str, float]
# Phases that may last: who waits for the next step is told of them.
ANNOUNCED = frozenset({"checkpoint", "evaluation"})
# What a GPU does in its own time, so that the host's clock would only see it being asked to.
_ON_THE_DEVICE = frozenset({"forward", "backward", "optimizer"})
# References to what only the timer has: its own, and the question's.
_OURS = 2


class Timer:
    """One run's clockwork. Only the thread that does the steps is timed: what happens beside it costs no wall time."""

    def __init__(self, write: Callable[[int, Seconds], None], announce: Callable[[str, bool], None],
                 failed: Callable[[BaseException], None]) -> None:  # fmt: skip
        self.number = 0
        self.is_used = self.is_numbered = False
        self.begun = 0
        # The end of a step whose line is not written yet: its number and its times.
        self.ended: list[tuple[int, Seconds]] = []
        # How the last step failed, in words: the exception itself would keep all that its frames hold.
        self.failure: tuple[str, str] | None = None
        self.waited = 0.0
        self.spent: Seconds = {}
        self.open: list[Phase] = []
        self.timed: set[str] = set()
        self.later: list[tuple[int, str, cuda.Span]] = []
        self.thread = get_ident()
        self._depth = self._logged = 0
        self._began = 0.0
        self._holder: object = None
        self._write, self.announce, self._failed = write, announce, failed

    def begin(self, holder: object = None) -> None:
        """A step within a step is part of it. `holder`: what a `with` holds as long as it is in the step."""
        if self._depth and not self._is_left_by(holder):
            self._depth += 1
            return
        if self.ended:
            self.flush()
        if not self.is_used:
            self._first()
        self.number += 1
        self.begun += 1
        self.thread = get_ident()
        self._holder = holder
        self._began = clock()
        self._depth = 1

    def _is_left_by(self, holder: object) -> bool:
        """An exception of a signal's handler that comes just where a step begins or ends leaves it open for good: then
        nobody but us has its holder, or it begins once more."""
        return self._holder is not None and (self._holder is holder or getrefcount(self._holder) <= _OURS)

    def _first(self) -> None:
        """What was logged before the first step was none itself."""
        self.is_used = True
        if not self.is_numbered:
            self.number -= self._logged

    def begin_anew(self) -> None:
        """For who has callbacks: after an exception nobody says that the step ended."""
        self._depth = 0
        self.begin()

    def end(self, error: BaseException | None = None) -> None:
        if self._depth != 1:
            self._depth = max(0, self._depth - 1)
            return
        took: Seconds = {"step_duration_seconds": clock() - self._began}
        self._depth = 0
        self._holder = None
        if self.waited:
            took["data_wait_seconds"] = self.waited
            self.waited = 0.0
        if self.spent:
            took |= self.spent
            self.spent, self.timed = {}, set()
        self.failure = None if error is None else self._verdict(error)
        self.ended.append((self.number, took))

    def _verdict(self, error: BaseException) -> tuple[str, str]:
        """An exception may hold what fails when it is looked at."""
        try:
            return verdict(error)
        except Exception:
            return "crashed", type(error).__name__

    def count(self, number: int | None) -> None:
        """The next step's number, where the run has its own."""
        if number is not None and self._depth == 0:
            if self.ended:
                self.flush()
            self.number = number - 1
            self.is_numbered = True

    def go_on(self, last_step: int) -> None:
        """After the last step of a run that is resumed; steps may have been counted from 0 meanwhile."""
        if not self.is_numbered:
            self.number += last_step

    def flush(self) -> None:
        """The times of a step that no `log` came after, and what no step ended after."""
        try:
            while self.ended:
                self._write(*self.ended.pop(0))
        except Exception as error:
            self._failed(error)

    def take(self, step: int | None) -> tuple[int, Seconds | None]:
        """For a `log`: which step it speaks of, and the times that go into its line."""
        if not self.is_used:  # where nobody says what a step is, each `log` is one
            self._logged = self._logged + 1 if step is None else 0
            self.number = number = self.number + 1 if step is None else step
            rests = (self.spent or self.waited) and self.thread == get_ident()
            return number, self.rest() if rests else None
        if step is not None and not self._adopts(step):
            return step, None
        try:
            number, took = self.ended.pop()
        except IndexError:  # none has ended, or another thread's `log` was first
            return (self.number if step is None else step), None
        return (number if step is None else step), took

    def _adopts(self, step: int) -> bool:
        """The step under way, or the one that ended last, by the number that the run gives it: counted from 0, say, or
        resumed. Then ours follows. A number from far behind counts something else, as epochs; how far the first one may
        lie behind, the steps tell that were done here."""
        if not (self.ended or self._depth) or step < (self.number if self.is_numbered else self.begun) - 1:
            return False
        self.is_numbered = True
        self.number = step
        return True

    def add(self, **seconds: float) -> None:
        """Times that were taken by somebody else; a phase that the run itself times is not counted twice."""
        for name, value in seconds.items():
            if name not in self.timed:
                self.spend(name, value)

    def spend(self, name: str, seconds: float) -> None:
        key = f"{name}_seconds"
        self.spent[key] = self.spent.get(key, 0.0) + seconds

    def rest(self) -> Seconds:
        """What was measured since the last step's end."""
        rest, self.spent, self.timed = self.spent, {}, set()
        if self.waited:
            rest["data_wait_seconds"] = self.waited
            self.waited = 0.0
        return rest

    def device_span(self) -> cuda.Span | None:
        try:
            return cuda.span() if cuda.is_used() else None
        except Exception as error:
            self._failed(error)
            return None

    def hold(self, name: str, span: cuda.Span) -> None:
        """A GPU that failed says so to whoever asks it next; that is not to be us."""
        try:
            span.close()
            self.later.append((self.number, name, span))
        except Exception as error:
            self._failed(error)

    def arrived(self) -> Iterator[tuple[int, Seconds]]:
        """Times of a GPU's work that is done by now."""
        while self.later:
            first = step, name, span = self.later.pop(0)
            try:
                seconds = span.seconds()
            except Exception as error:
                self._failed(error)
                continue
            if seconds is None:
                self.later.insert(0, first)
                return
            yield step, {f"{name}_seconds": seconds}


class Step(Here):
    """`with run.step():`. Near the limit of recursion it is not timed, and gets in no one's way."""

    __slots__ = ("_timer",)
    _elsewhere = Untimed

    def __init__(self, timer: Timer) -> None:
        self._timer = timer

    def __enter__(self) -> None:
        try:
            self._timer.begin(self)
        except RecursionError:
            return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._timer.end(error)
        except RecursionError:
            return


class Phase(Here):
    """`with run.phase("evaluation"):`. Within another phase it takes its time from that one."""

    __slots__ = ("_began", "_inner", "_name", "_span", "_timer")
    _elsewhere = Untimed

    def __init__(self, timer: Timer, name: str) -> None:
        self._timer, self._name = timer, name
        self._inner = 0.0
        self._span: cuda.Span | None = None

    def __enter__(self) -> None:
        timer, name = self._timer, self._name
        if name in ANNOUNCED:
            timer.announce(name, True)
        if timer.thread == get_ident():
            timer.open.append(self)
            if name in _ON_THE_DEVICE:
                self._span = timer.device_span()
        self._inner = 0.0
        self._began = clock()

    def __exit__(self, *_: object) -> None:
        took = clock() - self._began
        timer, name = self._timer, self._name
        opened = timer.open
        if opened and opened[-1] is self:
            opened.pop()
            if opened:
                opened[-1]._inner += took
            timer.timed.add(name)
            if self._span is None:
                timer.spend(name, took - self._inner)
            else:
                timer.hold(name, self._span)
        if name in ANNOUNCED:
            timer.announce(name, False)
