"""Index, runbooks and rules say the same."""

import re

import pytest

from tests.prometheus.support import RUNBOOKS, alerts

ROW = re.compile(r"\| \[(\w+)\]\((\w+)\.md\) \| ([^|]+) \| (agent|Prometheus|agent, Prometheus) \|")
PARTS = [
    "What it means",
    "Why it matters",
    "First look",
    "What to do",
    "When it is a false alarm",
    "How it is computed",
]
INDEX = {row[0]: row for row in ROW.findall((RUNBOOKS / "README.md").read_text())}
PAGES = sorted(path.stem for path in RUNBOOKS.glob("*.md") if path.stem != "README")
each_page = pytest.mark.parametrize("name", PAGES)


def page(name: str) -> str:
    return (RUNBOOKS / f"{name}.md").read_text()


def test_every_alert_of_the_index_has_a_page_of_its_name() -> None:
    assert sorted(INDEX) == PAGES
    assert all(name == file for name, file, *_ in INDEX.values())


def test_the_index_names_those_that_prometheus_sees_and_no_other() -> None:
    assert {name for name, *_, seen in INDEX.values() if "Prometheus" in seen} == {rule.name for rule in alerts()}


@each_page
def test_a_page_has_the_parts_of_every_other_and_says_something_in_each(name: str) -> None:
    title, *parts = re.split(r"^## ", page(name), flags=re.MULTILINE)

    assert title.startswith(f"# {name}\n")
    assert f"Severity: {INDEX[name][2]}. Seen by: {INDEX[name][3]}." in title
    assert [part.split("\n", 1)[0] for part in parts] == PARTS
    assert all(len(part.split("\n", 1)[1].strip()) >= 5 for part in parts)


@pytest.mark.parametrize("name", sorted({rule.name for rule in alerts()}))
def test_a_page_says_how_long_it_has_to_be_true(name: str) -> None:
    for long in {rule.body.get("for", "0m") for rule in alerts() if rule.name == name}:
        count, unit = re.fullmatch(r"(\d+)(s|m)", long).groups()  # type: ignore[union-attr]
        lasts = f"true for {count} {'min' if unit == 'm' else 's'} before it fires"
        assert ("which fires at once" if count == "0" else lasts) in " ".join(page(name).split())


@pytest.mark.parametrize("name", sorted({rule.name for rule in alerts()}))
def test_a_page_names_group_file_and_thresholds_of_its_rules(name: str) -> None:
    mine = [rule for rule in alerts() if rule.name == name]
    used = {found for rule in mine for found in re.findall(r"threshold:\w+:\w+", rule.expr)}

    assert all(f"`{rule.group}`" in page(name) and f"prometheus/rules/{rule.file}.yml" in page(name) for rule in mine)
    assert used <= set(re.findall(r"threshold:\w+:\w+", page(name)))
