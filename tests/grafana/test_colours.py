"""Colours turn where the alert does, to the colour of its severity; where no alert is behind one, the table says why.

("trainvitals-gpu", "Least margin to slowdown"): a ticket from 5 degrees down is orange, a page from 0 down is red.
"""

import operator
import re
from functools import cache
from typing import NamedTuple

import pytest
import yaml

from tests.grafana.support import ROOT, UIDS, board, panels

OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
COLOURS = {"page": "red", "ticket": "orange"}


class Turn(NamedTuple):
    """An alert of this severity, and the threshold (or number) that it compares with; or any one at all is bad."""

    alert: str
    severity: str = "ticket"
    at: str = "any"


HOT = (Turn("GpuTemperatureHigh", at="gpu_temperature:celsius"),)
FULL = (Turn("GpuMemoryHigh", at="gpu_memory:ratio"),)
MISSING = (Turn("GpuMissing", "page"),)
STARVED = (
    Turn("TrainingDataStarved", at="data_wait:ratio"), Turn("TrainingDataStarved", "page", "data_wait_page:ratio"),
)  # fmt: skip
SLOW = (Turn("TrainingStraggler", at="straggler:ratio"), Turn("TrainingStraggler", "page", "straggler_page:ratio"))
UNPRODUCTIVE = (Turn("TrainingGoodputLow", at="goodput:ratio"),)
ALERTS = "it counts alerts"
STALLED = "TrainingStalled pages from this number on at the earliest, later where steps are long"
FLEET, GPU, RUN, RANKS, COST, MONITORING = UIDS
TURNS: dict[tuple[str, ...], tuple[Turn, ...] | str] = {
    (FLEET, "Pages"): ALERTS,
    (FLEET, "Tickets"): ALERTS,
    (FLEET, "GPUs missing"): MISSING,
    (FLEET, "Idle GPUs"): "idling is no fault: GpuIdleAllocated is of those that somebody holds, after half an hour",
    (FLEET, "Nodes", "Alerts"): ALERTS,
    (FLEET, "Nodes", "GPUs missing"): MISSING,
    (FLEET, "Nodes", "Hottest"): HOT,
    (FLEET, "Nodes", "Fullest memory"): FULL,
    (FLEET, "Nodes", "Idle held"): (Turn("GpuIdleAllocated"),),
    (FLEET, "Nodes", "CPU"): (Turn("HostCpuHigh", at="host_cpu:ratio"),),
    (FLEET, "Nodes", "Memory"): (Turn("HostMemoryHigh", at="host_memory:ratio"),),
    (FLEET, "Nodes", "Disk left"): (Turn("HostDiskFull", "page", "host_disk_full:ratio"),),
    (FLEET, "Runs", "Alerts"): ALERTS,
    (FLEET, "Runs", "Productive"): UNPRODUCTIVE,
    (FLEET, "Runs", "Data wait"): STARVED,
    (FLEET, "Runs", "Worst rank"): SLOW,
    (FLEET, "Runs", "Last step, ago"): STALLED,
    (GPU, "GPUs missing"): MISSING,
    (GPU, "Hottest GPU"): HOT,
    (GPU, "Least margin to slowdown"): (
        Turn("GpuThermalMargin", at="gpu_thermal_margin:celsius"), Turn("GpuThermalMargin", "page", "0"),
    ),
    (GPU, "Fullest memory"): FULL,
    (GPU, "Slowed by hardware now"): (Turn("GpuHardwareSlowdown", "page"),),
    (GPU, "Uncorrectable errors"): (Turn("GpuEccUncorrectable", "page"),),
    (GPU, "Temperature"): HOT,
    (GPU, "Memory used"): FULL,
    (GPU, "Memory temperature"): (Turn("GpuMemoryTemperatureHigh", at="gpu_memory_temperature:celsius"),),
    (GPU, "Memory errors", "Uncorrectable"): (Turn("GpuEccUncorrectable", "page"),),
    (GPU, "Memory errors", "Rows pending"): (Turn("GpuRowRemapPending"),),
    (GPU, "Memory errors", "Remap failed"): (Turn("GpuRowRemapFailed", "page"),),
    (GPU, "PCIe packets sent again"): (Turn("GpuPcieReplays", at="gpu_pcie_replays:per_minute"),),
    (GPU, "NVLink errors"): (Turn("GpuNvlinkErrors", at="gpu_nvlink_errors:per_minute"),),
    (RUN, "Alerts"): "it counts alerts of both severities, and a page may be among them",
    (RUN, "Last step, ago"): STALLED,
    (RUN, "NaN or infinite"): (Turn("TrainingNonFinite", "page"),),
    (RUN, "Waiting for data"): STARVED,
    (RUN, "Gradient norm"): (
        Turn("TrainingGradientVanishing", at="gradient_vanishing:value"),
        Turn("TrainingGradientNormHigh", at="gradient_norm:value"),
    ),
    (RUN, "Learning rate"): (Turn("TrainingLearningRateTooLow", at="learning_rate_low:value"),),
    (RANKS, "Slowest rank"): SLOW,
    (RANKS, "Ranks left behind"): "TrainingStalled is of a run none of whose ranks goes on",
    (RANKS, "Longest wait for data"): STARVED,
    (RANKS, "Ranks", "Against median"): SLOW,
    (RANKS, "Ranks", "Data wait"): STARVED,
    (RANKS, "Against the median"): SLOW,
    (COST, "Productive"): UNPRODUCTIVE,
    (COST, "Runs", "Productive"): UNPRODUCTIVE,
    (COST, "Productive share by run"): UNPRODUCTIVE,
    (MONITORING, "Targets down"): "what a target is says whether AgentDown, HostDown, AlertmanagerDown... tells of it",
    (MONITORING, "Watchdog"): "it is an alert, and its silence is what is bad",
    (MONITORING, "Rules failing"): (Turn("PrometheusRuleFailures"),),
    (MONITORING, "Notifications failing"): (Turn("AlertmanagerDeliveryFailing", "page"),),
    (MONITORING, "Sources down"): (Turn("SourceDown"),),
    (MONITORING, "Records lost"): (Turn("JournalErrors"),),
    (MONITORING, "Targets", "Up"): "as Targets down",
    (MONITORING, "Targets", "Of its usual"): (Turn("ScrapeShrunk", at="scrape_shrunk:ratio"),),
    (MONITORING, "Series"): (Turn("SeriesNearLimit", at="prometheus_series:count"),),
}  # fmt: skip
JUDGED = [key for key, turns in TURNS.items() if not isinstance(turns, str)]


@cache
def rules():
    documents = [yaml.safe_load(path.read_text()) for path in (ROOT / "prometheus/rules").glob("*.yml")]
    return [rule for document in documents for group in document["groups"] for rule in group["rules"]]


@cache
def coloured():
    """Each panel and each column of a table that has more than one colour: its type and its steps."""
    found = {}
    for uid in UIDS:
        for panel in panels(board(uid)):
            settings = panel.get("fieldConfig", {"defaults": {}, "overrides": []})
            steps = {(uid, panel["title"]): settings["defaults"].get("thresholds")}
            for override in settings["overrides"]:
                own = {each["id"]: each["value"] for each in override["properties"]}
                steps[uid, panel["title"], override["matcher"]["options"]] = own.get("thresholds")
            found |= {key: (panel["type"], each["steps"]) for key, each in steps.items() if each and each["steps"][1:]}
    return found


def colour(steps, value):
    return [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]


def comparison(turn):
    """How the rule compares, and with which number."""
    of_it = [
        rule
        for rule in rules()
        if rule.get("alert") == turn.alert and rule["labels"]["severity"] == turn.severity
    ]  # fmt: skip
    assert of_it, f"no rule {turn.alert} is a {turn.severity}"
    if turn.at == "any":
        return ">", 0.0
    right = re.escape(turn.at) if turn.at.isdigit() else rf"scalar\(threshold:{turn.at}\)"
    found = {each for rule in of_it for each in re.findall(rf"(<=|>=|<|>) {right}", rule["expr"])}
    assert len(found) == 1, (turn, found)
    numbers = {rule["record"]: float(rule["expr"]) for rule in rules() if "record" in rule and is_number(rule["expr"])}
    return found.pop(), float(turn.at) if turn.at.isdigit() else numbers[f"threshold:{turn.at}"]


def is_number(text):
    return re.fullmatch(r"[\d.e-]+", str(text)) is not None


def probes(turn, kind):
    """Values around the number, and itself where it is a whole one: but a dashed line lies at the number."""
    how, number = comparison(turn)
    whole = turn.at in {"any", "0"} or turn.at.endswith(":celsius")
    near = 1.0 if whole else abs(number) * 1e-6
    itself = (number,) if how in {"<", ">="} or (whole and kind != "timeseries") else ()
    return (number - near, number + near, *itself)


def expected(turns, value):
    fire = {turn.severity for turn in turns if OPERATORS[(it := comparison(turn))[0]](value, it[1])}
    return next((COLOURS[severity] for severity in COLOURS if severity in fire), "green")


def test_of_all_that_turns_the_table_says_by_which_alert():
    assert set(coloured()) == set(TURNS)


@pytest.mark.parametrize("key", JUDGED, ids=" / ".join)
def test_it_turns_when_its_alert_does_and_to_the_colour_of_its_severity(key):
    kind, steps = coloured()[key]
    values = {value for turn in TURNS[key] for value in probes(turn, kind)}
    assert {value: colour(steps, value) for value in values} == {value: expected(TURNS[key], value) for value in values}


def test_a_margin_of_whole_degrees_is_judged_as_the_alert_does():
    _, steps = coloured()[GPU, "Least margin to slowdown"]
    assert [colour(steps, degrees) for degrees in (-1, 0, 1, 5, 6)] == ["red", "red", "orange", "orange", "green"]
