"""Each query is PromQL, and names nothing but series that somebody makes."""

import json
import re

import promql_parser
import pytest
import yaml

from grafana.queries import RUN, THE_RUN
from tests.grafana.support import FOLDER, ROOT, UIDS, WITHOUT_RULES, board, choices, events, filled, queries
from tests.prometheus.support import promtool
from trainvitals import catalog

OTHERS = {
    "up", "ALERTS", "ALERTS_FOR_STATE", "scrape_duration_seconds", "scrape_samples_scraped",
    "scrape_samples_post_metric_relabeling", "process_resident_memory_bytes",
    "prometheus_rule_evaluation_failures_total", "prometheus_rule_group_interval_seconds",
    "prometheus_rule_group_last_duration_seconds", "prometheus_tsdb_head_series",
    "prometheus_tsdb_storage_blocks_bytes", "prometheus_tsdb_wal_storage_size_bytes",
    "alertmanager_notifications_total", "alertmanager_notifications_failed_total",
    "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR",
}  # fmt: skip
EXPORTED = {
    name
    for metric in catalog.METRICS
    for name in (metric.name, *(f"{metric.name}_{part}" for part in ("bucket", "count", "sum")))
}
every_board = pytest.mark.parametrize("uid", UIDS)


def recorded():
    documents = [yaml.safe_load(path.read_text()) for path in (ROOT / "prometheus/rules").glob("*.yml")]
    rules = [rule for document in documents for group in document["groups"] for rule in group["rules"]]
    return {rule["record"] for rule in rules if "record" in rule}


def series(expr):
    """The names that an expression reads: of each selector its name, or those that its pattern lists."""
    found = set()
    for text in re.findall(r'__name__=~"([^"]*)"', expr):
        found |= set(text.split("|"))
    return found | set(selected(promql_parser.parse(expr)))


def selected(node):
    if isinstance(node, promql_parser.MatrixSelector):
        yield from selected(node.vector_selector)
    elif isinstance(node, promql_parser.VectorSelector):
        yield from [node.name] if node.name else []
    elif isinstance(node, promql_parser.BinaryExpr):
        yield from (*selected(node.lhs), *selected(node.rhs))
    elif isinstance(node, promql_parser.Call):
        for argument in node.args:
            yield from selected(argument)
    elif hasattr(node, "expr"):
        yield from selected(node.expr)


def asked(uid):
    dashboard = board(uid)
    return queries(dashboard) + events(dashboard) + choices(dashboard)


@every_board
def test_every_query_names_only_series_that_exist(uid):
    known = EXPORTED | recorded() | OTHERS
    unknown = {(each.panel, name) for each in asked(uid) for name in series(each.expr) - known}
    assert unknown == set()


@every_board
def test_every_variable_that_is_used_can_be_chosen(uid):
    chosen = {variable["name"] for variable in board(uid)["templating"]["list"]}
    texts = [target["expr"] for panel in board(uid)["panels"] for target in panel.get("targets", ())]
    texts += [event["target"]["expr"] for event in board(uid)["annotations"]["list"]]
    used = {name for text in texts for name in re.findall(r"\$\{?(\w+)", text) if not name.startswith("__")}
    assert used <= chosen


@pytest.mark.parametrize("uid", WITHOUT_RULES)
def test_every_query_falls_back_to_what_the_collector_exports(uid):
    only_ours = {"ALERTS"} | EXPORTED
    profiled = {"SM active", "Tensor cores active", "DRAM active"}
    bound = [each.panel for each in asked(uid) if not series(each.expr) & only_ours and each.panel not in profiled]
    assert bound == []


@every_board
def test_a_single_choice_is_compared_as_it_is_and_several_as_a_pattern(uid):
    """Grafana escapes a value for a regular expression only where several can be chosen."""
    text = (FOLDER / f"{uid}.json").read_text(encoding="utf-8")
    several = {one["name"] for one in board(uid)["templating"]["list"] if one.get("multi")}
    compared = {*re.findall(r'(=~)\\"\$(\w+)', text), *re.findall(r"(=)`\$\{(\w+):raw\}`", text)}
    compared |= set(re.findall(r"(=~)`\$\{(\w+):regex\}`", text))
    labels = {one["name"] for one in board(uid)["templating"]["list"] if one["type"] == "query"}
    assert {name for _, name in compared} == labels
    assert {name for how, name in compared if how == "=~"} == several
    assert not re.search(r'[^~]=\\"\$', text)


@pytest.mark.parametrize("uid", ["trainvitals-run", "trainvitals-ranks"])
def test_a_run_is_chosen_by_its_whole_name(uid):
    """Grafana writes a result as text, and escapes nothing in it."""
    (variable,) = [one for one in board(uid)["templating"]["list"] if one["name"] == "run"]
    pattern = variable["regex"].removeprefix("/").removesuffix("/")
    assert re.search(pattern, '{run="the "best" {of} all"} 1760000000 1760000015000')[1] == 'the "best" {of} all'


def test_a_variable_that_nobody_gives_is_an_error():
    with pytest.raises(KeyError, match="nobody"):
        filled('up{instance=~"$nobody"}', {})


def test_the_names_of_an_expression_are_found_wherever_they_stand():
    expr = 'sum(rate(a{x="1"}[5m])) / (b > bool 0) or -c and on (x) topk(1, d) + sum_over_time((e)[1h:1m]) * time()'
    assert series(expr) == set("abcde")
    assert series('count({__name__=~"f|g", job="x"})') == set("fg")


def in_grafana(text, name):
    """Of the formats regex and raw what Grafana puts in for one name."""
    escaped = re.sub(r"[\\^$*+?.()|\[\]{}/]", r"\\\g<0>", name)
    return text.replace("${run:regex}", escaped).replace("${run:raw}", name)


def chosen(matcher, name):
    """The run that Prometheus looks for, or the pattern by which it does."""
    said = promtool("--experimental", "promql", "format", "up{" + in_grafana(matcher, name) + "}")
    return json.loads(re.fullmatch(r'up\{run=~?(".*")\}\s*', said)[1])


NAMES = ("llama-7b", 'it\'s "best"', "a\\b", "a\\", "lr=1e-4 {x} [y] (z)", "$run ${run}", "50 % | 1/2", "läufer")


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_found_whatever_it_is_called(name):
    assert chosen(THE_RUN, name) == name
    assert re.fullmatch(chosen(RUN, name), name)


@pytest.mark.parametrize("matcher", [THE_RUN, RUN])
def test_a_backquote_in_a_name_is_what_no_format_can_hold(matcher):
    with pytest.raises(AssertionError, match="parse error"):
        chosen(matcher, "a`b")
