"""What an import costs a training process: wall of a bare interpreter that imports, less one that does not."""

import subprocess
import sys

from bench.rows import Row, Section, median
from bench.stage import Stage

GOAL_SECONDS = 0.060
CASES = {
    "nothing": "pass",
    "trainvitals": "import trainvitals",
    "what a run needs": "import trainvitals.run",
    "prometheus_client": "import prometheus_client",
}
HEAVY = ("torch", "numpy", "starlette", "uvicorn", "prometheus_client", "psutil", "pynvml")
# A finder at the front is asked for whatever is imported, whether or not it is installed.
SPY = """
import sys
class Spy:
    def find_spec(self, name, path=None, target=None):
        asked.add(name.partition(".")[0])
asked = set()
sys.meta_path.insert(0, Spy())
{statement}
print(" ".join(sorted(asked & set(sys.argv[1:]))))
"""


def measure(stage: Stage) -> Section:
    times: dict[str, list[float]] = {name: [] for name in CASES}
    turns = stage.few_or(2, 20)
    for turn in range(1 + turns):
        for name, statement in CASES.items():
            taken = stage.wall(sys.executable, "-c", statement)
            times[name] += [taken] if turn else []
    cost = {name: max(0.0, median(taken) - median(times["nothing"])) for name, taken in times.items()}
    rows = [_row(name, cost, turns) for name in ("trainvitals", "what a run needs")]
    found = heavy_imports(stage)
    rows.append(Row("heavy modules imported by what a run needs", len(found), goal="none", met=not found))
    return Section(
        "Import",
        rows,
        [
            f"Heavy are {', '.join(HEAVY)}. Imported of them: {', '.join(found) or 'none'}. "
            "`What a run needs` is the whole SDK but for `watch` and `profile_inference`, which are imported when "
            "they are called."
        ],
    )


def heavy_imports(stage: Stage) -> list[str]:
    code = SPY.format(statement=CASES["what a run needs"])
    asked = subprocess.run(
        [sys.executable, "-c", code, *HEAVY], env=stage.env, check=True, capture_output=True, text=True
    )
    return asked.stdout.split()


def _row(name: str, cost: dict[str, float], turns: int) -> Row:
    return Row(
        f"import: {name}",
        cost[name],
        cost["prometheus_client"],
        "prometheus_client",
        "ms",
        "≤ 60 ms",
        cost[name] <= GOAL_SECONDS,
        f"median of {turns} each",
    )
