"""A journal, an agent with simulated GPUs over it, and one browser for the tests of a file."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.collector.support import Served, serving
from tests.web_page.recorded import Journal, recorded
from tests.web_page.screen import Screen

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--host-resolver-rules=MAP *.example 127.0.0.1")  # fmt: skip
Opens = Callable[..., Screen]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    with recorded(tmp_path_factory.mktemp("journal")) as journal:
        yield journal


@pytest.fixture(scope="module")
def agent(journal: Journal) -> Iterator[Served]:
    with serving(journal.root, "--simulate", "8", "--interval", "0.5") as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("no Chromium here: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def opens(browser: Browser, agent: Served) -> Iterator[Opens]:
    """Opens tabs, and looks at the end whether one of them complained."""
    screens: list[Screen] = []
    with ExitStack() as stack:

        def open_tab(query: str = "", address: str = agent.address, **context: Any) -> Screen:
            screens.append(Screen(browser, address, **context))
            stack.callback(screens[-1].close)
            return screens[-1].open(query)

        yield open_tab
        assert [said for screen in screens for said in screen.complaints()] == []
