"""A log that is more than plain numbers, made into a line: what fails, waits or is too long costs itself.

{"step": 3, "loss": tensor(2.5), "ids": [0] * 9999}  ->  {"step":3,"loss":2.5,"ids":"<list of more than 1000 entries>"}
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

from trainvitals.journal.record import encode
from trainvitals.run import names
from trainvitals.run import values as values_of
from trainvitals.run.bounds import is_afar
from trainvitals.run.harmless import let_through
from trainvitals.run.values import Failed, Later, Refused, Values

MAX_NAMES = 10_000


class Lines:
    def __init__(self, later: Later, failed: Failed, warn: Callable[[str, str], None]) -> None:
        self._later, self._failed, self._warn = later, failed, warn

    def of(self, record: Values) -> bytes:
        settled = values_of.settle(record, record["step"], self._later, self._failed, self._cut)
        record.clear()
        record.update(settled)
        return values_of.line_of(record)

    def named(self, values: Values, step: Any) -> tuple[Values, int | None]:
        """The values under the journal's names, and the step that is given beside them or among them."""
        if not values.keys() <= names.own:
            if len(values) > MAX_NAMES:
                self._cut()
                values = dict(islice(values.items(), MAX_NAMES))
            values = names.fold_all(values)
            among = values.pop("step", None)
            step = among if step is None else step
        return values, step if step is None or (type(step) is int and step >= 0) else self.step(step)

    def shorter(self, record: Values) -> bytes:
        self._cut()
        return encode(values_of.shortened(record))

    def fields(self, given: Values) -> Values:
        """Of an event, for which a list may be longer than in a log: a histogram is one."""
        return values_of.shortened(values_of.settle(given, 0, None, self._failed, self._cut, values_of.MAX_TEXT // 2))

    def step(self, given: Any) -> int | None:
        try:
            number = -1 if is_afar(given) else int(given)
        except Exception as error:
            let_through(error)
            number = -1
        if number >= 0:
            return number
        told = given if type(given) is int else type(given).__name__
        self._failed(Refused(f"a step is a number at hand from 0 on, not {told}"))
        return None

    def _cut(self) -> None:
        self._warn("long", "a record of more than 64 KiB or 1000 entries is cut: long text and lists are not for `log`")
