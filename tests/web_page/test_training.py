"""Training as time goes on: runs that end, are too many, or fail to come, and what their names do to the page."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.collector.support import wait_for
from tests.web_page.recorded import LIVE, LONG, Journal
from tests.web_page.screen import CHART, Screen

Opens = Callable[..., Screen]
RUNS, RANKS, SERIES = re.compile(r"/api/v1/runs\?"), re.compile("/ranks"), re.compile("/series")
# An answer that takes a second is asked for again after ten.
SLOW = """(() => {
  const ask = window.fetch;
  window.fetch = async (...asked) => {
    if (String(asked[0]).includes("/series")) await new Promise((done) => setTimeout(done, 1000));
    return ask(...asked);
  };
})()"""


def test_the_end_of_a_run_is_drawn_with_its_last_steps(opens: Opens, journal: Journal) -> None:
    ranks = [journal.start("short", rank, 2, "short") for rank in range(2)]
    for files in ranks:
        for step in range(1, 6):
            files.metrics.append({"step": step, "loss": 1.0, "step_duration_seconds": 0.1})
    screen = opens()
    screen.page.add_init_script(SLOW)
    screen.open("?view=training&run=short")
    screen.drawn("loss")
    expect(screen.page.locator(".ranks tbody tr")).to_have_count(2)
    for files in ranks:
        files.metrics.append({"step": 777, "loss": 1.0, "step_duration_seconds": 0.1})
        files.end("finished")
    screen.until(f"((id) => {CHART}.lines[0].x.at(-1) === 777)('loss')")
    screen.until(f"((id) => {CHART}.marks.some((mark) => mark.kind === 'end'))('loss')")
    screen.see(".ranks tbody tr", "777")


def test_what_is_chosen_is_chosen_of_the_run_that_is_seen(opens: Opens, journal: Journal) -> None:
    screen = opens()
    screen.page.keyboard.press("2")
    screen.drawn("loss")
    assert "run=" not in screen.page.url
    screen.page.keyboard.press("-")
    screen.page.wait_for_url(re.compile(f"run={LIVE}.*from=.*to="))
    other = journal.start("other", run="other")
    other.metrics.append({"step": 1, "loss": 1.0})
    screen.see(".picker", "other")
    expect(screen.page.get_by_label("Show other")).not_to_be_checked()
    other.end("finished")


def fail(route: Route) -> None:
    route.fulfill(status=503, body=json.dumps({"error": "the disk does not answer"}), content_type="application/json")


def hold(screen: Screen, asked: re.Pattern[str]) -> list[Route]:
    """What is asked from now on, and is not answered before the test does."""
    held: list[Route] = []

    def keep(route: Route) -> None:
        held.append(route)

    screen.page.route(asked, keep)
    return held


def first(screen: Screen, held: list[Route]) -> Route:
    wait_for(lambda: screen.ask("1") and held)
    return held[0]


def test_runs_that_do_not_come_are_waited_for_and_said(opens: Opens, journal: Journal) -> None:
    screen = opens()
    held = hold(screen, RUNS)
    screen.page.keyboard.press("2")
    screen.see("#training .empty", "Loading…")
    fail(first(screen, held))
    screen.see("#training .banner", "the disk does not answer")
    expect(screen.page.locator("#training .empty")).to_be_hidden()
    screen.page.unroute(RUNS)
    journal.start("wakes", run="wakes").end("finished")
    screen.drawn("loss")
    expect(screen.page.locator("#training .banner")).to_be_hidden()
    screen.said.clear()


def test_an_error_stays_as_long_as_it_is_true(opens: Opens, journal: Journal) -> None:
    screen = opens(f"?view=training&run=spiky&run={LONG}&x=tokens")
    screen.see("#training .banner", "x: 'tokens' cannot be used")
    with screen.page.expect_response(RUNS):
        journal.start("comes", run="comes").end("finished")
    screen.see(".picker", "comes")
    screen.see("#training .banner", "x: 'tokens' cannot be used")
    screen.said.clear()


def test_answers_that_failed_are_asked_for_again(opens: Opens, journal: Journal) -> None:
    screen = opens()
    screen.page.route(SERIES, fail)
    screen.open("?view=training&run=spiky")
    screen.see("#training .banner", "spiky: the disk does not answer")
    screen.page.unroute(SERIES)
    journal.start("later", run="later").end("finished")
    screen.drawn("loss")
    expect(screen.page.locator("#training .banner")).to_be_hidden()
    screen.said.clear()


def test_ranks_are_those_of_the_run_that_is_shown_and_an_error_is_seen(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky")
    expect(screen.page.locator(".ranks tbody tr")).to_have_count(2)
    held = hold(screen, RANKS)
    screen.page.locator(".picker").get_by_role("link", name="calm").click()
    expect(screen.page.locator(".ranks")).to_be_hidden()
    fail(first(screen, held))
    screen.see(".ranks .slowest", "the disk does not answer")
    expect(screen.page.locator(".ranks table")).to_be_hidden()
    screen.said.clear()


def test_metrics_whose_names_are_alike_have_a_chart_each(opens: Opens, journal: Journal) -> None:
    names = ["val/loss", "val.loss", "val loss", "验证", "损失", "constructor"]
    files = journal.start("alike", run="alike")
    files.metrics.append({"step": 1, "loss": 1.0, **{name: float(place) for place, name in enumerate(names)}})
    files.end("finished")
    screen = opens("?view=training&run=alike" + "".join(f"&field={name}" for name in names))
    titles = screen.page.locator("#training .chart h3")
    expect(titles.filter(has_text=re.compile("^constructor$"))).to_have_count(1)
    assert titles.all_inner_texts()[-len(names) :] == names
    drawn = "[...document.querySelectorAll('#training .plot')].map(({ chart }) => chart.lines[0]?.mean[0])"
    screen.until(f"JSON.stringify({drawn}.slice(-{len(names)})) === '[0,1,2,3,4,5]'")
    ids = screen.ask("[...document.querySelectorAll('#training .chart')].map((chart) => chart.id)")
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("query", "chart"), [
    ("view=training&run=spiky&field=constructor&x=toString", "loss"), ("view=system&field=loss&field=host:", "use"),
])  # fmt: skip
def test_names_in_the_address_that_are_none_do_no_harm(opens: Opens, query: str, chart: str) -> None:
    opens(f"?{query}").drawn(chart)


def test_events_that_are_too_many_are_counted(opens: Opens, journal: Journal) -> None:
    files = journal.start("notes", run="notes")
    for step in range(1, 1008):
        files.events.append({"event": "note", "step": step, "text": f"note {step}"})
    files.metrics.append({"step": 1007, "loss": 1.0})
    files.end("finished")
    screen = opens("?view=training&run=notes")
    screen.see(".events summary", "Events: 1,000; 8 older ones have no mark")


def test_lines_that_are_too_many_are_named(opens: Opens, journal: Journal) -> None:
    names = [f"many-{number}" for number in range(10)]
    for name in names:
        files = journal.start(name, run=name)
        files.metrics.append({"step": 1, "loss": 1.0})
        files.end("finished")
    screen = opens("?view=training" + "".join(f"&run={name}" for name in names[:8]))
    expect(screen.page.locator("#chart-loss .legend li")).to_have_count(8)
    expect(screen.page.locator("#training .banner")).to_be_hidden()
    for name in names[8:]:
        screen.page.get_by_label(f"Show {name}").check()
    screen.see("#training .banner", "At most 8 lines are drawn. Left out: many-8; many-9.")
    expect(screen.page.locator("#chart-loss .legend li")).to_have_count(8)
    screen.page.get_by_label("Show many-0").uncheck()
    screen.see("#training .banner", "Left out: many-9.")
    screen.see("#chart-loss .legend", "many-8")


def test_ranks_of_several_runs_count_as_lines(opens: Opens) -> None:
    ranks = ",".join(map(str, range(9)))
    screen = opens(f"?view=training&run=lives-nowhere&rank={ranks}")
    screen.see("#training .banner", "Left out: lives-nowhere, rank 8.")
    assert all("404" in said for said in screen.said)
    screen.said.clear()
