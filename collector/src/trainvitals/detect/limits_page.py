"""docs/thresholds.md, made of the table of limits by `make docs`.

| `gradient_norm` 10, `gradient_steps` 3 | Given. |
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields

from trainvitals.detect import limits
from trainvitals.detect.limits import Limits

_COMMENT, _NUMBER = re.compile(r"    # (.+)"), re.compile(r"    (\w+): (?:int|float) = ")


def markdown() -> str:
    rows = (f"| {', '.join(f'`{name}` {_shown(name)}' for name in names)} | {words} |\n" for words, names in _groups())
    return _PREFACE + "| name, and what it is unless set | what it is for |\n|---|---|\n" + "".join(rows)


def _groups() -> Iterator[tuple[str, list[str]]]:
    """The numbers under each comment."""
    words: list[str] = []
    names: list[str] = []
    for line in inspect.getsource(limits).splitlines():
        if comment := _COMMENT.match(line):
            if names:
                yield " ".join(words), names
                words, names = [], []
            words.append(comment[1])
        elif number := _NUMBER.match(line):
            names.append(number[1])
    yield " ".join(words), names


def _shown(name: str) -> str:
    return f"{_DEFAULTS[name]:g}"


_DEFAULTS = {one.name: one.default for one in fields(Limits)}
_PREFACE = """# Thresholds

Made from `detect/limits.py` by `make docs`; edit that table, not this page.

The numbers that the agent's detectors judge by. One of your own goes into `thresholds:` of [alerts.yml](rules.md),
under the same name, and counts from the agent's next start on; the numbers of Prometheus's rules are in
[thresholds.yml](../prometheus/rules/thresholds.yml). *Given*: asked for with that number.

"""

if __name__ == "__main__":
    print(markdown(), end="")
