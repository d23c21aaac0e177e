"""Fleet: is everything well, what does it cost, and where to look first."""

from grafana.lib import Column, Dashboard, Row, Steps
from grafana.parts import (
    INSTANCES,
    JOBS,
    NONE_ALLOWED,
    NONE_WANTED,
    RUNS,
    falling,
    judged,
    line,
    linked,
    node_link,
    over_whole,
    ranks_link,
    rising,
    run_link,
    shown,
    stat,
    table,
    text,
)  # fmt: skip
from grafana.queries import JOB, NODE, RUN, firing, selector
from grafana.thresholds import threshold

NEEDS_RULES = (
    "This dashboard reads series that our rules record (`prometheus/rules/normalize.yml` and `record.yml`). "
    "Without them its panels say *No data*: load them, or look at **GPU**, **Training run** and **Ranks**, "
    "which show true values without rules."
)
SEVERITIES = {
    "type": "value",
    "options": {
        "3": {"text": "page", "color": "red", "index": 0},
        "2": {"text": "ticket", "color": "orange", "index": 1},
        "1": {"text": "info", "color": "blue", "index": 2},
        "0": {"text": "well", "color": "green", "index": 3},
    },
}
VARIABLES = (JOBS, INSTANCES, RUNS)
TO_NODE = node_link(VARIABLES)
HERE = selector(NODE)
IDLE = (
    f"count(avg_over_time(gpu:utilization:ratio{HERE}[5m]) < {threshold('gpu_idle:ratio'):g})"
    f" or 0 * count(gpu:utilization:ratio{HERE})"
)
# Alerts of no node or of no run concern all.
CHOSEN = 'instance=~"$instance|", run=~"$run|"'
RUNNING = f'max by (run) (training_run_status{{status="running", {JOB}, {RUN}}}) == 1'


def is_it_well() -> Row:
    running = f"count({RUNNING}) or 0 * count(trainvitals_build_info{{{JOB}}})"
    return Row("", 4, (
        stat("Pages", "Alerts that somebody has to get up for, firing now.", firing(f'severity="page", {CHOSEN}'),
             unit="short", steps=NONE_ALLOWED),
        stat("Tickets", "Alerts for this working day, firing now.", firing(f'severity="ticket", {CHOSEN}'),
             unit="short", steps=NONE_WANTED),
        stat("GPUs missing", "GPUs that nodes should have and that do not answer.",
             f"sum(clamp_min(node:gpus_expected:count{HERE} - on (instance) node:gpus:count{HERE}, 0))", unit="short",
             steps=NONE_ALLOWED),
        stat("Idle GPUs", "GPUs that did next to nothing in the last five minutes.", IDLE, unit="short",
             steps=NONE_WANTED),
        stat("Running", "Training runs that go on now.", running, unit="short"),
        stat("Cost per hour", "What these nodes cost an hour, where their price was set.",
             f"sum(node:price:dollars_per_hour{HERE})", unit="currencyUSD", decimals=2),
    ))  # fmt: skip


def alerts(severity: str) -> str:
    return f'ALERTS{{alertstate="firing", severity="{severity}", {CHOSEN}}}'


def alerts_by(label: str, chosen: str) -> str:
    alerts = f'ALERTS{{alertstate="firing", severity=~"page|ticket", {chosen}}}'
    return f"count by ({label}) (count by ({label}, alertname) ({alerts}))"


def where() -> Row:
    names = {"alertname": "Alert", "instance": "Node", "run": "Run", "gpu": "GPU"}
    place = ", ".join(names)
    watchdog = 'ALERTS{alertstate="firing", alertname="Watchdog"}'
    firing_now = (
        f"max by ({place}) (3 * {alerts('page')} or 2 * {alerts('ticket')} or {alerts('info')} or 0 * {watchdog})"
    )
    active = f"time() - min by ({place}) (ALERTS_FOR_STATE) and {firing_now}"
    ranks = f'count by ({place}) (ALERTS{{alertstate="firing", rank!="", {CHOSEN}}})'
    runbook = {
        "title": "What to do",
        "url": "https://github.com/trainvitals/trainvitals/blob/main/docs/runbooks/${__value.raw}.md",
        "targetBlank": True,
    }
    grave = Column("Severity", {"mappings": [SEVERITIES], "custom.cellOptions": {"type": "color-text"}})
    return Row("Where?", 8, (
        table("Alerts", "What fires now and where, the gravest first; Watchdog always does, else nobody is looking.",
              names, {"Severity": firing_now, "Active for": active, "Ranks": ranks},
              worst="Severity", unit="s",
              columns=(grave, shown("Ranks", "short"), linked("Alert", runbook), linked("Node", TO_NODE),
                       linked("Run", run_link(VARIABLES)))),
    ))  # fmt: skip


def nodes() -> Row:
    columns = (
        linked("Node", TO_NODE),
        judged("Alerts", "short", NONE_WANTED),
        judged("GPUs missing", "short", NONE_ALLOWED),
        judged("Hottest", "celsius", over_whole("gpu_temperature:celsius")),
        judged("Fullest memory", "percentunit", rising(threshold("gpu_memory:ratio")), decimals=0),
        shown("Utilization", "percentunit", decimals=0),
        judged("Idle held", "short", NONE_WANTED),
        shown("Power", "watt"),
        judged("CPU", "percentunit", rising(threshold("host_cpu:ratio")), decimals=0),
        judged("Memory", "percentunit", rising(threshold("host_memory:ratio")), decimals=0),
        judged("Disk left", "percentunit", falling(threshold("host_disk_full:ratio"), bad="red"), decimals=0),
        shown("Per hour", "currencyUSD", decimals=2),
    )
    values = {
        # A node that is gone has none of the other columns, but it has its alert.
        "Alerts": f"{alerts_by('instance', NODE)} or 0 * max by (instance) (node:gpus:count{HERE})",
        "GPUs missing": f"max by (instance) (node:gpus_expected:count{HERE} - on (instance) node:gpus:count{HERE})",
        "Hottest": f"max by (instance) (gpu:temperature:celsius{HERE})",
        "Fullest memory": f"max by (instance) (gpu:memory_used:ratio{HERE})",
        "Utilization": f"avg by (instance) (gpu:utilization:ratio{HERE})",
        "Idle held": f"sum by (instance) (gpu:idle_allocated{HERE})",
        "Power": f"max by (instance) (node:gpu_power:watts{HERE})",
        "CPU": f"max by (instance) (host:cpu:ratio{HERE})",
        "Memory": f"max by (instance) (host:memory_used:ratio{HERE})",
        "Disk left": f"min by (instance) (host:filesystem_free:ratio{HERE})",
        "Per hour": f"max by (instance) (node:price:dollars_per_hour{HERE})",
    }
    return Row("Nodes, worst first", 8, (
        table("Nodes", "Each node and its GPUs; the name opens the GPU dashboard.", {"instance": "Node"}, values,
              worst="Alerts", unit="short", columns=columns),
    ))  # fmt: skip


def runs() -> Row:
    here = selector(RUN)
    alive = f"and on (run) ({RUNNING})"
    columns = (
        linked("Run", run_link(VARIABLES), ranks_link(VARIABLES)),
        judged("Alerts", "short", NONE_WANTED),
        judged("Productive", "percentunit", falling(threshold("goodput:ratio")), decimals=0),
        judged(
            "Data wait",
            "percentunit",
            rising(threshold("data_wait:ratio"), threshold("data_wait_page:ratio")),
            decimals=0,
        ),
        judged(
            "Worst rank", "none", rising(threshold("straggler:ratio"), threshold("straggler_page:ratio")), decimals=2
        ),
        judged("Last step, ago", "s", Steps("green", ((threshold("stall:seconds"), "red"),))),
        shown("GPUs", "short"),
        shown("Per hour", "currencyUSD", decimals=2),
    )
    values = {
        "Alerts": f"({alerts_by('run', RUN)} or 0 * ({RUNNING})) {alive}",
        "Productive": f"avg by (run) (run:goodput:ratio{here}) {alive}",
        "Data wait": f"avg by (run) (run:data_wait:ratio{here}) {alive}",
        "Worst rank": f"max by (run) (run:straggler:ratio{here}) {alive}",
        "Last step, ago": f"time() - max by (run) (training_last_step_timestamp_seconds{here}) {alive}",
        "GPUs": f"sum by (run) (run:gpus:count{here}) {alive}",
        "Per hour": f"sum by (run) (run:cost:dollars_per_hour{here}) {alive}",
    }
    return Row("Runs, worst first", 8, (
        table("Runs", "Runs that are running; the name opens the run, or its ranks.", {"run": "Run"}, values,
              worst="Alerts", unit="short", columns=columns),
    ))  # fmt: skip


def course() -> Row:
    return Row("Over time", 8, (
        line("GPU utilization by node", "Mean over the GPUs of each node.",
             (f"avg by (instance) (gpu:utilization:ratio{HERE})", "{{instance}}"), unit="percentunit", minimum=0,
             maximum=1, width=8),
        line("GPU power by node", "Power of the GPUs of each node together.",
             (f"max by (instance) (node:gpu_power:watts{HERE})", "{{instance}}"), unit="watt", minimum=0, width=8),
        line("Idle GPUs over time", "GPUs that did next to nothing in the last five minutes.",
             (IDLE, "idle"), unit="short", minimum=0, width=8),
    ))  # fmt: skip


DASHBOARD = Dashboard(
    "trainvitals-fleet", "TrainVitals / Fleet", "Is everything well, and if not, where?", VARIABLES,
    (is_it_well(), where(), nodes(), runs(), course(),
     Row("", 3, (text("About this dashboard", "What it needs to show anything.", NEEDS_RULES),))),
)  # fmt: skip
