"""What the integrations share: the run of one training, and looking into a framework where it offers no hook.

training = Training("keras", name="mnist")
training.begin("model", done=0, config={"epochs": 3})       # the run that is current, else one of its own
training.run.log(loss=2.3)
training.end()                                              # ends what it began
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import update_wrapper
from types import FrameType
from typing import Any
from weakref import WeakSet

from trainvitals.run import Run, current, start
from trainvitals.run.harmless import warn
from trainvitals.run.off import OffRun

# A run that an integration began is nobody else's: where it is still there, its training failed or goes on elsewhere.
_begun: "WeakSet[Any]" = WeakSet()


class Training:
    def __init__(self, framework: str, name: str | None, options: dict[str, Any]) -> None:
        self.run: Run = OffRun()  # type: ignore[assignment]
        # What a trainer's own count of steps lies behind the run's.
        self.before = 0
        self._framework, self._name, self._options = framework, name, options
        self._has_warned = False

    def __deepcopy__(self, memo: object) -> "Training":
        """The options stay whose they are."""
        return copy(self)

    @property
    def is_ours(self) -> bool:
        return self.run in _begun

    def begin(self, name: str, done: int, *, config: object = None, planned_steps: int | None = None,
              **found: Any) -> None:  # fmt: skip
        """`done`: the steps a checkpoint brings, after which it is the same run again. Its own run that has not ended
        goes on: some trainers begin anew with a smaller batch."""
        if self.is_ours and self.run.status == "running":
            self.before = 0
            return
        run = current()
        is_theirs = run.status == "running" and run not in _begun
        if not is_theirs:
            told = {"config": config, "framework": self._framework, "planned_steps": planned_steps}
            run = start(self._name or name, **{**told, "resume": done > 0, **found, **self._options})
            _begun.add(run)
        self.run = run
        # A second training within a run that the user began counts on from the first.
        self.before = run.number if done == 0 else 0
        if is_theirs:
            run.describe(config, framework=self._framework)
        if is_theirs or self.before:
            self.plan(planned_steps)

    def plan(self, steps: int | None) -> None:
        """As the trainer counts them; what the user said holds."""
        if steps is not None and "planned_steps" not in self._options:
            self.run.describe(planned_steps=self.before + steps)

    def end(self) -> None:
        if self.is_ours:
            self.run.finish()

    def crash(self, error: BaseException) -> None:
        """For a trainer that tells of the exception that ends it."""
        if self.is_ours:
            self.run.crash(error)

    def failed(self, error: BaseException) -> None:
        if self.run.status != "off":
            self.run.failed(error)
        elif not self._has_warned:
            self._has_warned = True
            warn(error)


def samples_in(batch: Any) -> int:
    """By the first tensor there is."""
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return next((count for item in batch if (count := samples_in(item))), 0)
    shape: Any = getattr(batch, "shape", ())
    return int(shape[0]) if len(shape) else 0


def callers() -> Iterator[Mapping[str, Any]]:
    """What the functions that led here hold, the nearest first: for an object that a framework does not give."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_locals
        frame = frame.f_back


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    """Puts `make(what is there)` in the place of a method of one object; gives back what undoes it."""
    own = vars(owner).get(name)
    original = getattr(owner, name)
    mine = _InPlace(original, make(original))
    setattr(owner, name, mine)
    return _Undo(owner, name, mine, own)


class _InPlace:
    """In a copy of its owner, and where that is sent to, it is what was there before."""

    def __init__(self, original: Any, act: Callable[..., Any]) -> None:
        update_wrapper(self, original)
        self._act = act

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        return self._act(*arguments, **more)

    def __reduce__(self) -> Any:
        return _itself, (self.__wrapped__,)  # type: ignore[attr-defined]


def _itself(original: Any) -> Any:
    return original


class _Undo:
    """A copy undoes nothing, and has no hold on the owner."""

    def __init__(self, owner: Any = None, name: str = "", mine: Any = None, own: Any = None) -> None:
        self._owner, self._name, self._mine, self._own = owner, name, mine, own

    def __call__(self) -> None:
        if self._mine is None or vars(self._owner).get(self._name) is not self._mine:  # somebody else stands before it
            return
        if self._own is None:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._own)

    def __reduce__(self) -> Any:
        return _Undo, ()


class OfTraining:
    """What a framework's callback has by its training."""

    _training: Training

    @property
    def run(self) -> Run:
        return self._training.run

    def failed(self, error: BaseException) -> None:
        self._training.failed(error)
