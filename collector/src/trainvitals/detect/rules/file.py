"""alerts.yml on disk, read again when it changes. A bad file keeps the last good rules, and says so once; where
there is a folder for a copy of them, over a restart too.

file = RulesFile(Path("alerts.yml"), check=lambda sections: limits(sections.get("thresholds", {})), folder=folder)
Engine(rules=file)      file.sections["thresholds"]      file.problem  ->  "" or what is wrong with it now
"""

import errno
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.detect.finding import Finding
from trainvitals.detect.rules.errors import RuleError
from trainvitals.detect.rules.reading import Contents, read
from trainvitals.detect.rules.rules import Rules
from trainvitals.errors import SettingError, install_words
from trainvitals.journal import layout, small_files

MAX_BYTES = 2**20
LOOK_SECONDS = 1.0
Sections = Mapping[str, Any]

log = logging.getLogger("trainvitals.rules")


class RulesFile:
    """`check` looks at the sections that are somebody else's: a SettingError of its makes the file a bad one.
    `sections` are those at the start, of the copy where the file was bad: whoever looks at them does so once. `version`
    grows with each file that was taken."""

    def __init__(self, path: Path, check: Callable[[Sections], object] = lambda sections: None,
                 clock: Callable[[], float] = time.monotonic, folder: Path | None = None) -> None:  # fmt: skip
        self.path, self.problem, self.version = path, "", 0
        self.sections: Sections = {}
        # As the file has them now.
        self._written: Sections = {}
        self._check, self._clock = check, clock
        self._rules = Rules()
        self._next_look = 0.0
        self._seen: tuple[int, ...] | None = None
        self._has_begun = False
        self._good = b""
        # Two files of one folder have two names.
        self.copy = folder / layout.safe_name("rules", str(path.absolute())) if folder else None
        if self.copy:
            self._take_copy(self.copy)
        self.current()
        self._has_begun = True

    def current(self) -> Rules:
        if (now := self._clock()) >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self._look()
        return self._rules

    # As the rules themselves, whichever hold now.

    def training(self, run: str, rank: int, when: float, record: Mapping[str, Any]) -> list[Finding]:
        return self.current().training(run, rank, when, record)

    def gpu(self, when: float, labels: Mapping[str, str], values: Mapping[str, Any]) -> list[Finding]:
        return self.current().gpu(when, labels, values)

    def host(self, when: float, values: Mapping[str, Any], host: str = "") -> list[Finding]:
        return self.current().host(when, values, host)

    def forget(self, run: str) -> None:
        self._rules.forget(run)

    def kinds_now(self) -> Iterable[str]:
        return self.current().kinds

    def watch_gpus(self, gpus: dict[str, set[str]]) -> None:
        """Whose GPUs are whose, as somebody else keeps it."""
        self._rules.gpus = gpus

    def _look(self) -> None:
        try:
            seen = _signature(self.path)
            if seen != self._seen:
                self._seen = seen
                self._take(self.path)
                self._keep()
        except RuleError as error:
            self._tell(str(error))
        except OSError as error:
            self._seen = None
            self._tell(f"{self.path}: it cannot be read: {error.strerror or type(error).__name__}")

    def _take_copy(self, copy: Path) -> None:
        """What held before a restart goes on until the file is read, which may be bad. What is wrong with the copy, of
        another version say, is nobody's to mend."""
        with suppress(OSError, RuleError):
            if not small_files.is_foreign(copy.parent) and _signature(copy):
                self._take(copy)

    def _keep(self) -> None:
        """For its owner's eyes, as it may name secrets; by a thread, as a disk may hang."""
        if self.copy:
            threading.Thread(target=self._write, args=(self.copy,), name="rules-copy", daemon=True).start()

    def _write(self, copy: Path) -> None:
        with suppress(OSError):
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not small_files.is_foreign(copy.parent):
                small_files.replace(copy, self._good)

    def _take(self, path: Path) -> None:
        text = _text(path)
        # As an editor leaves it for a moment that writes into the file itself, or for good on a full disk.
        if not text.strip() and (self._rules.rules or self._written):
            raise RuleError(str(path), 0, 0, "it is empty: write `rules: []` where no rules are wanted")
        contents = _contents(path, text)
        try:
            self._check(contents.sections)
        except SettingError as error:
            raise contents.located(error) from None
        self._good = text
        self._rules = Rules(contents.rules, before=self._rules)
        self._take_sections(contents.sections)
        self.version += 1
        if self.problem:
            log.info("%s is good again", self.path)
        self.problem = ""

    def _take_sections(self, written: Sections) -> None:
        self.sections = self.sections if self._has_begun else written
        changed = sorted(name for name in {*written, *self.sections} if written.get(name) != self.sections.get(name))
        if changed and written != self._written:
            log.warning("%s: %s changed: that counts once the agent is started again", self.path, ", ".join(changed))
        self._written = written

    def _tell(self, problem: str) -> None:
        if problem == self.problem:
            return
        self.problem = problem
        # Of the start whoever asked for it says so.
        if self._has_begun:
            log.warning("%s\n%s", problem, self.held())

    def held(self) -> str:
        kept = len(self._rules.rules)
        return f"what held before goes on: {kept} {'rule' if kept == 1 else 'rules'}"


def _text(path: Path) -> bytes:
    with open(path, "rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise RuleError(str(path), 0, 0, "it is larger than 1 MiB: leave rules out")
    return text


def _contents(path: Path, text: bytes) -> Contents:
    try:
        return read(str(path), text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise RuleError(str(path), line, 1, "this is no UTF-8: save it as that") from None
    except ModuleNotFoundError as error:
        raise RuleError(str(path), 0, 0, f"{error.name} is missing: {install_words('web')}") from None


def _signature(path: Path) -> tuple[int, ...]:
    """A pipe under the name would keep whoever opens it waiting."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no file")
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
