"""One rule, and how it stands with what it is asked of: a run, a GPU, the host.

state.says(rule, holds=True, when, step)  ->  whether it is to be told now, given `for` and `cooldown`
"""

import math
from dataclasses import dataclass, field

from trainvitals.detect.finding import Finding, Place
from trainvitals.detect.rules.closures import Values
from trainvitals.detect.rules.expression import Expression, Windowed
from trainvitals.detect.rules.fields import SCOPES, field_of, scope_of
from trainvitals.detect.rules.message import Message, Texts, plain
from trainvitals.detect.rules.spans import AT_ONCE, Span
from trainvitals.model import Severity

# A finding stays open for so long after it was told last, or three times as long as the rule waits to be asked again.
LEAST_STAY = 60.0
MOST_STAY = 6 * 3600.0


@dataclass(slots=True, eq=False)
class Rule:
    name: str
    when: Expression
    severity: Severity = "ticket"
    lasting: Span = AT_ONCE
    message: Message | None = None
    cooldown: float = 300.0
    advice: str = ""
    # Rules that are asked the same stand the same, whatever they say.
    key: tuple[object, ...] = field(init=False)
    # Whose lines it is asked with.
    scope: str = field(init=False)
    is_mixed: bool = field(init=False)
    # Fields of its scope of which a line must tell one for it to be asked; none: it is asked of each line.
    told_by: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.name, self.when.text, self.lasting, self.cooldown
        self.scope = next(scope for scope in SCOPES if scope in self.when.scopes)
        self.is_mixed = any(expression.scopes - {self.scope} for expression in self.expressions)
        self.told_by = frozenset(field_of(key) for key in self.when.told_by if scope_of(key) == self.scope)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (self.when, *self.message.expressions) if self.message else (self.when,)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for expression in self.expressions for name in expression.names)

    @property
    def windows(self) -> tuple[Windowed, ...]:
        return tuple(window for expression in self.expressions for window in expression.windows)

    def finding(self, values: Values, texts: Texts, place: Place, step: int | None, stays: float) -> Finding:
        sides = self.when.sides
        value, threshold = (sides[0](values), sides[1](values)) if sides else (None, None)
        what = self.message.shown(values, texts) if self.message else self._words(value)
        return Finding(self.name, self.severity, what, value, threshold, place, step, stays, self.advice)

    def _words(self, value: float | None) -> str:
        return self.when.text if value is None else f"{self.when.text}: it is {plain(value)}"


@dataclass(slots=True)
class State:
    # When the last step was first asked, or the reading.
    asked: float | None = None
    asked_step: int | None = None
    stays: float = LEAST_STAY
    # Since when the condition holds, in how many steps, and the last of them.
    since: float | None = None
    steps: int = 0
    step: int | None = None
    opened: float | None = None
    # As it was told.
    open_until: float = -math.inf

    def says(self, rule: Rule, holds: bool | None, when: float, step: int | None) -> bool:
        """What nobody knows changes nothing."""
        if holds is None:
            return False
        if step is None or step != self.asked_step:
            self._note_pace(when, step)
        if not holds:
            self.since, self.steps = None, 0
            return False
        if self.since is None:
            self.since, self.step = when, None
        self.since = min(self.since, when)  # a clock may be set back
        if step is None or step != self.step:
            self.steps, self.step = self.steps + 1, step
        if self.steps < rule.lasting.steps or when - self.since < rule.lasting.seconds:
            return False
        return self._is_due(rule, when)

    def _note_pace(self, when: float, step: int | None) -> None:
        if self.asked is not None:
            self.stays = min(max(LEAST_STAY, 3 * (when - self.asked)), MOST_STAY)
        self.asked, self.asked_step = when, step

    def _is_due(self, rule: Rule, when: float) -> bool:
        if when > self.open_until:
            if self.opened is not None and 0 <= when - self.opened < rule.cooldown:
                return False
            self.opened = when
        self.open_until = when + self.stays
        return True
