"""What each committed dashboard promises: made by build.py, importable anywhere, told in words, laid out whole."""

import re
from collections import Counter
from itertools import chain, product

import pytest
import yaml

from grafana import build
from grafana.lib import DATASOURCE
from grafana.thresholds import recorded, threshold
from tests.grafana.support import FOLDER, ROOT, UIDS, board, panels

CORE_TYPES = {"timeseries", "stat", "table", "state-timeline", "heatmap", "text"}
GOOD_NEWS = {
    "trainvitals-gpu/Xid errors": "No Xid was seen",
}
every_board = pytest.mark.parametrize("uid", UIDS)


def test_the_committed_files_are_what_build_writes():
    made = {f"{dashboard.uid}.json": build.text(dashboard) for dashboard in build.DASHBOARDS}
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert committed == made, "run: python -m grafana.build"
    assert sorted(made) == sorted(f"{uid}.json" for uid in UIDS)


@every_board
def test_it_can_be_imported_by_hand_and_provisioned(uid):
    dashboard = board(uid)
    assert not {"__inputs", "__requires", "id", "version"} & set(dashboard)
    first = dashboard["templating"]["list"][0]
    assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
    variables = [variable["datasource"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    sources = [panel["datasource"] for panel in panels(dashboard) if panel["type"] != "text"]
    targets = [target["datasource"] for panel in panels(dashboard) for target in panel.get("targets", ())]
    events = [event["datasource"] for event in dashboard["annotations"]["list"]]
    assert all(source == DATASOURCE for source in chain(variables, sources, targets, events))


@every_board
def test_panel_ids_titles_and_ref_ids_are_unique(uid):
    shown = board(uid)["panels"]
    assert max(Counter(panel["id"] for panel in shown).values()) == 1
    assert max(Counter(panel["title"] for panel in panels(board(uid))).values()) == 1
    for panel in panels(board(uid)):
        refs = [target["refId"] for target in panel.get("targets", ())]
        assert refs == sorted(set(refs)), panel["title"]


@every_board
def test_there_is_no_gap_and_no_overlap(uid):
    taken = Counter(
        cell
        for panel in board(uid)["panels"]
        for cell in product(
            range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"]),
            range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"]),
        )
    )
    height = 1 + max(y for _, y in taken)
    assert set(taken) == set(product(range(24), range(height)))
    assert max(taken.values()) == 1


@every_board
def test_every_panel_has_one_sentence_and_a_unit(uid):
    for panel in panels(board(uid)):
        assert panel["type"] in CORE_TYPES, panel["title"]
        assert re.fullmatch(r"[A-Z].{10,118}[^.]\.", panel["description"]), panel["title"]
        assert ". " not in panel["description"], panel["title"]
        if panel["type"] != "text":
            assert says_unit(panel), f"{panel['title']} has no unit"


def says_unit(panel):
    defaults = panel["fieldConfig"]["defaults"]
    return defaults.get("unit") or COUNTS.match(panel["title"])


# Plain numbers of things need no unit.
COUNTS = re.compile(
    "GPUs missing|Slowed by|Uncorrectable|NaN or|Alerts|Pages|Tickets|Idle|Running|Ranks left|"
    "Targets down|Watchdog|Rules failing|Notifications failing|Sources down|Records lost"
)


@every_board
def test_absence_is_told_in_words_only_where_it_is_good_news(uid):
    told = {
        f"{uid}/{panel['title']}": panel["fieldConfig"]["defaults"]["noValue"]
        for panel in panels(board(uid))
        if "noValue" in panel.get("fieldConfig", {}).get("defaults", {})
    }
    assert told == {name: text for name, text in GOOD_NEWS.items() if name.startswith(f"{uid}/")}


@every_board
def test_an_old_value_never_looks_new(uid):
    for panel in panels(board(uid)):
        if panel["type"] in {"stat", "table"}:
            assert all(target["instant"] and not target["range"] for target in panel["targets"]), panel["title"]


@every_board
def test_links_keep_time_and_variables(uid):
    (links,) = board(uid)["links"]
    assert links["type"] == "dashboards" and links["keepTime"] and links["includeVars"]
    assert set(links["tags"]) <= set(board(uid)["tags"])
    for url in re.findall(r'"url": "(/d/[^"]+)"', (FOLDER / f"{uid}.json").read_text()):
        target, _, rest = url.removeprefix("/d/").partition("?")
        assert target in UIDS
        assert rest.startswith("${__url_time_range}&var-datasource=${datasource}")
        known = {variable["name"] for variable in board(target)["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", rest)) <= known


@every_board
def test_tables_sort_and_colour_columns_that_they_have(uid):
    for panel in panels(board(uid)):
        if panel["type"] == "table":
            organized = panel["transformations"][-1]["options"]["renameByName"]
            values = {name for name in organized if name.startswith("Value")}
            assert len(values) == len(panel["targets"]), panel["title"]
            named = [override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]]
            sorted_by = [each["displayName"] for each in panel["options"]["sortBy"]]
            assert {*named, *sorted_by} <= set(organized.values()), panel["title"]


def steps_of(uid, title):
    panel = next(panel for panel in panels(board(uid)) if panel["title"] == title)
    return [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]]


THRESHOLDS = {
    ("trainvitals-gpu", "Temperature"): ["gpu_temperature:celsius"],
    ("trainvitals-gpu", "Hottest GPU"): ["gpu_temperature:celsius"],
    ("trainvitals-gpu", "Memory used"): ["gpu_memory:ratio"],
    ("trainvitals-gpu", "Memory temperature"): ["gpu_memory_temperature:celsius"],
    ("trainvitals-gpu", "PCIe packets sent again"): ["gpu_pcie_replays:per_minute"],
    ("trainvitals-gpu", "NVLink errors"): ["gpu_nvlink_errors:per_minute"],
    ("trainvitals-run", "Waiting for data"): ["data_wait:ratio", "data_wait_page:ratio"],
    ("trainvitals-run", "Gradient norm"): ["gradient_vanishing:value", "gradient_norm:value"],
    ("trainvitals-run", "Learning rate"): ["learning_rate_low:value"],
    ("trainvitals-ranks", "Slowest rank"): ["straggler:ratio", "straggler_page:ratio"],
    ("trainvitals-ranks", "Against the median"): ["straggler:ratio", "straggler_page:ratio"],
    ("trainvitals-cost", "Productive"): ["goodput:ratio"],
    ("trainvitals-monitoring", "Series"): ["prometheus_series:count"],
}


@pytest.mark.parametrize(("uid", "title"), THRESHOLDS)
def test_a_panel_turns_when_its_alert_does(uid, title):
    rules = yaml.safe_load((ROOT / "prometheus/rules/thresholds.yml").read_text())
    numbers = {rule["record"]: float(rule["expr"]) for group in rules["groups"] for rule in group["rules"]}
    assert steps_of(uid, title) == [numbers[f"threshold:{name}"] for name in THRESHOLDS[uid, title]]


def test_a_threshold_that_the_rules_do_not_record_is_named():
    with pytest.raises(KeyError, match=r"records no threshold:warmth:celsius: name one of .*threshold:gpu_temperature"):
        threshold("warmth:celsius")
    assert all(name.startswith("threshold:") for name in recorded())


@pytest.mark.parametrize("uid", ["trainvitals-fleet", "trainvitals-cost"])
def test_what_needs_our_rules_says_so(uid):
    texts = [panel["options"]["content"] for panel in panels(board(uid)) if panel["type"] == "text"]
    assert any("our rules record" in text for text in texts)
