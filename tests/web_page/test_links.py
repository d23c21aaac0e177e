"""Where a finding's links lead: to the web alone, and to the charts of what it is about."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.web_page.modules import evaluate

FINDING = {"id": "a", "kind": "GpuThermalMargin", "severity": "ticket", "gpu": "3",
           "opened": "2025-07-30T12:00:00.000Z",
           "runbook": "https://runbooks.example/x"}  # fmt: skip


def links(finding: dict[str, Any]) -> list[str]:
    card = {"card": "finding_card.js"}
    return list(evaluate(card, f"card.linksOf({json.dumps(finding)}).map((link) => link.attributes.href)"))


@pytest.mark.parametrize(("address", "is_link"), [
    ("https://runbooks.example/x", True), ("javascript:alert(1)", False), ("//evil", False), ("", False),
    (" javascript:alert(1)//http://", False), ("data:text/html,http://", False),
])  # fmt: skip
def test_only_what_leads_to_the_web_is_a_link(address: str, is_link: bool) -> None:
    assert (address in links({**FINDING, "runbook": address})) is is_link


def test_a_gpus_finding_leads_to_its_time_and_a_runs_to_its_step() -> None:
    _, system = links(FINDING)
    asked = parse_qs(urlsplit(system).query)
    assert (asked["view"], asked["gpu"]) == (["system"], ["3"])
    assert float(asked["from"][0]) < 1753876800 < float(asked["to"][0])
    _, training = links({**FINDING, "run": "a&b=<c>", "rank": "2", "step": 1000})
    asked = parse_qs(urlsplit(training).query)
    assert asked == {"view": ["training"], "run": ["a&b=<c>"], "rank": ["2"], "from": ["800"], "to": ["1200"]}
