"""The committed dashboards as tests look at them: their panels, and their queries with the variables filled in.

queries(board("trainvitals-gpu"), {"instance": "node-a"})
-> [Asked("Hottest GPU", "A", "max(gpu:temperature:celsius{instance=`node-a`, ...})", instant=True), ...]
"""

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "grafana/dashboards"
UIDS = (
    "trainvitals-fleet", "trainvitals-gpu", "trainvitals-run", "trainvitals-ranks", "trainvitals-cost",
    "trainvitals-monitoring",
)  # fmt: skip
WITHOUT_RULES = ("trainvitals-gpu", "trainvitals-run", "trainvitals-ranks")

# What Grafana fills in by itself, at a scrape interval of 15 s and an hour's range.
GRAFANAS_OWN = {"__rate_interval": "1m", "__interval": "15s", "__range": "1h", "__range_s": "3600"}
EVERYTHING = {"datasource": "prometheus", "job": ".*", "instance": ".*", "gpu": ".*", "run": ".*", "co2": "400"}
# Where one alone can be chosen it is taken as it is: the demo's run, and the node of it that faults befall.
ONE = {"instance": "demo-2", "run": "demo-gpt"}

# Panels of which a query rightly returns nothing on a machine that is well, or lacks what it reads.
NO_PROFILING = "profiling needs a data-centre GPU and DCGM"
MAY_BE_EMPTY = {
    ("trainvitals-gpu", "SM active"): NO_PROFILING,
    ("trainvitals-gpu", "Tensor cores active"): NO_PROFILING,
    ("trainvitals-gpu", "DRAM active"): NO_PROFILING,
    ("trainvitals-gpu", "Fan speed"): "passive boards have no fan",
    ("trainvitals-run", "What it logs besides"): "the demo logs no values of its own",
    ("trainvitals-run", "event Ended"): "the run goes on",
    ("trainvitals-run", "event Alerts"): "no alert fires for the run",
    ("trainvitals-fleet", "Alerts"): "no alert names a rank",
    ("trainvitals-monitoring", "Notifications"): "nothing was sent, or nothing failed",
}
NEED_RULES = {
    ("trainvitals-run", "Alerts"): "no rules are loaded",
}


class Asked(NamedTuple):
    panel: str
    ref: str
    expr: str
    instant: bool


def board(uid: str) -> dict:
    return json.loads((FOLDER / f"{uid}.json").read_text(encoding="utf-8"))


def panels(dashboard: dict) -> list[dict]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def filled(text: str, variables: dict[str, str]) -> str:
    """As Grafana does it; a name that nobody gives is an error here, where Grafana would send it as it is."""
    several, one = GRAFANAS_OWN | EVERYTHING | variables, ONE | variables
    return re.sub(
        r"\$\{(\w+):raw\}|\$\{?(\w+)(?::regex)?\}?",
        lambda found: one[found[1]] if found[1] else several[found[2]],
        text,
    )


def queries(dashboard: dict, variables: dict[str, str] | None = None) -> list[Asked]:
    return [
        Asked(panel["title"], target["refId"], filled(target["expr"], variables or {}), target["instant"])
        for panel in panels(dashboard)
        for target in panel.get("targets", ())
    ]


def events(dashboard: dict, variables: dict[str, str] | None = None) -> list[Asked]:
    return [
        Asked(f"event {event['name']}", "Anno", filled(event["target"]["expr"], variables or {}), False)
        for event in dashboard["annotations"]["list"]
    ]


def choices(dashboard: dict, variables: dict[str, str] | None = None) -> list[Asked]:
    """The series that the variables' values are read from."""
    asked = []
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            labels = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            result = re.fullmatch(r"query_result\((.+)\)", variable["query"]["query"])
            expr = f"count by ({labels[2]}) ({labels[1]})" if labels else result[1]
            asked.append(Asked(f"variable {variable['name']}", "A", filled(expr, variables or {}), True))
    return asked


def asked(uid: str, panel: str, ref: str = "A", **variables: str) -> str:
    return next(one.expr for one in queries(board(uid), variables) if (one.panel, one.ref) == (panel, ref))


def proves(folder: Path, series: dict[str, str], *answers: tuple, rules: tuple[str, ...] = ()) -> None:
    """Each answer: an expression, when, and the samples that it has then."""
    told = [
        {"expr": expr, "eval_time": at, "exp_samples": [{"labels": labels, "value": value} for labels, value in wanted]}
        for expr, at, wanted in answers
    ]
    case = {
        "interval": "30s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": told,
    }
    files = [str(ROOT / f"prometheus/rules/{name}.yml") for name in rules]
    document = {"rule_files": files, "evaluation_interval": "15s", "tests": [case]}
    (folder / "test.yml").write_text(yaml.safe_dump(document))
    words = ["promtool", "test", "rules", str(folder / "test.yml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
