"""Writes down which targets should be there: a target that vanished from its file, or whose machine never came, has no
series of its own that could tell so.

    targets/node.yml  ->  targets/expected.rules.yml:  target:expected:info{job="node", instance="workstation"} 1

    python3 prometheus/expected.py            writes the file
    python3 prometheus/expected.py --check    says whether it is up to date
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

TARGETS = Path(__file__).parent / "targets"
JOBS = ("trainvitals", "node", "dcgm", "nvidia-smi")
HEAD = """\
# Made from the other files in this folder by `python3 prometheus/expected.py`; edit those.
groups:
  - name: targets-expected
    rules:
"""


def expected(folder: Path) -> Iterator[tuple[str, str]]:
    for job in JOBS:
        for path in sorted(folder.glob(f"{job}*.yml")):
            for entry in yaml.safe_load(path.read_text()) or []:
                for address in entry["targets"]:
                    yield job, instance(entry, address)


def instance(entry: dict[str, Any], address: str) -> str:
    """As prometheus.yml relabels it: a name without domain and port, an address of numbers whole."""
    name = entry.get("labels", {}).get("instance") or address.rsplit(":", 1)[0]
    first = str(name).split(".", maxsplit=1)[0]
    return str(name) if first.isdigit() else first


def rules(folder: Path) -> str:
    lines = [
        f'      - {{record: "target:expected:info", expr: "1", labels: {{job: "{job}", instance: "{name}"}}}}\n'
        for job, name in sorted(set(expected(folder)))
    ]
    return HEAD.removesuffix("    rules:\n") + ("    rules:\n" + "".join(lines) if lines else "    rules: []\n")


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
