"""What a run of the tests left out, and why: listed at its end, and in CI a failure unless allowed.

Not run here, and why
  no C compiler
    tests/collector/sources/test_nvml.py::test_reads_what_the_library_says
"""

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

ALLOWED = Path("tests/allowed_skips.txt")
SHOWN_PER_REASON = 10


class Skip(NamedTuple):
    test: str
    reason: str


class Pattern(NamedTuple):
    test: re.Pattern
    reason: re.Pattern

    def matches(self, skip):
        return bool(self.test.fullmatch(skip.test) and self.reason.fullmatch(skip.reason))


def glob(text):
    # Not fnmatch: the brackets of a parametrised test are to be taken as they are.
    return re.compile(re.escape(text).replace(r"\*", ".*"), re.DOTALL)


def read_patterns(path):
    patterns = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], start=1):
        words = line.split(maxsplit=1)
        if not words or words[0].startswith("#"):
            continue
        if len(words) == 1:
            raise pytest.UsageError(f"{path}:{number}: {words[0]!r} gives no reason; write: <test> <reason>")
        patterns.append(Pattern(glob(words[0]), glob(words[1].strip())))
    return patterns


class NotRun:
    def __init__(self, patterns, in_ci):
        self.skips = []
        self.patterns = patterns
        self.in_ci = in_ci

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skips.append(Skip(report.nodeid, reason_of(report)))

    def pytest_collectreport(self, report):
        if report.skipped:
            self.skips.append(Skip(report.nodeid, reason_of(report)))

    def refused(self):
        if not self.in_ci:
            return []
        return [skip for skip in self.skips if not any(pattern.matches(skip) for pattern in self.patterns)]

    def pytest_sessionfinish(self, session):
        if session.exitstatus == pytest.ExitCode.OK and self.refused():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter):
        yield
        terminalreporter.write_sep("=", "Not run here, and why")
        for line in list(listing(self.skips)) or ["  nothing: every test that was asked for ran"]:
            terminalreporter.write_line(line)
        if refused := self.refused():
            terminalreporter.write_line(f"Failed: {ALLOWED} does not allow these skips in CI:", red=True)
            for skip in refused:
                terminalreporter.write_line(f"  {skip.test}  {skip.reason}")


def reason_of(report):
    _, _, reason = report.longrepr
    return reason.removeprefix("Skipped: ")


def listing(skips):
    by_reason = defaultdict(list)
    for skip in skips:
        by_reason[skip.reason].append(skip.test)
    for reason, tests in by_reason.items():
        yield f"  {reason}"
        yield from (f"    {test}" for test in tests[:SHOWN_PER_REASON])
        if len(tests) > SHOWN_PER_REASON:
            yield f"    and {len(tests) - SHOWN_PER_REASON} more"


def pytest_configure(config):
    in_ci = os.environ.get("CI", "").lower() == "true"
    config.pluginmanager.register(NotRun(read_patterns(config.rootpath / ALLOWED), in_ci), "not_run")
