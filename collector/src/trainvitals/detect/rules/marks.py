"""Where a character of a YAML value stands in its file, whatever quotes or folds lie around it."""

import re
from typing import Any

from trainvitals.detect.rules.errors import RuleError
from trainvitals.errors import plain

MAX_SHOWN = 150
# As YAML breaks lines.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
Node = Any


class Marks:
    def __init__(self, file: str, text: str) -> None:
        self.file, self._text = file, text
        self._lines = _BREAK.split(text)

    def error(self, node: Node, problem: str, at: int = 0) -> RuleError:
        """`at`: of a scalar, the place within its value."""
        mark = node.start_mark
        if not isinstance(node.value, str) or (not at and node.style not in ("|", ">")):
            return self._error(mark.line, mark.column + (node.value != "" and _is_quoted(node)), problem)
        index = self._index(node, at)
        lines = _BREAK.split(self._text[:index])
        return self._error(len(lines) - 1, len(lines[-1]), problem)

    def at(self, mark: Any, problem: str) -> RuleError:
        return self._error(mark.line, mark.column, problem)

    def _error(self, line: int, column: int, problem: str) -> RuleError:
        """A long line is shown around the place."""
        source = self._lines[line] if line < len(self._lines) else ""
        source = plain(source)
        return RuleError(self.file, line + 1, column + 1, problem, source if len(source) <= MAX_SHOWN else "")

    def _index(self, node: Node, at: int) -> int:
        """Characters but for blanks follow each other in the file as they do in the value; what an escape wrote is
        passed over."""
        begin: int = node.start_mark.index
        end: int = node.end_mark.index
        if node.style in ("|", ">"):
            header = _BREAK.search(self._text, begin)
            begin = header.end() if header else begin
        elif _is_quoted(node):
            begin += 1
        for character in node.value[:at]:
            if not character.isspace() and (found := self._text.find(character, begin, end)) >= 0:
                begin = found + 1
        rest = node.value[at:].lstrip()
        if not rest or rest[0] not in self._text[begin:end]:
            return begin
        return self._text.index(rest[0], begin)


def _is_quoted(node: Node) -> bool:
    return isinstance(node.value, str) and node.style in ("'", '"')
