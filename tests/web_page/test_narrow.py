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
