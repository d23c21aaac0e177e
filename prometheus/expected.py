"""Writes down which targets should be there: a target that vanished from its file, or whose machine never came, has no
series of its own that could tell so.

    targets/node.yml  ->  targets/expected.rules.yml:  target:expected:info{job="node", instance="workstation"} 1

    python3 prometheus/expected.py            writes the file
    python3 prometheus/expected.py --check    says whether it is up to date
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

TARGETS = Path(__file__).parent / "targets"
JOBS = ("trainvitals", "node", "dcgm", "nvidia-smi")
# As relabel_configs in prometheus.yml have them.
NAME = re.compile(r"(\d+\.\d+\.\d+\.\d+|[^.:\[\]]+)(?:\.[^:]*)?(?::\d+)?", re.ASCII)
IN_BRACKETS = re.compile(r"\[(.+)\](?::\d+)?", re.ASCII)
FORM = '- {targets: ["host:port"], labels: {instance: "host"}}'
HEAD = """\
# Made from the other files in this folder by `python3 prometheus/expected.py`; edit those.
groups:
  - name: targets-expected
    rules:
"""


def expected(folder: Path) -> Iterator[tuple[str, str]]:
    for job in JOBS:
        for path in sorted(folder.glob(f"{job}*.yml")):
            for entry in entries(path):
                for address in entry["targets"]:
                    yield job, instance(entry, address)


def entries(path: Path) -> list[dict[str, Any]]:
    try:
        found = yaml.safe_load(path.read_text()) or []
    except yaml.YAMLError as error:
        raise SystemExit(f"{path}: {error}") from error
    if not isinstance(found, list):
        raise SystemExit(f"{path}: is no list; write entries like {FORM}")
    for entry in found:
        if not is_entry(entry):
            raise SystemExit(f"{path}: {entry!r} is no entry; write it like {FORM}, names in quotes")
    return found


def is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("targets"), list):
        return False
    labels = entry.get("labels") or {}
    return isinstance(labels, dict) and all(
        isinstance(text, str) for text in (*entry["targets"], labels.get("instance", ""))
    )


def instance(entry: dict[str, Any], address: str) -> str:
    """As prometheus.yml relabels it: a name without domain and port, an address of numbers whole."""
    name = str((entry.get("labels") or {}).get("instance") or address)
    found = NAME.fullmatch(name) or IN_BRACKETS.fullmatch(name)
    return found[1] if found else name


def rules(folder: Path) -> str:
    lines = [
        f'      - {{record: "target:expected:info", expr: "1", labels: {{job: "{job}", instance: {quoted(name)}}}}}\n'
        for job, name in sorted(set(expected(folder)))
    ]
    return HEAD.removesuffix("    rules:\n") + ("    rules:\n" + "".join(lines) if lines else "    rules: []\n")


def quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def main() -> int:
    path = TARGETS / "expected.rules.yml"
    wanted = rules(TARGETS)
    if "--check" in sys.argv[1:]:
        current = path.exists() and path.read_text() == wanted
        print(f"{path}: {'up to date' if current else 'out of date; run python3 prometheus/expected.py'}")
        return 0 if current else 1
    path.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
