"""A rule's message: text with expressions in braces, filled in from what is known.

message("Loss is {loss:.2f}, {loss / target:.1f} times {target}")
What is not known stays as it is written; a format is one of numbers, and short: nothing of Python's can be reached.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from trainvitals.detect.rules import grammar
from trainvitals.detect.rules.closures import Values
from trainvitals.detect.rules.errors import ExpressionError
from trainvitals.detect.rules.expression import Expression

MAX_TEMPLATE = 1000
MAX_SHOWN = 2000
# What says where it is, and no line needs to tell.
PLACES = ("run", "rank", "gpu", "uuid")
_PIECE = re.compile(
    r"(?P<brace>\{\{|\}\})|\{(?P<expression>(?:`[^`\n]*`|[^`{}:])*)(?::(?P<form>[^{}]*))?\}|(?P<stray>[{}])"
)
_FORM = re.compile(r"(?:[^{}]?[<>=^])?[-+ ]?0?[0-9]{0,2}[,_]?(?:\.[0-9]{1,2})?[deEfFgG%]?")
Texts = Mapping[str, str]


class _Filled(NamedTuple):
    written: str
    expression: Expression | None
    form: str
    # Of a field alone, or a place: text will do too.
    name: str

    def shown(self, values: Values, texts: Texts) -> str:
        number = self.expression.ask(values) if self.expression else None
        if number is None:
            return texts.get(self.name, self.written)
        if not self.form:
            return plain(number)
        whole = self.form.endswith("d")
        try:
            return format(round(number) if whole else number, self.form)
        except (ValueError, OverflowError):  # nan and inf are no whole numbers
            return plain(number)


def plain(number: float) -> str:
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else f"{number:.6g}"


class Message(NamedTuple):
    text: str
    parts: tuple[str | _Filled, ...]
    expressions: tuple[Expression, ...]

    def shown(self, values: Values, texts: Texts) -> str:
        parts = (part if isinstance(part, str) else part.shown(values, texts) for part in self.parts)
        return "".join(parts)[:MAX_SHOWN]


def message(text: str) -> Message:
    if len(text) > MAX_TEMPLATE:
        raise ExpressionError(MAX_TEMPLATE, f"it is longer than {MAX_TEMPLATE} characters", "say it shorter")
    parts: list[str | _Filled] = []
    at = 0
    for match in _PIECE.finditer(text):
        parts.append(text[at : match.start()])
        parts.append(match["brace"][0] if match["brace"] else _filled(match))
        at = match.end()
    parts.append(text[at:])
    filled = [part.expression for part in parts if isinstance(part, _Filled) and part.expression]
    return Message(text, tuple(part for part in parts if part), tuple(filled))


def _filled(match: re.Match[str]) -> _Filled:
    if match["stray"]:
        raise ExpressionError(match.start(), "a brace has no partner", "write {{ or }} for a brace itself")
    text, form = match["expression"], match["form"] or ""
    if not _FORM.fullmatch(form):
        raise ExpressionError(match.start("form"), f"{form!r} is no format of a number", "write one such as .2f")
    if text.strip() in PLACES:
        return _Filled(match[0], None, "", text.strip())
    try:
        expression = grammar.number(text)
    except ExpressionError as error:
        raise ExpressionError(match.start("expression") + error.at, error.problem, error.fix) from None
    name = next(iter(expression.names)) if len(expression.names) == 1 else ""
    return _Filled(match[0], expression, form, name if _is_field(text, name) else "")


def _is_field(text: str, name: str) -> bool:
    return bool(name) and text.strip().strip("`") in (name, name.partition(".")[2])
