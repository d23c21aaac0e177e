"""Fleet: is everything well, what does it cost, and where to look first."""

from grafana.lib import Column, Dashboard, Row
from grafana.parts import (
    INSTANCES,
    JOBS,
    NODE_LINK,
    NONE_ALLOWED,
    NONE_WANTED,
    RANKS_LINK,
    RUN_LINK,
    RUNS,
    falling,
    judged,
    line,
    linked,
    rising,
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
RUNNING = f'max by (run) (training_run_status{{status="running", {JOB}, {RUN}}}) == 1'


def is_it_well() -> Row:
    return Row("", 4, (
        stat("Pages", "Alerts that somebody has to get up for, firing now.", firing('severity="page"'),
             steps=NONE_ALLOWED),
        stat("Tickets", "Alerts for this working day, firing now.", firing('severity="ticket"'), steps=NONE_WANTED),
        stat("GPUs missing", "GPUs that nodes should have and that do not answer.",
             f"sum(node:gpus_expected:count{{{NODE}}}) - sum(node:gpus:count{{{NODE}}})", steps=NONE_ALLOWED),
        stat("Idle GPUs", "GPUs that did next to nothing in the last five minutes.", "fleet:idle_gpus:count",
             steps=NONE_WANTED),
        stat("Running", "Training runs that go on now.", f"count({RUNNING}) or 0 * count(up)"),
        stat("Cost per hour", "What all nodes cost an hour, where their price was set.",
             "fleet:cost:dollars_per_hour", unit="currencyUSD", decimals=2),
    ))  # fmt: skip


def alerts(severity: str) -> str:
    return f'ALERTS{{alertstate="firing", severity="{severity}"}}'


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
    ranks = f'count by ({place}) (ALERTS{{alertstate="firing", rank!=""}})'
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
              columns=(grave, shown("Ranks", "short"), linked("Alert", runbook), linked("Node", NODE_LINK),
                       linked("Run", RUN_LINK))),
    ))  # fmt: skip


def nodes() -> Row:
    here = selector(NODE)
    columns = (
        linked("Node", NODE_LINK),
        judged("Alerts", "short", NONE_WANTED),
        judged("GPUs missing", "short", NONE_ALLOWED),
        judged("Hottest", "celsius", rising(threshold("gpu_temperature:celsius"))),
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
        "Alerts": f"{alerts_by('instance', NODE)} or 0 * max by (instance) (node:gpus:count{here})",
        "GPUs missing": f"max by (instance) (node:gpus_expected:count{here} - on (instance) node:gpus:count{here})",
        "Hottest": f"max by (instance) (gpu:temperature:celsius{here})",
        "Fullest memory": f"max by (instance) (gpu:memory_used:ratio{here})",
        "Utilization": f"avg by (instance) (gpu:utilization:ratio{here})",
        "Idle held": f"sum by (instance) (gpu:idle_allocated{here})",
        "Power": f"max by (instance) (node:gpu_power:watts{here})",
        "CPU": f"max by (instance) (host:cpu:ratio{here})",
        "Memory": f"max by (instance) (host:memory_used:ratio{here})",
        "Disk left": f"min by (instance) (host:filesystem_free:ratio{here})",
        "Per hour": f"max by (instance) (node:price:dollars_per_hour{here})",
    }
    return Row("Nodes, worst first", 8, (
        table("Nodes", "Each node and its GPUs; the name opens the GPU dashboard.", {"instance": "Node"}, values,
              worst="Alerts", unit="short", columns=columns),
    ))  # fmt: skip


def runs() -> Row:
    here = selector(RUN)
    alive = f"and on (run) ({RUNNING})"
    columns = (
        linked("Run", RUN_LINK, RANKS_LINK),
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
        judged("Last step, ago", "s", rising(threshold("stall:seconds"), threshold("stall:seconds"))),
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
    here = selector(NODE)
    return Row("Over time", 8, (
        line("GPU utilization by node", "Mean over the GPUs of each node.",
             (f"avg by (instance) (gpu:utilization:ratio{here})", "{{instance}}"), unit="percentunit", minimum=0,
             maximum=1, width=8),
        line("GPU power by node", "Power of the GPUs of each node together.",
             (f"max by (instance) (node:gpu_power:watts{here})", "{{instance}}"), unit="watt", minimum=0, width=8),
        line("Idle GPUs over time", "GPUs that did next to nothing in the last five minutes.",
             ("fleet:idle_gpus:count", "idle"), unit="short", minimum=0, width=8),
    ))  # fmt: skip


DASHBOARD = Dashboard(
    "trainvitals-fleet", "TrainVitals / Fleet", "Is everything well, and if not, where?", (JOBS, INSTANCES, RUNS),
    (is_it_well(), where(), nodes(), runs(), course(),
     Row("", 3, (text("About this dashboard", "What it needs to show anything.", NEEDS_RULES),))),
)  # fmt: skip
