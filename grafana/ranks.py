"""Ranks: do all keep step, and if not, which one holds the others up, and where is it?"""

from grafana.lib import Dashboard, Panel, Query, Row
from grafana.parts import JOBS, NONE_ALLOWED, ONE_RUN, judged, line, linked, node_link, rising, shown, stat, table
from grafana.queries import (
    THE_RUN,
    on_its_gpus,
    own_seconds_per_step,
    phase_share,
    places,
    rank_raw,
    step_seconds,
    straggling,
)
from grafana.thresholds import threshold

VARIABLES = (JOBS, ONE_RUN)
LEGEND = "rank {{rank}}"
RATIO = f"max by (run, rank) (run:straggler:ratio{{{THE_RUN}}}) or on (run, rank) ({straggling()})"
STEP_TIME = (
    f"max by (run, rank) (run:rank_step_duration:seconds{{{THE_RUN}}}) or on (run, rank) ({step_seconds('run, rank')})"
)
OWN_TIME = own_seconds_per_step()
DATA_WAIT = phase_share('phase="data_wait"', by="run, rank")
SLOW = rising(threshold("straggler:ratio"), threshold("straggler_page:ratio"))
STARVED = rising(threshold("data_wait:ratio"), threshold("data_wait_page:ratio"))
STEP = f"max by (run, rank) ({rank_raw('training_step')})"
LAST = f"max by (run, rank) ({rank_raw('training_last_step_timestamp_seconds')})"
FAR_BEHIND = f"{LAST} < on (run) group_left () (max by (run) ({LAST}) - {threshold('stall:seconds'):g})"


def placed(value: str) -> str:
    """With the node and the GPU of each rank."""
    return f"{places()} * on (run, rank) group_left () ({value})"


def is_it_well() -> Row:
    return Row("", 5, (
        stat("Slowest rank", "The rank that works longest before it waits for the others, against their median.",
             f"topk(1, {placed(RATIO)})", legend="rank {{rank}} on {{instance}}", width=8, steps=SLOW, decimals=2,
             unit="none", options={"textMode": "value_and_name"}),
        stat("Ranks left behind", "Ranks whose last step is far older than that of the others.",
             f"count({FAR_BEHIND}) or 0 * count({LAST})", unit="short", steps=NONE_ALLOWED),
        stat("Apart in steps", "Steps between the rank that is furthest and the one that is least far.",
             f"max({STEP}) - min({STEP})", unit="short"),
        stat("Apart in time", "Time between the last steps of the first and of the last rank.",
             f"max({LAST}) - min({LAST})", unit="s"),
        stat("Longest wait for data", "Share of wall time that the worst rank waits for its data.",
             f"max({DATA_WAIT})", unit="percentunit", steps=STARVED),
    ))  # fmt: skip


def heat(title: str, description: str, expr: str) -> Panel:
    # Rows whose names are but numbers are put in the order of numbers, others in that of text.
    axis = {"axisPlacement": "left", "axisLabel": "rank", "reverse": False}
    return Panel(title, description, (Query(expr, "{{rank}}"),), kind="heatmap", unit="s",
                 options={"cellValues": {"unit": "s"}, "yAxis": axis})  # fmt: skip


def maps() -> Row:
    return Row("Who is slow, and since when?", 12, (
        heat("Step time by rank", "Wall time of a step; a collective makes it equal, so one slow rank shows on all.",
             STEP_TIME),
        heat("Own time by rank", "Data wait and forward of a step, which is before ranks wait for each other.",
             OWN_TIME),
    ))  # fmt: skip


def compared() -> Row:
    columns = (
        judged("Against median", "none", SLOW, decimals=2), shown("Own time", "s"),
        judged("Data wait", "percentunit", STARVED),
        shown("GPU utilization", "percentunit"), linked("Node", node_link(VARIABLES)),
    )  # fmt: skip
    values = {
        "Against median": placed(RATIO),
        "Own time": placed(OWN_TIME),
        "Data wait": placed(DATA_WAIT),
        "Last step, ago": placed(f"time() - {LAST}"),
        "GPU utilization": f"max by (run, rank, instance, gpu) ({BUSY})",
    }
    keys = {"rank": "Rank", "instance": "Node", "gpu": "GPU", "run": "Run"}
    return Row("Rank by rank, worst first", 11, (
        table("Ranks", "Each rank, its place, and its own time against the median of its peers.", keys, values,
              worst="Against median", width=14, unit="s", columns=columns),
        line("Against the median", "Time before the collective, divided by the median of all ranks.", (RATIO, LEGEND),
             unit="none", decimals=2, width=10, steps=SLOW),
    ))  # fmt: skip


BUSY = on_its_gpus("gpu:utilization:ratio", "gpu_utilization_percent", " / 100")

DASHBOARD = Dashboard(
    "trainvitals-ranks", "TrainVitals / Ranks", "Do all ranks keep step, and if not, which one holds the others up?",
    VARIABLES, (is_it_well(), maps(), compared()),
)  # fmt: skip
