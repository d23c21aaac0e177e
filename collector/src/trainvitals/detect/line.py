"""A training line as detectors take it: when, which step, how long it took, and all that it holds."""

from math import isfinite
from typing import NamedTuple

from trainvitals.detect.rates import Rates
from trainvitals.journal.record import Record, as_number


class Line(NamedTuple):
    """`took` and what follows are None where nobody says, or where it is no finite number: that is somebody else's."""

    when: float
    step: int
    values: Record
    # Of the step, in seconds.
    took: float | None = None
    # The run has done nearly all the steps it planned.
    at_end: bool = False
    # Those that many look at, looked up once.
    loss: float | None = None
    gradient_norm: float | None = None
    learning_rate: float | None = None
    # Of the rank that tells the loss, this line's among them.
    rates: Rates | None = None

    def number(self, name: str) -> float | None:
        return finite(self.values, name)


def finite(values: Record, name: str) -> float | None:
    value = values.get(name)
    if type(value) is float:
        return value if value - value == 0.0 else None
    number = as_number(value) if type(value) is int else None
    return number if number is not None and isfinite(number) else None
