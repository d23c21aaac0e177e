"""The rules, and the programs that judge them.

for rule in rules():  ->  Rule("gpu", "gpu-heat", {"alert": "GpuTemperatureHigh", "expr": …})
promtool("check", "rules", path)
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "prometheus"
RUNBOOKS = ROOT / "docs" / "runbooks"
FIXTURES = Path(__file__).parent / "fixtures"
ALERT_FILES = ("host", "gpu", "training", "training-loss", "findings", "stack", "watchdog")
RULE_FILES = ("thresholds", "normalize", "record", *ALERT_FILES)


class Rule(NamedTuple):
    file: str
    group: str
    body: dict[str, Any]

    @property
    def expr(self) -> str:
        return str(self.body["expr"])

    @property
    def name(self) -> str:
        return str(self.body.get("alert") or self.body["record"])


def rules(*files: str) -> Iterator[Rule]:
    for file in files or RULE_FILES:
        for group in yaml.safe_load((PROMETHEUS / "rules" / f"{file}.yml").read_text())["groups"]:
            for body in group["rules"]:
                yield Rule(file, group["name"], body)


def alerts() -> list[Rule]:
    return list(rules(*ALERT_FILES))


def tool(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=ROOT / ".cache" / "tools" / "bin")
    if not found:
        pytest.skip(f"no {name} here: scripts/fetch-tools prometheus")
    return found


def promtool(*words: str | Path) -> str:
    """What it said; it is content, or the test fails with its words."""
    done = _ran(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def promtool_told(*words: str | Path) -> str:
    """What it said, content or not."""
    done = _ran(*words)
    return done.stdout + done.stderr


def _ran(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [tool("promtool"), *map(str, words)], capture_output=True, text=True, check=False, timeout=300
    )


def case_files() -> list[Path]:
    return sorted((PROMETHEUS / "tests").glob("*.test.yml"))
