"""Monitoring: is what watches itself well; a quiet dashboard elsewhere means nothing while this one is red."""

from grafana.lib import Dashboard, Row, Steps
from grafana.parts import INSTANCES, JOBS, NONE_ALLOWED, NONE_WANTED, judged, line, rising, shown, stat, table
from grafana.queries import JOB, NODE, RATE, selector
from grafana.thresholds import threshold

AGENT = selector(JOB, NODE)
WATCHED = selector(NODE)


def in_last_hour(counter: str) -> str:
    """What was counted; but a 0 is told only while somebody answers who would count."""
    return f"sum(increase({counter}[1h])) > 0 or 0 * count({counter})"


def is_it_well() -> Row:
    return Row("", 4, (
        stat("Targets down", "What Prometheus should read and cannot.", "count(up == 0) or 0 * count(up)",
             unit="short", steps=NONE_ALLOWED),
        stat("Watchdog", "The alert that always fires, so that silence is noticed; 1 is well.",
             'count(ALERTS{alertname="Watchdog", alertstate="firing"}) or 0 * count(up)',
             unit="short", steps=Steps("red", ((1, "green"),))),
        stat("Rules failing", "Evaluations that failed in the last hour.",
             in_last_hour("prometheus_rule_evaluation_failures_total"), unit="short", steps=NONE_WANTED, decimals=0),
        stat("Notifications failing", "Messages that Alertmanager could not deliver in the last hour.",
             in_last_hour("alertmanager_notifications_failed_total"), unit="short", steps=NONE_ALLOWED, decimals=0),
        stat("Sources down", "What an agent should read and cannot: drivers, the host, journals.",
             f"count(trainvitals_source_up{AGENT} == 0) or 0 * count(trainvitals_source_up{AGENT})",
             unit="short", steps=NONE_WANTED),
        stat("Records lost", "Journal records that agents could not write in the last hour: no space, no folder.",
             in_last_hour(f"trainvitals_journal_records_dropped_total{AGENT}"), unit="short", steps=NONE_WANTED,
             decimals=0),
    ))  # fmt: skip


def targets() -> Row:
    names = {"job": "Job", "instance": "Target"}
    values = {
        "Up": f"max by (job, instance) (up{WATCHED})",
        "Read in": f"max by (job, instance) (scrape_duration_seconds{WATCHED})",
        "Series": f"max by (job, instance) (scrape_samples_post_metric_relabeling{WATCHED})",
        "Of its usual": f"max by (job, instance) (scrape_samples_post_metric_relabeling{WATCHED}"
                        f" / avg_over_time(scrape_samples_post_metric_relabeling{WATCHED}[1h]))",
    }  # fmt: skip
    shrunk = Steps("orange", ((threshold("scrape_shrunk:ratio"), "green"),))
    columns = (
        judged("Up", "short", Steps("red", ((1, "green"),))), judged("Of its usual", "percentunit", shrunk, decimals=0),
        shown("Read in", "s"),
    )  # fmt: skip
    return Row("Targets, worst first", 9, (
        table("Targets", "What Prometheus reads: how long it takes, and how much comes of it.", names, values,
              worst="Up", ascending=True, unit="short", columns=columns),
    ))  # fmt: skip


def server() -> Row:
    lag = "max by (rule_group) (prometheus_rule_group_last_duration_seconds / prometheus_rule_group_interval_seconds)"
    return Row("Server", 8, (
        line("Series", "Series in Prometheus' head.", ("sum(prometheus_tsdb_head_series)", "series"), unit="short",
             minimum=0, width=6, steps=rising(threshold("prometheus_series:count"))),
        line("Memory", "Memory of the processes that watch.",
             ('max by (job, instance) (process_resident_memory_bytes{job!=""})', "{{job}} {{instance}}"), unit="bytes",
             minimum=0, width=6),
        line("Rule evaluation", "Share of its interval that each group of rules takes.", (lag, "{{rule_group}}"),
             unit="percentunit", minimum=0, width=6),
        line("Space on disk", "Size of Prometheus' blocks and of its log of writes.",
             ("sum(prometheus_tsdb_storage_blocks_bytes)", "blocks"),
             ("sum(prometheus_tsdb_wal_storage_size_bytes)", "log"),
             unit="bytes", minimum=0, width=6),
    ))  # fmt: skip


def delivery() -> Row:
    sent = f"sum by (integration) (rate(alertmanager_notifications_total{RATE}))"
    failed = f"sum by (integration) (rate(alertmanager_notifications_failed_total{RATE})) > 0"
    return Row("Delivery and agents", 8, (
        line("Notifications", "Messages that Alertmanager sent, and those that failed.",
             (sent, "{{integration}}"), (failed, "{{integration}} failed"), unit="cps", minimum=0, width=6),
        line("Ticks late", "Readings that agents began late, a minute.",
             (f"60 * rate(trainvitals_ticks_late_total{AGENT}{RATE})", "{{instance}}"), unit="short",
             minimum=0, width=6),
        line("Time to read", "How long each source's slowest device took.",
             (f"max by (instance, source) (trainvitals_source_read_seconds{AGENT})", "{{instance}} {{source}}"),
             unit="s", minimum=0, width=6),
        line("Journal on disk", "Size of each node's journal.",
             (f"max by (instance) (trainvitals_journal_bytes{AGENT})", "{{instance}}"), unit="bytes",
             minimum=0, width=6),
    ))  # fmt: skip


DASHBOARD = Dashboard(
    "trainvitals-monitoring", "TrainVitals / Monitoring", "Is what watches itself well?",
    (JOBS, INSTANCES), (is_it_well(), targets(), server(), delivery()), since="now-6h",
)  # fmt: skip
