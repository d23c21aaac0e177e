"""What rules are asked about: a rank of a run, a GPU, the host. Its values, its windows, and how each rule stands.

Memory is bounded: values are kept of the fields alone that rules name.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from trainvitals.detect.rules.expression import Windowed
from trainvitals.detect.rules.fields import field_of
from trainvitals.detect.rules.rule import Rule, State
from trainvitals.detect.rules.windows import WINDOWS, Window
from trainvitals.journal.record import as_number

MAX_TEXT = 200


class Plan:
    """What of a scope's lines is taken."""

    def __init__(self, scope: str, rules: Iterable[Rule]) -> None:
        rules = list(rules)
        keys = sorted(name for rule in rules for name in rule.names if name.startswith(f"{scope}."))
        self.names = {field_of(key): key for key in keys}
        windows = {window.key: window for rule in rules for window in rule.windows if window.scope == scope}
        # The fields that tell it, bare, beside each; what a window is over comes before it.
        self.windows = [(window, frozenset(map(field_of, window.told_by))) for window in windows.values()]


class Subject:
    def __init__(self) -> None:
        self.when = 0.0
        # What was told last of each field, and each window's value.
        self.values: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        self._windows: dict[str, Window] = {}
        self._taken: dict[str, int | None] = {}
        self.states: dict[tuple[object, ...], State] = {}

    def take(self, plan: Plan, when: float, line: Mapping[str, Any], step: int | None = None) -> None:
        self.when = when
        for field, key in plan.names.items():
            if field in line:
                self._note(key, line[field])
        told = line.keys()
        for window, told_by in plan.windows:
            if not told_by or not told.isdisjoint(told_by):
                self._push(window, when, step)

    def state(self, rule: Rule) -> State:
        found = self.states.get(rule.key)
        if found is None:
            found = self.states[rule.key] = State()
        return found

    def keep(self, plan: Plan, rules: Iterable[Rule]) -> None:
        """What other rules do not ask for is dropped."""
        windows, states = {window.key for window, _ in plan.windows}, {rule.key for rule in rules}
        known = windows.union(plan.names.values())
        self.values = {key: value for key, value in self.values.items() if key in known}
        self.texts = {key: text for key, text in self.texts.items() if key in known}
        self._windows = {key: window for key, window in self._windows.items() if key in windows}
        self.states = {key: state for key, state in self.states.items() if key in states}

    def _note(self, key: str, told: Any) -> None:
        """None is what has become unknown."""
        value = float(told) if isinstance(told, bool) else as_number(told)
        if value is not None:
            self.values[key] = value
            return
        self.values.pop(key, None)
        self.texts.pop(key, None)
        if isinstance(told, str):
            self.texts[key] = told[:MAX_TEXT]

    def _push(self, window: Windowed, when: float, step: int | None) -> None:
        """Once a step; nan and infinities have no place in a mean."""
        if step is not None and self._taken.get(window.key) == step:
            return
        value = window.argument(self.values)
        if value is None or value - value != 0.0:
            return
        self._taken[window.key] = step
        held = self._windows.get(window.key)
        if held is None:
            held = self._windows[window.key] = WINDOWS[window.kind](window.span)
        held.push(float(step) if step is not None and window.span.steps else when, value)
        if (known := held.value()) is not None:
            self.values[window.key] = known
        else:
            self.values.pop(window.key, None)
