"""What each committed dashboard promises: made by build.py, importable anywhere, told in words, laid out whole."""

import re
from collections import Counter
from itertools import chain, product

import pytest

from grafana import build
from grafana.lib import DATASOURCE
from grafana.thresholds import recorded, threshold
from tests.grafana.support import FOLDER, UIDS, board, panels

CORE_TYPES = {"timeseries", "stat", "table", "state-timeline", "heatmap", "text"}
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
            assert panel["fieldConfig"]["defaults"].get("unit"), f"{panel['title']} has no unit"


@every_board
def test_no_words_stand_for_absence_which_is_unknown(uid):
    told = [panel["title"] for panel in panels(board(uid)) if "noValue" in str(panel.get("fieldConfig"))]
    assert told == []


@every_board
def test_heat_maps_order_their_rows_by_number(uid):
    """Grafana does where the names of all rows are numbers; "rank 10" would stand before "rank 2"."""
    legends = [
        target["legendFormat"]
        for panel in panels(board(uid))
        for target in panel.get("targets", ())
        if panel["type"] == "heatmap"
    ]
    assert set(legends) <= {"{{rank}}"}
    assert len(legends) == (2 if uid == "trainvitals-ranks" else 0)


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
        # As the links between dashboards do, and each once: two values of one variable would both be chosen.
        own = {variable["name"] for variable in board(uid)["templating"]["list"]}
        given = re.findall(r"&(?:var-(\w+)=|\$\{(\w+):queryparam\})", f"&{rest}")
        assert Counter(set_ or kept for set_, kept in given) == Counter(own | {"datasource"} | {given[-1][0]})
        # A run's name may hold what has a meaning in an address, as + and &.
        assert rest.endswith(":percentencode}")


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


def test_a_threshold_that_the_rules_do_not_record_is_named():
    with pytest.raises(KeyError, match=r"records no threshold:warmth:celsius: name one of .*threshold:gpu_temperature"):
        threshold("warmth:celsius")
    assert all(name.startswith("threshold:") for name in recorded())


@pytest.mark.parametrize("uid", ["trainvitals-fleet", "trainvitals-cost"])
def test_what_needs_our_rules_says_so(uid):
    texts = [panel["options"]["content"] for panel in panels(board(uid)) if panel["type"] == "text"]
    assert any("our rules record" in text for text in texts)
