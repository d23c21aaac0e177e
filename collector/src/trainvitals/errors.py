"""What can go wrong, said so that the reader can act: `port 8080 is taken; choose another with --port`."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path


def install_words(extra: str) -> str:
    """The package is on no index: it comes from its clone, which is where this file lies unless that was copied."""
    collector = Path(__file__).parents[2]
    pip = f"{shlex.quote(sys.executable or 'python3')} -m pip install --upgrade"
    if (collector / "pyproject.toml").is_file():
        return f"`{pip} -e {shlex.quote(f'{collector}[{extra}]')}`"
    return f"`{pip} './collector[{extra}]'` in the clone of TrainVitals"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.0) -> str:
    """Nothing where none is as near as `cutoff`, from 0 to 1."""
    # What compares is loaded by those alone who wrote a word wrong.
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, sorted(known), n=1, cutoff=cutoff)), "")


def plain(text: str) -> str:
    """One line: what came from others moves no cursor, ends no line and does not turn the reading direction."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)


class TrainVitalsError(Exception):
    """A problem with a cause the user can change. `str()` is the one line they read."""


class SettingError(TrainVitalsError):
    """A flag, environment variable or file entry that cannot be used."""

    def __init__(self, key: str, value: object, fix: str) -> None:
        super().__init__(f"{key}: {str(value)!r} cannot be used: {fix}")
        self.key, self.value, self.fix = key, value, fix


class SourceError(TrainVitalsError):
    """A source of readings that does not answer, and what makes it answer again."""

    def __init__(self, source: str, problem: str, fix: str = "") -> None:
        super().__init__(f"{source}: {problem}" + (f"; {fix}" if fix else ""))
        self.source, self.problem, self.fix = source, problem, fix


class SourceAbsent(SourceError):
    """There is nothing here for the source to read, which is no fault (a machine without a GPU)."""


class DeviceLost(SourceError):
    """One device stopped answering while its source still does (a GPU fell off the bus)."""


class JournalError(TrainVitalsError):
    """The journal cannot be used as asked (a run that is running already, no writable folder)."""


class RunInUse(JournalError):
    """The run that was asked for by its id lives already."""
