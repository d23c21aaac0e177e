"""A lint of the rules: what promtool does not know about them."""

import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml

from tests.prometheus.support import RULE_FILES, RUNBOOKS, Rule, alerts, case_files, rules
from trainvitals import catalog
from trainvitals.detect.advice import ADVICE

HISTOGRAM = ("_bucket", "_sum", "_count")
DCGM = re.compile(r"DCGM_FI_(DEV|PROF)_[A-Z_]+")
NVIDIA_SMI = re.compile(r"nvidia_smi_[a-z_]+")
NODE_EXPORTER = {
    "node_cpu_seconds_total", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes",
    "node_filesystem_avail_bytes", "node_filesystem_size_bytes", "node_filesystem_files", "node_filesystem_files_free",
    "node_filesystem_readonly", "node_filesystem_device_error", "node_vmstat_pswpin", "node_vmstat_pswpout",
    "node_vmstat_oom_kill", "node_filefd_allocated", "node_filefd_maximum", "node_network_receive_errs_total",
    "node_network_transmit_errs_total", "node_boot_time_seconds", "node_timex_offset_seconds",
    "node_timex_maxerror_seconds", "node_timex_sync_status",
}  # fmt: skip
SERVER = {
    "up", "scrape_samples_post_metric_relabeling", "target:expected:info", "prometheus_tsdb_head_series",
    "prometheus_rule_evaluation_failures_total", "prometheus_config_last_reload_successful",
    "prometheus_tsdb_compactions_failed_total", "prometheus_tsdb_wal_corruptions_total",
    "prometheus_tsdb_reloads_failures_total", "prometheus_tsdb_wal_writes_failed_total",
    "prometheus_notifications_errors_total", "prometheus_notifications_dropped_total",
    "prometheus_notifications_alertmanagers_discovered", "alertmanager_notifications_failed_total",
    "alertmanager_config_last_reload_successful",
}  # fmt: skip
# Counters that are sure to begin at zero, or of which only the slope matters.
SAFE_TO_INCREASE = re.compile(r"(prometheus|alertmanager)_\w+|gpu:ecc_corrected:total")
ALL = list(rules())
RECORDED = {rule.name for rule in ALL if "record" in rule.body}


def nodes(node: Any) -> Iterator[Any]:
    """An expression with all that it is made of."""
    yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
        if (child := getattr(node, name, None)) is not None:
            yield from nodes(child)
    for child in getattr(node, "args", ()):
        yield from nodes(child)


def parsed(rule: Rule) -> list[Any]:
    return list(nodes(promql_parser.parse(rule.expr)))


def names(rule: Rule) -> set[str]:
    found = [node for node in parsed(rule) if isinstance(node, promql_parser.VectorSelector)]
    return {node.name for node in found if node.name}


def is_known(name: str) -> bool:
    ours = name in catalog.BY_NAME or any(name.removesuffix(end) in catalog.BY_NAME for end in HISTOGRAM)
    theirs = DCGM.fullmatch(name) or NVIDIA_SMI.fullmatch(name) or name in NODE_EXPORTER | SERVER
    return bool(ours or theirs or name in RECORDED)


def label(rule: Rule) -> str:
    return f"{rule.name}-{rule.body.get('labels', {}).get('severity', '')}"


def is_page(rule: Rule) -> bool:
    return bool(rule.body["labels"]["severity"] == "page")


each_file = pytest.mark.parametrize("file", RULE_FILES)
each_alert = pytest.mark.parametrize("rule", alerts(), ids=label)


@each_file
def test_it_reads_only_series_that_somebody_writes(file: str) -> None:
    assert {(rule.name, name) for rule in rules(file) for name in names(rule) if not is_known(name)} == set()


@each_alert
def test_it_reads_no_exporters_gpu_series_past_the_vocabulary(rule: Rule) -> None:
    assert [name for name in sorted(names(rule)) if DCGM.fullmatch(name) or NVIDIA_SMI.fullmatch(name)] == []


def compared_numbers(rule: Rule) -> Iterator[float]:
    """How many samples there must be is no threshold."""
    for node in parsed(rule):
        compares = str(getattr(node, "op", "")) in {">", "<", ">=", "<=", "==", "!="} and hasattr(node.rhs, "val")
        if compares and "count_over_time" not in called(node.lhs):
            yield node.rhs.val


def called(node: Any) -> set[str]:
    return {part.func.name for part in nodes(node) if hasattr(part, "func")}


@each_alert
def test_numbers_it_fires_at_are_thresholds(rule: Rule) -> None:
    assert set(compared_numbers(rule)) <= {0.0, 1.0}


def test_the_lint_sees_a_number_that_is_no_threshold() -> None:
    rule = Rule("gpu", "g", {"alert": "A", "expr": "max(gpu:temperature:celsius) > 80"})

    assert list(compared_numbers(rule)) == [80.0]


def test_every_threshold_is_used() -> None:
    used = set().union(*(names(rule) for rule in ALL))

    assert {rule.name for rule in rules("thresholds")} - used == set()


@each_alert
def test_it_does_not_trust_increase_with_a_counter_that_may_begin_above_zero(rule: Rule) -> None:
    calls = [node for node in parsed(rule) if getattr(node, "func", None) and node.func.name == "increase"]
    inside = {part.name for call in calls for part in nodes(call) if isinstance(part, promql_parser.VectorSelector)}

    assert [name for name in inside if not SAFE_TO_INCREASE.fullmatch(name)] == []


@pytest.mark.parametrize("rule", [rule for rule in alerts() if rule.file != "stack" and is_page(rule)], ids=label)
def test_a_page_about_a_node_outlasts_a_restart_of_its_agent(rule: Rule) -> None:
    assert rule.body["keep_firing_for"] == "2m"


@each_alert
def test_its_words_say_what_and_what_to_do_first(rule: Rule) -> None:
    said = rule.body["annotations"]

    assert "$value" not in said["summary"] and not re.search(r"\d", said["summary"])
    assert len(said["description"]) > 60 and said["description"].rstrip().endswith((".", ")"))
    assert said["runbook_url"].endswith(f"/docs/runbooks/{rule.name}.md")
    assert re.match(r"/d/trainvitals-(fleet|gpu|run|ranks|cost|monitoring)(\?|$)", said["dashboard"])


@each_alert
def test_it_bears_source_and_a_severity_of_its_row(rule: Rule) -> None:
    labels = rule.body["labels"]
    row = next(line for line in (RUNBOOKS / "README.md").read_text().splitlines() if f"[{rule.name}]" in line)

    assert labels["source"] == "prometheus"
    assert labels["severity"] in re.findall(r"\w+", row.split("|")[2])


def cases() -> Iterator[tuple[str, str]]:
    """Of each promtool case the alert, and the severity it fires with or nothing."""
    for path in case_files():
        for test in yaml.safe_load(path.read_text())["tests"]:
            for case in test.get("promql_expr_test", ()):
                found = re.search(r'alertname="(\w+)"', case["expr"])
                fired = re.findall(r'severity="(\w+)"', str(case["exp_samples"])) or [""]
                yield from ((found[1], severity) for severity in fired) if found else ()


CASES = set(cases())


@each_alert
def test_it_is_tried_on_both_sides_of_its_boundary(rule: Rule) -> None:
    assert (rule.name, rule.body["labels"]["severity"]) in CASES
    assert (rule.name, "") in CASES


def test_what_agents_find_is_told_by_one_rule_alone() -> None:
    """A kind with a rule of its own is left to that, and no other is left out."""
    (record,) = [rule for rule in rules("record") if rule.name == "finding:without_rule:info"]
    named = set(re.findall(r"\w+", " ".join(re.findall(r'kind!~"([^"]+)"', record.body["expr"]))))
    assert named == {rule.name for rule in alerts()} & ADVICE.keys()
