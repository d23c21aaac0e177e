"""At 400 pixels nothing has to be scrolled sideways, whatever is long or many."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.collector.support import Served, serving
from tests.web_page.recorded import LONG
from tests.web_page.screen import Screen

Opens = Callable[..., Screen]
NARROW = {"viewport": {"width": 400, "height": 900}}


def test_a_run_of_a_long_name_in_its_own_charts(opens: Opens) -> None:
    screen = opens(f"?view=training&run={LONG}&run=calm", **NARROW)
    screen.drawn("loss")
    screen.page.locator(".picker summary").click()
    screen.picture("long-training-narrow")
    assert not screen.scrolls_sideways()


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    flags = ("--simulate", "4", "--scenario", "xid79", "--interval", "0.5")
    with serving(tmp_path_factory.mktemp("sick"), *flags) as served:
        yield served


def test_an_open_finding(opens: Opens, sick: Served) -> None:
    screen = opens("?view=alerts", address=sick.address, **NARROW)
    expect(screen.page.locator("#open .finding").first).to_be_visible(timeout=30_000)
    screen.picture("finding-narrow")
    assert not screen.scrolls_sideways()


# Every chart's caption that has a value: what stands there, and what of it is out of sight.
CUT = """[...document.querySelectorAll(".chart:not([hidden]) figcaption")].map((caption) => {
  const told = caption.querySelector(".readout");
  const isCut = told.scrollWidth > told.clientWidth || caption.scrollWidth > caption.clientWidth;
  return [caption.textContent, told.textContent, isCut];
}).filter(([, told]) => told)"""
# How far the marks of lower axes reach beyond their charts.
BEYOND = """[...document.querySelectorAll(".plot")].flatMap(({ chart: { plot } }) => {
  if (!plot) return [];
  plot.ctx.font = "12px system-ui, sans-serif";
  const { _splits: places, _values: words } = plot.axes[0];
  const begin = plot.bbox.left / devicePixelRatio - plot.width;
  return words.map((word, at) => [word, begin + plot.valToPos(places[at], "x") + plot.ctx.measureText(word).width / 2]);
})"""


@pytest.mark.parametrize("width", [320, 400, 1280, 1600])
@pytest.mark.parametrize(("query", "chart", "cursor"), [
    ("?view=system&range=3600", "disk-written", "use"), ("?view=training&run=spiky", "tokens", "gradient-norm"),
])  # fmt: skip
def test_a_value_is_never_cut(opens: Opens, query: str, chart: str, cursor: str, width: int) -> None:
    screen = opens(query, viewport={"width": width, "height": 900})
    screen.drawn(chart)
    screen.picture(f"values-{chart}-{width}")
    told = screen.ask(CUT)
    assert len(told) > 2 and [one for one in told if one[2]] == []
    screen.drawn(cursor)
    screen.page.locator(f"#chart-{cursor} .u-over").hover()
    assert [one for one in screen.ask(CUT) if one[2]] == []
    assert [mark for mark in screen.ask(BEYOND) if mark[1] > 0] == []
    assert not screen.scrolls_sideways()
