"""What others wrote, on the page: names that are alike, texts that are a page long, letters that nobody sees."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.collector.support import Served
from tests.web_page.modules import evaluate
from tests.web_page.screen import Screen

Opens = Callable[..., Screen]
FINDING: dict[str, Any] = {
    "id": "a", "state": "open", "kind": "TrainingCrashed", "severity": "page", "run": "gemma-2", "what": "crashed",
    "todo": "See `journalctl -k | grep <oom>`, then resume.", "source": "agent",
    "opened": "2025-07-30T12:00:00.000Z", "evidence": [],
}  # fmt: skip


def found(screen: Screen, **changed: Any) -> None:
    """From now on that one finding is open."""
    told = {"findings": [FINDING | changed], "more": 0, "problems": []}
    screen.page.route("**/api/v1/findings?state=open", lambda route: route.fulfill(json=told))


def a_run(run: str, status: str = "running", **more: Any) -> dict[str, Any]:
    return {"run": run, "name": "gemma", "status": status, "ranks": [], "progress": {}, **more}


def test_runs_of_one_name_are_told_apart_and_the_worst_comes_first(opens: Opens, agent: Served) -> None:
    screen = opens()
    found(screen)
    screen.on_a_stage()
    screen.tell(agent.snapshot() | {"runs": [a_run("gemma-3"), a_run("gemma-2"), a_run("gemma", "finished"),
                                             a_run("gemma-1", "killed")]})  # fmt: skip
    cards = screen.page.locator("#run-cards > li")
    expect(cards.first).to_contain_text("gemma-2")
    expect(cards.last).to_contain_text("gemma-3")
    expect(screen.page.locator("#ended-list > li").last).to_contain_text("gemma-1")
    expect(screen.page.locator("#ended-list > li").first).not_to_contain_text("gemma · ")
    # Their curves are not in this journal.
    screen.said.clear()


@pytest.mark.parametrize("width", [400, 1600])
def test_an_error_of_a_page_is_three_lines_until_somebody_wants_more(opens: Opens, agent: Served, width: int) -> None:
    words = f"gemma crashed: {'RuntimeError: CUDA error: an illegal memory access was encountered ' * 18}the end"
    screen = opens(viewport={"width": width, "height": 900})
    found(screen, what=words)
    screen.on_a_stage()
    screen.tell(agent.snapshot())
    line = "(place) => place.clientHeight / parseFloat(getComputedStyle(place).lineHeight)"
    what = screen.page.locator("#wrong-list p")
    expect(what).to_contain_text("the end")
    assert 1 < what.evaluate(line) < 3.5
    screen.picture(f"error-overview-{width}")
    screen.page.keyboard.press("4")
    what = screen.page.locator("#open .what")
    assert what.evaluate(line) < 3.5
    screen.press("More")
    assert what.evaluate(line) > 3.5
    assert screen.barriers() == []
    screen.press("Less")
    assert what.evaluate(line) < 3.5
    screen.picture(f"error-alerts-{width}")


def test_a_command_in_an_advice_is_shown_as_one(opens: Opens, agent: Served) -> None:
    screen = opens()
    found(screen)
    screen.page.goto(f"{agent.address}/?view=alerts")
    expect(screen.page.locator("#open code")).to_have_text("journalctl -k | grep <oom>")
    expect(screen.page.locator("#open .finding")).not_to_contain_text("`")
    found(screen, todo="an odd ` stays")
    screen.page.reload()
    screen.see("#open .finding", "an odd ` stays")


@pytest.mark.parametrize(("text", "shown"), [
    ("abc\u202egnp.exe", "abc gnp.exe"), ("a\u2066b\u2069\u200b\ufeffc", "a b   c"), ("a\x1b[2Jb\x7f", "a [2Jb "),
    ("two\nlines\tof", "two\nlines\tof"), ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
    ("\U0001f9d1\u200d\U0001f680", "\U0001f9d1\u200d\U0001f680"),
])  # fmt: skip
def test_letters_that_nobody_sees_are_blanks(text: str, shown: str) -> None:
    element = f"dom.make('p', {{ title: {json.dumps(text)} }}, {json.dumps(text)})"
    made = evaluate({"dom": "dom.js"}, f"(({{ attributes, children }}) => [attributes.title, ...children])({element})")
    said = evaluate({"dom": "dom.js"}, f"(() => {{ const p = {{}}; dom.say(p, {json.dumps(text)}); return p; }})()")
    assert (made, said) == ([shown, shown], {"textContent": shown})
