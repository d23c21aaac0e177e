"""Which steps are looked at, and when what of them is measured.

A round is a step of the optimizer, or one of each where there are several; without one it is a backward. Gradients are
measured at the end of its last backward, before they are clipped: how many backwards there are is known from the round
before. Where that did not come about, they are measured at the step.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainvitals.run.watch_sample import Sample

torch: Any = sys.modules["torch"]

MAX_FRAMES = 16
# More gradients than anybody adds up before a step: it is not seen, as that of a compiled optimizer.
MAX_BACKWARDS = 2000
_SCALING = frozenset({"step", "_maybe_opt_step"})


class Rounds:
    def __init__(
        self, every: int, optimizers: int, begin: Callable[[int], Sample], end: Callable[[Sample], None]
    ) -> None:
        self._every, self._optimizers, self._begin, self._end = every, optimizers, begin, end
        self._done = self._backwards = self._usual_backwards = 0
        self._stepped: set[int] = set()
        self._sample: Sample | None = None

    def sample(self) -> Sample | None:
        """None in a round that is not looked at."""
        if self._sample is None and self._done % self._every == 0:
            self._sample = self._begin(self._done // self._every)
        return self._sample

    def backward_ended(self, number: int) -> None:
        if self._stepped:  # one of several optimizers has stepped: this is for another, or for the next round
            return
        self._backwards += 1
        if self._optimizers and self._backwards > MAX_BACKWARDS:
            raise RuntimeError("the optimizer's steps are not seen: watch the model without it")
        sample = self.sample()
        if sample is not None and self._backwards >= self._usual_backwards:
            sample.take_gradients()
        if not self._optimizers:
            if sample is not None:
                sample.take_parameters()
                sample.number = number
            self._next()

    def step_begins(self, optimizer: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        if id(optimizer) in self._stepped:
            self._next()
        sample = self.sample()
        if sample is None:
            return
        if sample.has_gradients:
            sample.tell_scale(_scale_of_a_scaler_above())
        elif not _has_closure(arguments, named):
            sample.take_gradients(getattr(optimizer, "grad_scale", None))
        sample.before_step(optimizer)

    def step_ends(self, optimizer: Any, number: int) -> None:
        sample = self.sample()
        if sample is not None:
            if not sample.has_gradients:
                sample.take_gradients()
            sample.after_step(optimizer)
            sample.number = number
        self._stepped.add(id(optimizer))
        if len(self._stepped) >= self._optimizers:
            self._next()

    def forget(self) -> None:
        self._sample = None

    def _next(self) -> None:
        sample, self._sample = self._sample, None
        self._done += 1
        self._usual_backwards = self._backwards if self._optimizers else 0
        self._backwards = 0
        self._stepped.clear()
        if sample is not None:
            self._end(sample)


def _has_closure(arguments: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """It does the backward itself: until then there are the gradients of the step before."""
    return any(map(callable, arguments[1:])) or named.get("closure") is not None


def _scale_of_a_scaler_above() -> Any:
    """A GradScaler calls the optimizer, and is not known to it: it is found among the callers."""
    frame = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame.f_code.co_name in _SCALING and isinstance(frame.f_locals.get("self"), torch.amp.GradScaler):
            return frame.f_locals["self"]._scale
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None
