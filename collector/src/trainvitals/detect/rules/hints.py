"""Names that no line of a run tells: a slip of the pen would otherwise keep a rule silent for ever.

rule 'Hot loss': run gemma told no 'targt' in its first 200 lines; the nearest that it tells is 'target'
"""

import difflib
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from trainvitals.detect.rules.fields import field_of, scope_of
from trainvitals.detect.rules.rule import Rule

PATIENCE_LINES = 200

log = logging.getLogger("trainvitals.rules")


class Hints:
    def __init__(self, rules: Iterable[Rule]) -> None:
        self.told: list[str] = []
        # Names that were not seen yet -> the first rule that has them.
        self._unseen: dict[str, str] = {}
        self._lines: dict[str, int] = {}
        for rule in rules:
            for key in frozenset().union(*(expression.told_by for expression in rule.expressions)):
                if scope_of(key) == "run":
                    self._unseen.setdefault(field_of(key), rule.name)

    def look(self, run: str, record: Mapping[str, Any]) -> None:
        if not self._unseen:
            return
        for name in self._unseen.keys() & record.keys():
            del self._unseen[name]
        lines = self._lines[run] = self._lines.get(run, 0) + 1
        if lines >= PATIENCE_LINES:
            self._tell(run, record)

    def forget(self, run: str) -> None:
        self._lines.pop(run, None)

    def _tell(self, run: str, record: Mapping[str, Any]) -> None:
        for name, rule in self._unseen.items():
            near = difflib.get_close_matches(name, [str(each) for each in record][:200], n=1)
            words = f"; the nearest that it tells is {near[0]!r}" if near else ""
            self.told.append(f"rule {rule!r}: run {run} told no {name!r} in its first {PATIENCE_LINES} lines{words}")
            log.warning("%s", self.told[-1])
        self._unseen.clear()
        self._lines.clear()
