"""What an expression is compiled to: functions of the values known now. None is unknown, and what follows from it is.

compared(named("run.loss"), ">", constant(2.0))({"run.loss": 3.0})  ->  True
"""

import operator
from collections.abc import Callable, Mapping, Sequence

Values = Mapping[str, float]
Ask = Callable[[Values], float | None]
Test = Callable[[Values], bool | None]

COMPARES: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
REFLECTED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_SUMS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip
_QUOTIENTS: dict[str, Callable[[float, float], float]] = {"/": operator.truediv, "%": operator.mod}
OPERATORS = frozenset((*_SUMS, *_QUOTIENTS))


def constant(number: float) -> Ask:
    return lambda values: number


def named(key: str) -> Ask:
    return lambda values: values.get(key)


def calculated(one: Ask, sign: str, other: Ask) -> Ask:
    if sign in _QUOTIENTS:
        return _divided(one, _QUOTIENTS[sign], other)
    work = _SUMS[sign]

    def ask(values: Values) -> float | None:
        left = one(values)
        if left is None:
            return None
        right = other(values)
        return None if right is None else work(left, right)

    return ask


def _divided(one: Ask, work: Callable[[float, float], float], other: Ask) -> Ask:
    """By nothing: nobody knows."""

    def ask(values: Values) -> float | None:
        left, right = one(values), other(values)
        return None if left is None or not right else work(left, right)

    return ask


def negative(one: Ask) -> Ask:
    return lambda values: None if (number := one(values)) is None else -number


def absolute(one: Ask) -> Ask:
    return lambda values: None if (number := one(values)) is None else abs(number)


def compared(one: Ask, sign: str, other: Ask) -> Test:
    compare = COMPARES[sign]

    def ask(values: Values) -> bool | None:
        left = one(values)
        if left is None:
            return None
        right = other(values)
        return None if right is None else compare(left, right)

    return ask


def every(tests: Sequence[Test]) -> Test:
    """False as soon as one is, whatever is unknown of the others."""

    def ask(values: Values) -> bool | None:
        result: bool | None = True
        for test in tests:
            found = test(values)
            if found is False:
                return False
            if found is None:
                result = None
        return result

    return ask


def either(tests: Sequence[Test]) -> Test:
    def ask(values: Values) -> bool | None:
        result: bool | None = False
        for test in tests:
            found = test(values)
            if found:
                return True
            if found is None:
                result = None
        return result

    return ask


def opposite(test: Test) -> Test:
    return lambda values: None if (found := test(values)) is None else not found


def is_known(one: Ask) -> Test:
    return lambda values: one(values) is not None


def checked(one: Ask, check: Callable[[float], bool]) -> Test:
    return lambda values: None if (number := one(values)) is None else check(number)
