"""The dashboards against Grafana's published types: a misspelled or forgotten property is found here."""

import copy

import pytest

from tests.grafana import schemas
from tests.grafana.schemas import part
from tests.grafana.support import UIDS, board, panels


@pytest.mark.parametrize("uid", UIDS)
def test_a_dashboard_has_only_properties_that_grafana_publishes(uid):
    assert schemas.problems(board(uid), part("dashboard")) == []


@pytest.mark.parametrize("uid", UIDS)
def test_options_and_custom_fields_of_each_panel_are_those_of_its_type(uid):
    found = []
    for panel in panels(board(uid)):
        custom = panel.get("fieldConfig", {}).get("defaults", {}).get("custom", {})
        found += schemas.problems(panel["options"], part(panel["type"], "options"))
        found += schemas.problems(custom, part(panel["type"], "custom"))
        found += [problem for target in panel.get("targets", ()) for problem in schemas.problems(target, part("query"))]
    assert found == []


@pytest.mark.parametrize("uid", UIDS)
def test_overrides_set_properties_that_the_panels_type_has(uid):
    found = []
    for panel in panels(board(uid)):
        for override in panel.get("fieldConfig", {}).get("overrides", ()):
            found += wrong_overrides(panel["type"], override["properties"])
    assert found == []


def wrong_overrides(kind: str, properties: list[dict]) -> list[str]:
    found = []
    for each in properties:
        name = each["id"].removeprefix("custom.")
        known = (part(kind, "custom") if name != each["id"] else schemas.of_fields())["properties"]
        found += schemas.problems(each["value"], known[name]) if name in known else [f"{kind} has no {each['id']}"]
    return found


MISTAKES = {
    "a property of no type": lambda panel: panel.update(datasources="x"),
    "an option of no type": lambda panel: panel["options"].update(graphmode="none"),
    "a wrong value of an option": lambda panel: panel["options"].update(colorMode="loud"),
    "a wrong mapping": lambda panel: panel["fieldConfig"]["defaults"].update(mappings=[{"type": "value"}]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_schemas_find(mistake):
    wrong = copy.deepcopy(board("trainvitals-gpu"))
    stat = next(panel for panel in panels(wrong) if panel["type"] == "stat")
    MISTAKES[mistake](stat)
    assert schemas.problems(wrong, part("dashboard")) or schemas.problems(stat["options"], part("stat", "options"))
