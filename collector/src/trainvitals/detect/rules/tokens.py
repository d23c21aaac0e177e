"""An expression's words: numbers, names, signs, each with its place.

tokens("loss > 2e3")
->  [Token("name", "loss", 0), Token("sign", ">", 5), Token("number", "2e3", 7), Token("end", "", 10)]
"""

import re
from typing import NamedTuple

from trainvitals.detect.rules.errors import ExpressionError

MAX_CHARACTERS = 1000

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|`(?P<quoted>[^`\n]{1,200})`"
    r"|(?P<sign><=|>=|==|!=|\*\*|&&|\|\||[-+*/%<>(),.])"
)
_FIXES = {
    "=": "write == to compare", "!": "write `not`", "&": "write `and`", "|": "write `or`", "^": "there are no powers",
    "`": "a name in backquotes has 1 to 200 characters and ends with one", "'": "text cannot be compared, numbers can",
    '"': "text cannot be compared, numbers can",
}  # fmt: skip
_NO_SIGNS = {"&&": "write `and`", "||": "write `or`", "**": "there are no powers: multiply"}


class Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def written(self) -> str:
        return f"`{self.text}`" if self.kind == "quoted" else self.text


def tokens(text: str) -> list[Token]:
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(MAX_CHARACTERS, f"it is longer than {MAX_CHARACTERS} characters", "make two rules of it")
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(at, f"{text[at]!r} has no meaning here", _FIXES.get(text[at], "leave it out"))
        kind = match.lastgroup or ""
        if match[0] in _NO_SIGNS:
            raise ExpressionError(at, f"{match[0]!r} has no meaning here", _NO_SIGNS[match[0]])
        if kind != "space":
            found.append(Token(kind, match[kind], at))
        at = match.end()
    return [*found, Token("end", "", at)]
