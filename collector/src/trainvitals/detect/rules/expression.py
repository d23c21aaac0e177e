"""An expression that was parsed, and the parts that it is put together from."""

from dataclasses import dataclass, field
from typing import NamedTuple, cast

from trainvitals.detect.rules.closures import Ask, Test
from trainvitals.detect.rules.fields import scope_of
from trainvitals.detect.rules.spans import Span


class Part(NamedTuple):
    """`sides`: of the first comparison, so that a finding can say how far it is over."""

    ask: Ask | Test
    at: int
    is_condition: bool = False
    is_nan: bool = False
    sides: tuple[Ask, Ask] | None = None

    @property
    def number(self) -> Ask:
        return cast(Ask, self.ask)

    @property
    def condition(self) -> Test:
        return cast(Test, self.ask)


class Windowed(NamedTuple):
    """A window of an expression: its value is known under its key, as a field is."""

    key: str
    kind: str
    span: Span
    argument: Ask
    scope: str
    # Fields of which a line must tell one for a value to be taken; none: each line will do.
    told_by: frozenset[str]


@dataclass(slots=True)
class Uses:
    names: set[str] = field(default_factory=set)
    # But for what is only looked whether it is known, and the step, which every line tells.
    told_by: set[str] = field(default_factory=set)


class Expression(NamedTuple):
    """A condition, or a number: `test` and `ask` are the same function by what it gives."""

    text: str
    ask: Ask
    test: Test
    names: frozenset[str]
    told_by: frozenset[str]
    windows: tuple[Windowed, ...]
    sides: tuple[Ask, Ask] | None

    @property
    def scopes(self) -> frozenset[str]:
        return frozenset(map(scope_of, self.names))
