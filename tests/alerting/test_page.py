"""Alerts on the page: what its script makes of them, run by Node where there is one."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.collector.cli.test_page import SCRIPT

# As much of a document as the script asks for: elements with children, found by their ids.
DOCUMENT = """
class Element {
  constructor() { Object.assign(this, { children: [], own: "", hidden: false, classList: { remove() {}, add() {} } }); }
  get textContent() { return this.own + this.children.map((child) => child.textContent).join("|"); }
  set textContent(text) { this.own = text; this.children = []; }
  get tBodies() { return [this.body ??= new Element()]; }
  get firstChild() { return this.children[0]; }
  get firstElementChild() { return this.first ??= new Element(); }
  get lastElementChild() { return this.last ??= new Element(); }
  get lastChild() { return this.children[this.children.length - 1]; }
  insertCell() { return this.appendChild(new Element()); }
  appendChild(child) { this.children.push(child); return child; }
  replaceChildren(...children) { this.own = ""; this.children = children; }
}
const known_ids = {};
globalThis.document = { getElementById: (id) => known_ids[id] ??= new Element(), createElement: () => new Element(),
  querySelector: () => new Element() };
globalThis.EventSource = class {};
globalThis.setInterval = () => {};
"""
ALERT = {"name": "GpuMissing", "status": "firing", "starts": "2026-05-01T10:00:00.000Z",
         "timestamp": "2026-05-01T10:01:00.000Z", "labels": {"severity": "page", "instance": "gpu1", "gpu": "3"},
         "annotations": {"summary": "7 of 8", "runbook_url": "https://runbooks.example/x"}}  # fmt: skip
NOW = 1777629720
UNKNOWN = chr(0x2013)


def evaluate(program: str) -> Any:
    node = shutil.which("node")
    if not node:
        pytest.skip("no Node here")
    text = f"{DOCUMENT}\n{SCRIPT.read_text()}\nconsole.log(JSON.stringify({program}))"
    answer = subprocess.run([node, "-e", text], capture_output=True, text=True, timeout=20, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def drawn(firing: list[Any], resolved: list[Any], told: str) -> Any:
    alerts = {"firing": firing, "firing_count": len(firing), "resolved": resolved}
    return evaluate(f"(drawAlerts({json.dumps(alerts)}, {NOW}), {told})")


def test_an_alert_is_a_row_that_says_where_and_since_when() -> None:
    cells = evaluate(f"alertRow({json.dumps(ALERT)}, {NOW}).children.map((cell) => cell.textContent)")
    assert cells == ["GpuMissing", "page", "GPU 3, gpu1", "2 min ago", "7 of 8"]


@pytest.mark.parametrize(("address", "link"), [
    ("https://runbooks.example/x", "https://runbooks.example/x"), ("javascript:alert(1)", None), ("//evil", None),
    (" javascript:alert(1)//http://", None),
])  # fmt: skip
def test_only_what_leads_to_the_web_is_a_link(address: str, link: str | None) -> None:
    alert = {**ALERT, "annotations": {"runbook_url": address}}
    assert evaluate(f"alertRow({json.dumps(alert)}, {NOW}).firstChild.children[0]?.href ?? null") == link


def test_the_heading_counts_and_what_ended_is_folded_away() -> None:
    told = 'find("alerts-title").textContent'
    assert drawn([ALERT, ALERT], [], told) == "Alerts: 2"
    assert drawn([], [], told) == "Alerts"
    assert drawn([], [], 'find("no-alerts").hidden') is False
    assert drawn([], [], 'find("resolved").hidden') is True
    lines = drawn([], [ALERT], 'find("resolved").lastElementChild.children.map((line) => line.textContent)')
    assert lines == ["GpuMissing · GPU 3, gpu1 · 60 s ago"]


def test_an_alert_without_labels_or_words_is_a_row_of_dashes() -> None:
    alert = {**ALERT, "labels": {}, "annotations": {}}
    cells = evaluate(f"alertRow({json.dumps(alert)}, {NOW}).children.map((cell) => cell.textContent)")
    assert cells == ["GpuMissing", UNKNOWN, UNKNOWN, "2 min ago", UNKNOWN]
