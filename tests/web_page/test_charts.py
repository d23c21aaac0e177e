"""What a hand does to charts: zoom and pan on axes of time too, keys of any keyboard, a first step alone, and a library
that comes late."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.web_page.recorded import Journal
from tests.web_page.screen import CHART, PLOT, SHOWN, Screen

Opens = Callable[..., Screen]


def asked(screen: Screen) -> tuple[float, float]:
    """From where to where, as the address says."""
    query = parse_qs(urlsplit(screen.page.url).query)
    return float(query["from"][0]), float(query["to"][0])


def moved(screen: Screen, chart: str, act: Callable[[], None]) -> tuple[float, float]:
    """The range that is asked for, and shown, after that act."""
    before = screen.page.url
    act()
    screen.page.wait_for_url(lambda url: url != before and "from=" in url)
    low, high = asked(screen)
    screen.until(f"(([low, high]) => low === {low} && high === {high})(({SHOWN})('{chart}'))")
    return low, high


def turn_wheel(screen: Screen, chart: str) -> None:
    screen.page.locator(f"#chart-{chart} .u-over").hover()
    screen.page.keyboard.down("Control")
    screen.page.mouse.wheel(0, -100)
    screen.page.keyboard.up("Control")


def test_minutes_of_the_machine_are_zoomed_and_panned(opens: Opens) -> None:
    screen = opens("?view=system&range=300")
    screen.drawn("use")
    low, high = moved(screen, "use", lambda: screen.drag("use", 0.2, 0.4))
    assert 50 < high - low < 70
    low, high = moved(screen, "use", lambda: screen.press("Zoom in (+)"))
    assert high - low == pytest.approx(30, abs=5)
    early, _ = moved(screen, "use", lambda: screen.page.keyboard.press("["))
    assert early == pytest.approx(low - (high - low) / 4, abs=0.2)
    late, _ = moved(screen, "use", lambda: screen.drag("use", 0.6, 0.4, key="Shift"))
    assert late > early
    begin, end = moved(screen, "use", lambda: turn_wheel(screen, "use"))
    assert end - begin == pytest.approx((high - low) / 1.25, abs=0.3)
    assert screen.ask(f"({SHOWN})('heat')") == [begin, end]


def test_a_zoom_ends_at_some_seconds(opens: Opens) -> None:
    screen = opens("?view=system&range=300")
    screen.drawn("use")
    for _ in range(5):
        low, high = moved(screen, "use", lambda: screen.press("Zoom in (+)"))
    assert high - low == pytest.approx(10, abs=0.2)
    low, high = moved(screen, "use", lambda: screen.press("Zoom out (-)"))
    assert high - low == pytest.approx(20, abs=0.2)


def test_a_wheel_that_turns_on_is_not_set_back_by_what_comes_meanwhile(opens: Opens) -> None:
    screen = opens("?view=system&range=300")
    screen.drawn("use")
    screen.ask("document.querySelector('#chart-use .plot').chart.group.move(1000, 1100)")
    with screen.page.expect_response(re.compile("/api/v1/node"), timeout=20_000):
        pass
    screen.until("document.querySelector('#system').dataset.ready")
    assert screen.ask("document.querySelector('#chart-use .plot').chart.group.shown()") == [1000, 1100]


@pytest.mark.parametrize(("axis", "least"), [("time", 5), ("elapsed", 5), ("step", 1)])
def test_runs_are_zoomed_on_every_axis_to_the_finest(opens: Opens, axis: str, least: float) -> None:
    screen = opens(f"?view=training&run=spiky&x={axis}")
    screen.drawn("loss")
    low, high = moved(screen, "loss", lambda: screen.drag("loss", 0.45, 0.55))
    assert 250 < high - low < 350
    for _ in range(3):
        low, high = moved(screen, "loss", lambda: turn_wheel(screen, "loss"))
    assert 100 < high - low < 200
    while high - low > least + 0.01:
        low, high = moved(screen, "loss", lambda: screen.press("Zoom in (+)"))
    assert high - low == pytest.approx(least, abs=0.01)
    expect(screen.page.locator("#training .banner")).to_be_hidden()


@pytest.mark.parametrize(("axis", "most"), [("step", 10), ("time", 10), ("elapsed", 10_000)])
def test_a_first_step_is_seen(opens: Opens, journal: Journal, axis: str, most: float) -> None:
    name = f"first-by-{axis}"
    files = journal.start(name, run=name)
    files.metrics.append({"step": 1, "loss": 3.0})
    files.end("finished")
    screen = opens(f"?view=training&run={name}&x={axis}")
    screen.drawn("loss")
    low, high = screen.ask(f"({SHOWN})('loss')")
    assert 0 < high - low < most
    share = screen.ask(f"""((id) => {{
      const plot = {PLOT};
      return plot.valToPos({CHART}.lines[0].x[0], "x") / plot.over.clientWidth;
    }})('loss')""")
    assert 0.05 < share < 0.95


SIGNS = {
    "AltGr+[": "{ key: '[', altKey: true, ctrlKey: true, modifierAltGraph: true }",
    "AltGr+[ elsewhere": "{ key: '[', modifierAltGraph: true }",
    "Option+[": "{ key: '[', altKey: true }",
}
COMMANDS = {
    "Ctrl+-": "{ key: '-', ctrlKey: true }",
    "Alt+1": "{ key: '1', altKey: true }",
    "Cmd+[": "{ key: '[', metaKey: true }",
    "Ctrl+Alt+x": "{ key: 'x', altKey: true, ctrlKey: true }",
}


def strike(screen: Screen, key: str) -> None:
    screen.ask(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{ bubbles: true, ...{key} }})) && null")


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_counts_however_a_keyboard_gives_it(opens: Opens, sign: str) -> None:
    screen = opens("?view=training&run=spiky&from=1000&to=2000")
    screen.drawn("loss")
    assert moved(screen, "loss", lambda: strike(screen, SIGNS[sign])) == (750, 1750)


def test_what_is_the_browsers_own_is_left_to_it(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky&from=1000&to=2000")
    screen.drawn("loss")
    before = screen.page.url
    for key in COMMANDS.values():
        strike(screen, key)
    assert screen.page.url == before


def test_the_library_that_draws_is_asked_for_until_it_comes(opens: Opens) -> None:
    screen = opens()
    screen.page.route("**/uPlot.iife.min.js", lambda route: route.abort())
    screen.open("?view=training&run=spiky")
    screen.see("#chart-loss .no-values", "did not come")
    assert "not come whole" not in screen.text("#verdict")
    screen.page.unroute("**/uPlot.iife.min.js")
    screen.drawn("loss")
    assert all("ERR_FAILED" in said for said in screen.said)
    screen.said.clear()
