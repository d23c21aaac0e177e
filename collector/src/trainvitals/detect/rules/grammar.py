"""An expression, parsed: `loss > 2 * target and step > 500`

condition  = both { "or" both }            both  = not_ { "and" not_ }           not_ = "not" not_ | comparison
comparison = sum { ("<" … "!=") sum }      sum   = product { ("+" | "-") product }
product    = sign { ("*" | "/" | "%") sign }     sign = ("-" | "+") sign | atom
atom       = number | name | "(" condition ")" | function "(" … ")" | window "(" sum "," span ")"

A condition is no number and a number no condition: which it is is known before anything is asked.
"""

import math
from collections.abc import Callable

from trainvitals.detect.rules import closures, fields
from trainvitals.detect.rules.closures import Test
from trainvitals.detect.rules.errors import ExpressionError
from trainvitals.detect.rules.expression import Expression, Part, Uses, Windowed
from trainvitals.detect.rules.spans import SECONDS, Span, span
from trainvitals.detect.rules.tokens import Token, tokens
from trainvitals.detect.rules.windows import WINDOWS

MAX_DEPTH = 30
MAX_PARTS = 200
_CHECKS: dict[str, Callable[[float], bool]] = {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite}
FUNCTIONS = ("abs", "known", *_CHECKS, *WINDOWS)
_WORDS = ("and", "or", "not")
_NUMBERS = {"nan": math.nan, "inf": math.inf}


def condition(text: str) -> Expression:
    return _Parser(text).whole(is_condition=True)


def number(text: str) -> Expression:
    return _Parser(text).whole(is_condition=False)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._at = text, tokens(text), 0
        self._depth = self._parts = 0
        self._uses = Uses()
        self._windows: dict[str, Windowed] = {}

    def whole(self, is_condition: bool) -> Expression:
        part = self._either()
        if self._next.kind != "end":
            raise ExpressionError(self._next.at, f"{self._next.text!r} is not expected here",
                                  "write an operator before it, or leave it out")  # fmt: skip
        (self._require_condition if is_condition else self._require_number)(part)
        if is_condition and not self._uses.names:
            raise ExpressionError(0, "it asks for nothing that a line tells", "name a field, as loss")
        return Expression(self._text, part.number, part.condition, frozenset(self._uses.names),
                          frozenset(self._uses.told_by), tuple(self._windows.values()), part.sides)  # fmt: skip

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _takes(self, kind: str, *texts: str) -> Token | None:
        token = self._next
        return self._take() if token.kind == kind and token.text in texts else None

    def _require(self, sign: str, fix: str) -> None:
        if not self._takes("sign", sign):
            raise ExpressionError(self._next.at, f"{sign!r} is wanted here", fix)

    def _require_condition(self, part: Part) -> None:
        if not part.is_condition:
            raise ExpressionError(part.at, "this is a number, not a condition", "compare it, as `loss > 2`")

    def _require_number(self, part: Part) -> None:
        if part.is_condition:
            raise ExpressionError(part.at, "this is a condition, not a number", "write a name or a number")

    def _deeper(self, parse: Callable[[], Part], at: int) -> Part:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(at, f"it is nested deeper than {MAX_DEPTH}", "make two rules of it")
        part = parse()
        self._depth -= 1
        return part

    def _count(self, at: int) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise ExpressionError(at, f"it has more than {MAX_PARTS} parts", "make two rules of it")

    def _either(self) -> Part:
        return self._joined("or", self._both, closures.either)

    def _both(self) -> Part:
        return self._joined("and", self._not, closures.every)

    def _joined(self, word: str, parse: Callable[[], Part], join: Callable[[list[Test]], Test]) -> Part:
        first = parse()
        parts = [first]
        while self._takes("name", word):
            parts.append(parse())
        if len(parts) == 1:
            return first
        for part in parts:
            self._require_condition(part)
        sides = next((part.sides for part in parts if part.sides), None)
        return Part(join([part.condition for part in parts]), first.at, is_condition=True, sides=sides)

    def _not(self) -> Part:
        word = self._takes("name", "not")
        if word is None:
            return self._comparison()
        part = self._deeper(self._not, word.at)
        self._require_condition(part)
        return Part(closures.opposite(part.condition), word.at, is_condition=True, sides=part.sides)

    def _comparison(self) -> Part:
        first = self._sum()
        tests, left, sides = [], first, None
        while sign := self._takes("sign", *closures.COMPARES):
            right = self._sum()
            for side in (left, right):
                self._require_number(side)
                if side.is_nan:
                    raise ExpressionError(side.at, "nothing is equal to nan, nor more or less",
                                          "write isnan(…)")  # fmt: skip
            tests.append(closures.compared(left.number, sign.text, right.number))
            sides = sides or (left.number, right.number)
            left = right
        if not tests:
            return first
        return Part(tests[0] if len(tests) == 1 else closures.every(tests), first.at, is_condition=True, sides=sides)

    def _sum(self) -> Part:
        return self._calculated(self._product, "+", "-")

    def _product(self) -> Part:
        return self._calculated(self._signed, "*", "/", "%")

    def _calculated(self, parse: Callable[[], Part], *signs: str) -> Part:
        part = parse()
        while sign := self._takes("sign", *signs):
            other = parse()
            self._require_number(part)
            self._require_number(other)
            part = Part(closures.calculated(part.number, sign.text, other.number), part.at)
        return part

    def _signed(self) -> Part:
        sign = self._takes("sign", "-", "+")
        if sign is None:
            return self._atom()
        part = self._deeper(self._signed, sign.at)
        self._require_number(part)
        return part if sign.text == "+" else Part(closures.negative(part.number), sign.at, is_nan=part.is_nan)

    def _atom(self) -> Part:
        token = self._take()
        self._count(token.at)
        if token.kind == "number":
            return self._number(token)
        if token.kind == "quoted":
            return self._field(f"run.{token.text}", token)
        if token.kind == "name" and token.text not in _WORDS:
            return self._function(token) if self._takes("sign", "(") else self._name(token)
        if token.kind == "sign" and token.text == "(":
            part = self._deeper(self._either, token.at)
            self._require(")", "close the parenthesis")
            return part
        raise ExpressionError(token.at, "a value is wanted here", "write a name, a number or a parenthesis")

    def _number(self, token: Token) -> Part:
        value = float(token.text)
        if math.isinf(value):
            raise ExpressionError(token.at, "the number is too large", "write inf, or a number below 1e308")
        return Part(closures.constant(value), token.at)

    def _name(self, token: Token) -> Part:
        if token.text in _NUMBERS:
            return Part(closures.constant(_NUMBERS[token.text]), token.at, is_nan=token.text == "nan")
        if self._next.text != "." or self._next.kind != "sign":
            return self._field(fields.key(token.text), token)
        dot, name = self._take(), self._take()
        if token.text not in fields.SCOPES or name.kind != "name":
            raise ExpressionError(dot.at, "a dot stands only after run, gpu or host",
                                  "write a name that holds one in backquotes")  # fmt: skip
        if (nearest := fields.nearest(token.text, name.text)) is not None:
            raise ExpressionError(name.at, f"no line of a {token.text} has {name.text!r}",
                                  f"the nearest is {nearest}")  # fmt: skip
        return self._field(f"{token.text}.{name.text}", token)

    def _field(self, key: str, token: Token) -> Part:
        self._uses.names.add(key)
        if key != "run.step":
            self._uses.told_by.add(key)
        return Part(closures.named(key), token.at)

    def _function(self, name: Token) -> Part:
        if name.text in WINDOWS:
            return self._deeper(lambda: self._window(name), name.at)
        if name.text not in FUNCTIONS:
            raise ExpressionError(name.at, f"there is no function {name.text!r}",
                                  f"known here: {', '.join(FUNCTIONS)}")  # fmt: skip
        part, uses = self._within(lambda: self._deeper(self._sum, name.at))
        self._require_number(part)
        self._require(")", f"close the parenthesis: {name.text} takes one value")
        if name.text == "known":
            return Part(closures.is_known(part.number), name.at, is_condition=True)
        self._uses.told_by |= uses.told_by
        if name.text == "abs":
            return Part(closures.absolute(part.number), name.at, is_nan=part.is_nan)
        return Part(closures.checked(part.number, _CHECKS[name.text]), name.at, is_condition=True)

    def _within(self, parse: Callable[[], Part]) -> tuple[Part, Uses]:
        """What stands within a function, and what that uses; by what a line asks for it, the caller says."""
        outer, self._uses = self._uses, Uses()
        part = parse()
        inner, self._uses = self._uses, outer
        outer.names |= inner.names
        return part, inner

    def _window(self, name: Token) -> Part:
        begin = self._at
        part, uses = self._within(self._sum)
        self._require_number(part)
        scopes = set(map(fields.scope_of, uses.names))
        if len(scopes) != 1:
            raise ExpressionError(part.at, "a window is over what one of run, gpu and host tells",
                                  "name a field of one of them")  # fmt: skip
        text = " ".join(token.written for token in self._tokens[begin : self._at])
        self._require(",", f"say over how much, as {name.text}(loss, 100 steps) or {name.text}(loss, 5m)")
        (scope,) = scopes
        length = self._span(name, scope)
        self._require(")", "close the parenthesis")
        key = f"{scope}:{name.text}({text}, {length})"  # a field's has a dot there
        self._windows[key] = Windowed(key, name.text, length, part.number, scope, frozenset(uses.told_by))
        self._uses.told_by |= uses.told_by
        return Part(closures.named(key), name.at)

    def _span(self, name: Token, scope: str) -> Span:
        token = self._take()
        unit = self._take().text if token.kind == "number" and self._next.kind == "name" else ""
        try:
            length = span(f"{token.text} {unit}".strip())
        except ValueError as error:
            raise ExpressionError(token.at, "how much the window is over is wanted here", str(error)) from None
        if scope != "run" and length.steps and not length.is_bare:
            raise ExpressionError(token.at, f"a {scope} has no steps", f"give a time, one of {', '.join(SECONDS)}")
        if length.steps < 2 and not length.seconds:
            raise ExpressionError(token.at, "a window is over 2 values or more", f"write {name.text}(…, 100)")
        return length
