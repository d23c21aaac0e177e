"""What the page cannot know it says, and claims nothing in its place; what it knew it does not show as now."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.collector.support import Served
from tests.web_page.modules import evaluate
from tests.web_page.recorded import LONG, Journal
from tests.web_page.screen import Screen

Opens = Callable[..., Screen]
SILENT = "the journal's disk does not answer"


def fails(status: int = 503, words: str = SILENT) -> Callable[[Route], None]:
    return lambda route: route.fulfill(status=status, json={"error": words})


def holds(held: list[Route]) -> Callable[[Route], None]:
    """Playwright marks what it calls, which a list's own method does not bear."""

    def hold(route: Route) -> None:
        held.append(route)

    return hold


# --- What is not answered ---


def test_open_findings_that_cannot_be_asked_for_are_not_none(opens: Opens) -> None:
    screen = opens()
    none = {"findings": [], "more": 0, "problems": []}
    screen.page.route("**/api/v1/findings?state=open", lambda route: route.fulfill(json=none))
    screen.page.reload()
    expect(screen.page.locator("#wrong-none")).to_be_visible()
    screen.page.route("**/api/v1/findings?state=open", fails())
    screen.page.reload()
    screen.see("#wrong-told", SILENT)
    expect(screen.page.locator("#wrong-none")).to_be_hidden()
    screen.page.keyboard.press("4")
    screen.see("#open .told", SILENT)
    expect(screen.page.get_by_text("No finding is open.")).to_have_count(2)
    expect(screen.page.get_by_text("No finding is open.").last).to_be_hidden()
    screen.said.clear()


def test_past_findings_are_asked_for_before_there_are_none(opens: Opens) -> None:
    screen, held = opens(), list[Route]()
    screen.page.route("**/api/v1/findings?state=past*", holds(held))
    screen.page.keyboard.press("4")
    screen.see("#past", "Asking…")
    expect(screen.page.locator("#past")).not_to_contain_text("There were none")
    screen.until("performance.getEntriesByType('resource').some(({ name }) => name.includes('silences'))")
    for route in held:
        fails()(route)
    screen.see("#past", SILENT)
    expect(screen.page.locator("#past")).not_to_contain_text("There were none")
    screen.said.clear()


def test_silences_that_were_known_stay_when_they_cannot_be_asked_for(opens: Opens) -> None:
    screen = opens("?view=alerts")
    silence = {"kind": "NothingOfTheKind", "hours": 1}
    screen.ask(f"""fetch("/api/v1/silences", {{ method: "POST", body: JSON.stringify({json.dumps(silence)}),
                                               headers: {{ "content-type": "application/json" }} }})""")
    for key in "14":
        screen.page.keyboard.press(key)
    screen.see("#silenced", "NothingOfTheKind")
    screen.page.route("**/api/v1/silences", fails())
    for key in "14":
        screen.page.keyboard.press(key)
    screen.see("#silenced", f"Silences could not be asked for. {SILENT}")
    screen.see("#silenced", "NothingOfTheKind")
    screen.page.unroute("**/api/v1/silences")
    screen.press("End it")
    expect(screen.page.locator("#silenced")).to_be_hidden()
    screen.said.clear()


def test_a_list_of_runs_that_does_not_come_is_said_and_comes_later(opens: Opens) -> None:
    screen, held = opens(), list[Route]()
    screen.page.route("**/api/v1/runs?*", holds(held))
    screen.page.keyboard.press("2")
    screen.see("#training", "Loading…")
    screen.until("performance.getEntriesByType('resource').some(({ name }) => name.endsWith('training.js'))")
    for route in held:
        fails()(route)
    screen.see("#training .banner", SILENT)
    expect(screen.page.get_by_text("Loading…")).to_be_hidden()
    screen.page.unroute("**/api/v1/runs?*")
    screen.page.reload()
    screen.drawn("loss")
    expect(screen.page.locator("#training .banner")).to_be_hidden()
    screen.said.clear()


def test_what_is_wrong_with_a_curve_is_not_forgotten_when_the_list_comes(opens: Opens, journal: Journal) -> None:
    screen = opens(f"?view=training&run={LONG}&x=tokens")
    screen.see("#training .banner", "x: 'tokens' cannot be used")
    with screen.page.expect_response("**/api/v1/runs?limit=200"):
        journal.start("newcomer").end("finished")
    screen.see(".picker", "newcomer")
    screen.see("#training .banner", "x: 'tokens' cannot be used")
    screen.said.clear()


def test_ranks_of_another_run_are_not_shown_as_this_ones(opens: Opens) -> None:
    screen, held = opens("?view=training&run=spiky"), list[Route]()
    expect(screen.page.locator(".ranks tbody tr")).to_have_count(2)
    screen.page.route("**/calm/ranks*", holds(held))
    screen.page.locator(".picker").get_by_role("link", name="calm").click()
    screen.see("#chart-loss .legend", "calm")
    expect(screen.page.locator(".ranks")).to_be_hidden()
    for route in held:
        fails()(route)
    expect(screen.page.locator(".ranks .slowest")).to_be_visible()
    screen.see(".ranks .slowest", SILENT)
    expect(screen.page.locator(".ranks table")).to_be_hidden()
    screen.said.clear()


def test_a_silence_that_is_refused_is_not_announced(opens: Opens, agent: Served) -> None:
    screen = opens()
    finding = {"id": "a", "state": "open", "kind": "GpuThermalMargin", "severity": "ticket", "gpu": "3", "what": "hot",
               "source": "agent", "opened": "2025-07-30T12:00:00.000Z", "evidence": []}  # fmt: skip
    told = {"findings": [finding], "more": 0, "problems": []}
    screen.page.route("**/api/v1/findings?state=open", lambda route: route.fulfill(json=told))
    screen.page.route("**/api/v1/silences", fails(409, "1000 of a kind are kept at most"))
    screen.page.keyboard.press("4")
    screen.press("Silence…")
    screen.page.locator("#silence-dialog").get_by_role("button", name="Silence", exact=True).click()
    screen.see("#alerts .banner", "1000 of a kind are kept at most")
    expect(screen.page.locator("#told")).not_to_contain_text("is silenced")
    screen.said.clear()


# --- What is known no more ---


def test_before_a_reading_no_gpu_is_said_to_be_gone(opens: Opens, agent: Served) -> None:
    screen = opens().on_a_stage()
    told = agent.snapshot()
    screen.tell(told)
    expect(screen.page.locator("#gpu-tiles > li")).to_have_count(8)
    words = {"state": "problem", "words": "stuck", "first": "stuck", "rest": ""}
    empty = {"timestamp": None, "gpus": [], "runs": [], "host": {}, "xids": [], "verdict": words}
    screen.tell(told | empty)
    screen.see("#verdict", "stuck")
    expect(screen.page.locator("#gpu-tiles > li")).to_have_count(8)
    expect(screen.page.locator("#gpu-tiles")).not_to_contain_text("Does not answer")
    assert set(screen.page.locator("#gpu-tiles .value").all_inner_texts()) == {chr(0x2013)}
    screen.tell(told | {"gpus": told["gpus"][1:]})
    screen.see("#gpu-tiles > li:first-child", "Does not answer any more.")


def test_the_age_of_a_run_that_ended_goes_on(opens: Opens, agent: Served) -> None:
    screen = opens().on_a_stage()
    told = agent.snapshot()
    [ended] = [run for run in told["runs"] if run["run"] == "calm"]
    last = ended["ranks"][0]["last_step_timestamp_seconds"]
    for minutes in (5, 6):
        stamp = screen.ask(f"new Date({1000 * (last + 60 * minutes)}).toISOString()")
        screen.tell(told | {"timestamp": stamp, "runs": [ended]})
        screen.see("#ended", f"{minutes} min ago")


# --- What is heard ---


def test_what_was_silenced_reddens_nothing() -> None:
    signs = {"signs": "signs.js"}
    quiet = {"severity": "page", "silenced": {"until": "2025-07-30T12:00:00.000Z"}}
    for findings, worst in (([quiet], ""), ([quiet, {"severity": "ticket", "silenced": None}], "ticket")):
        assert evaluate(signs, f"signs.worst({json.dumps(findings)})") == worst


def test_beside_alerts_stands_how_many_are_heard_and_how_bad_they_are(opens: Opens, agent: Served) -> None:
    screen = opens().on_a_stage()
    told = agent.snapshot()
    row: dict[str, Any] = {"id": "a", "name": "GpuThermalMargin", "where": "GPU 3", "starts": "2025-07-30T12:00:00Z",
                           "annotations": {}, "acknowledged": None}  # fmt: skip
    until = {"until": "2025-07-30T13:00:00.000Z"}
    rows = [row | {"labels": {"severity": "page"}, "silenced": until},
            row | {"id": "b", "labels": {"severity": "ticket"}, "silenced": None}]  # fmt: skip
    for heard in (1, 0):
        alerts = told["alerts"] | {"firing": rows[: 1 + heard], "firing_count": 1 + heard, "heard_count": heard}
        screen.tell(told | {"alerts": alerts})
        expect(screen.page.locator("#alert-count")).to_have_text(str(heard or ""))
        state = screen.page.locator("#alert-count").get_attribute("data-state")
        assert state == ("ticket" if heard else "")


CHANGED = """(async () => {
  let asked = 0;
  globalThis.fetch = async () => { asked += 1; return { ok: true, json: async () => ({ findings: [] }) }; };
  const counts = [];
  for (const firing of ROWS) { findings.watch({ alerts: { firing } }); counts.push(asked); }
  return counts;
})()"""


def test_what_another_did_about_a_finding_is_asked_for_at_once() -> None:
    row = {"id": "a", "name": "Hot", "where": "GPU 3", "starts": "s", "labels": {"severity": "page"},
           "acknowledged": None, "silenced": None}  # fmt: skip
    known = row | {"acknowledged": {"at": "s", "by": "ada", "note": ""}}
    rows = [[row], [row], [known], [known], [known | {"silenced": {"until": "s"}}], [row], []]
    assert evaluate({"findings": "findings.js"}, CHANGED.replace("ROWS", json.dumps(rows))) == [1, 1, 2, 2, 3, 4, 5]


# --- What is left out ---


def test_lines_that_are_left_out_are_named() -> None:
    runs = [{"run": f"run{number}", "name": f"run{number}", "ranks": [0, 1]} for number in range(5)]
    chosen = {"runs": [run["run"] for run in runs], "ranks": [0, 1]}
    words = evaluate({"choice": "training_choice.js"}, f"choice.leftOutWords({json.dumps(chosen)}, {json.dumps(runs)})")
    assert words == "At most 8 lines are drawn. Left out: run4, rank 0; run4, rank 1."
    fewer = chosen | {"ranks": [0]}
    assert evaluate({"choice": "training_choice.js"},
                    f"choice.leftOutWords({json.dumps(fewer)}, {json.dumps(runs)})") == ""  # fmt: skip


def test_the_page_says_which_they_are(opens: Opens) -> None:
    names = "&".join(f"run={name}" for name in ("spiky", "calm", "lives", *(f"none{number}" for number in range(7))))
    screen = opens(f"?view=training&{names}&rank=0,1")
    screen.see("#training .banner", "At most 8 lines are drawn. Left out:")
    screen.said.clear()


@pytest.mark.parametrize(("width", "least"), [(1920, 36), (3840, 48)])
def test_the_verdict_is_read_from_across_a_room(opens: Opens, agent: Served, width: int, least: int) -> None:
    screen = opens(viewport={"width": width, "height": 1000}).on_a_stage()
    verdict = {"state": "page", "words": "gemma: step 3; GPU 3 has failed", "first": "GPU 3 has failed",
               "rest": "gemma: step 3"}  # fmt: skip
    screen.tell(agent.snapshot() | {"verdict": verdict})
    screen.see("#verdict-first", "GPU 3 has failed")
    size = "(name) => parseFloat(getComputedStyle(document.querySelector(name)).fontSize)"
    first, rest, state = (screen.ask(f"({size})('#verdict{name}')") for name in ("-first", "-rest", " .badge"))
    assert state > first >= least > rest
    screen.picture(f"verdict-{width}")
