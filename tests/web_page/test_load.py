"""What a first load of the page costs on an agent that has much to tell."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.collector.support import Served, serving
from tests.web_page.busy import GPUS, busy
from tests.web_page.screen import Screen

Opens = Callable[..., Screen]
MAX_BYTES = 120_000
# Whatever comes with the page; the stream, which does not end, is none of these.
LOADED = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .map(({ name, transferSize }) => [name, transferSize])"""
WHOLE = {"": f"document.querySelectorAll('#gpu-tiles > li').length === {GPUS}",
         "?view=training": f"document.querySelectorAll('.ranks tbody tr').length === {GPUS}",
         "?view=system": "document.querySelector('#system').dataset.ready",
         "?view=alerts": "document.querySelectorAll('.past tbody tr').length"}  # fmt: skip


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("busy")
    with busy(root), serving(root, "--simulate", str(GPUS), "--interval", "1") as served:
        yield served


@pytest.mark.parametrize("query", WHOLE)
def test_a_first_load_is_few_bytes_where_there_is_much_to_tell(opens: Opens, crowd: Served, query: str) -> None:
    screen = opens(query, address=crowd.address)
    screen.until(WHOLE[query])
    screen.page.wait_for_timeout(1000)
    loaded = screen.ask(LOADED)
    assert sum(size for _, size in loaded) < MAX_BYTES, loaded


ASKED = "performance.getEntriesByType('resource').filter(({ name }) => name.includes('WHAT')).length"


@pytest.mark.parametrize(("query", "what", "place"), [
    ("", "findings?state=open", "#gpu-tiles > li"), ("?view=training", "/runs?limit", ".ranks tbody tr"),
    ("?view=alerts", "findings?state=past", ".past tbody tr"),
])  # fmt: skip
def test_nothing_is_asked_for_twice(opens: Opens, crowd: Served, query: str, what: str, place: str) -> None:
    screen = opens(query, address=crowd.address).on_a_stage()
    screen.tell(crowd.snapshot())
    expect(screen.page.locator(place).first).to_be_visible()
    screen.page.wait_for_timeout(500)
    assert screen.ask(ASKED.replace("WHAT", what)) == 1


def test_of_the_other_views_nothing_comes_until_somebody_turns_to_them(opens: Opens, crowd: Served) -> None:
    screen = opens(address=crowd.address)
    screen.page.wait_for_timeout(1000)
    system = ASKED.replace("WHAT", "system.js")
    assert screen.ask(system) == 0
    screen.page.locator("#to-system").hover()
    screen.until(f"{system} === 1")
