"""An agent that goes and comes back, and what somebody does about a finding: both outlast a restart."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.collector.support import Served, serving
from tests.ports import free_port
from tests.web_page.screen import Screen

Opens = Callable[..., Screen]


class Restartable:
    """An agent on one port, which a GPU falls off from five seconds after its start."""

    def __init__(self, root: Path) -> None:
        self.root, self.port = root, free_port()
        self.address = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[Served]:
        flags = ("--port", str(self.port), "--simulate", "4", "--scenario", "xid79", "--interval", "0.5")
        with serving(self.root, *flags) as served:
            yield served
            served.stop()


@pytest.fixture
def sick(tmp_path: Path) -> Restartable:
    return Restartable(tmp_path)


def test_a_lost_agent_shows_itself_and_the_page_goes_on_with_the_next(opens: Opens, sick: Restartable) -> None:
    with sick.running():
        screen = opens(address=sick.address)
        before = screen.text("#at")
    expect(screen.page.locator("#verdict")).to_have_attribute("data-state", "lost")
    screen.see("#verdict-words", "Connection lost")
    screen.see("#told", "No connection")
    assert screen.page.title().startswith("?")
    assert screen.page.locator("#icon").get_attribute("href") == "/static/icons/lost.svg"
    screen.picture("lost")
    assert screen.barriers() == []
    with sick.running():
        screen.wait_for_reading()
        expect(screen.page.locator("#at")).not_to_have_text(before)
        screen.see("#told", re.compile("Connected again|All well|Page|Ticket"))
        assert screen.page.locator("body").get_attribute("data-lost") is None


def test_many_tabs_of_a_browser_do_not_stop_each_other(opens: Opens, agent: Served) -> None:
    first = opens()
    tabs = [first.beside() for _ in range(7)]
    for tab in tabs:
        tab.goto(f"{agent.address}/?view=alerts")
        expect(tab).to_have_title(re.compile("^[✓▲✖!]"))
        expect(tab.locator("#past")).to_be_visible()
    first.page.goto("about:blank")
    tabs[0].close()
    for tab in tabs[1:]:
        before = tab.locator("#at").inner_text()
        expect(tab.locator("#at")).not_to_have_text(before)


def test_a_view_that_did_not_come_with_the_page_comes_later(opens: Opens, sick: Restartable) -> None:
    with sick.running():
        screen = opens(address=sick.address)
        screen.page.route("**/system.js", lambda route: route.abort())
        screen.page.reload()
        screen.wait_for_reading()
        screen.page.keyboard.press("3")
        screen.see("#system", "This view did not come.")
        screen.page.unroute("**/system.js")
        screen.press("Reload")
        screen.wait_for_reading()
        screen.drawn("use")
        screen.said.clear()


def test_a_view_that_nobody_turned_to_before_comes_with_the_next_agent(opens: Opens, sick: Restartable) -> None:
    with sick.running():
        screen = opens(address=sick.address)
    expect(screen.page.locator("#verdict")).to_have_attribute("data-state", "lost")
    screen.page.keyboard.press("3")
    screen.see("#system", "This view did not come.")
    with sick.running():
        screen.drawn("use")
        screen.said.clear()


def finding(screen: Screen) -> Locator:
    """The card of what was found, which is evidence of nothing else."""
    return screen.page.locator("#open .finding", has=screen.page.get_by_role("heading", name="GpuXidFatal"))


def test_what_is_done_about_a_finding_outlasts_a_restart(opens: Opens, sick: Restartable) -> None:
    with sick.running():
        screen = opens(address=sick.address)
        see_what_is_wrong(screen)
        screen.page.locator("#wrong-list").get_by_role("link", name="GpuXidFatal").click()
        silence_and_acknowledge(screen)
    with sick.running():
        again = opens("?view=alerts", address=sick.address)
        expect(finding(again)).to_contain_text("Silenced until", timeout=20_000)
        expect(finding(again)).to_contain_text("Acknowledged")
        take_back(again)


def see_what_is_wrong(screen: Screen) -> None:
    expect(screen.page.locator("#gpu-tiles > li")).to_have_count(4)
    expect(screen.page.locator("#verdict")).to_have_attribute("data-state", "page", timeout=20_000)
    screen.see("#wrong-list", "GpuXidFatal")
    screen.see("#gpu-tiles > li:nth-child(3)", "Does not answer any more.")
    screen.see("#gpus-title", "3 of 4 answer")
    assert screen.page.title().startswith("✖")
    assert screen.page.locator("#icon").get_attribute("href") == "/static/icons/page.svg"
    screen.picture("page")
    assert screen.barriers() == []


def silence_and_acknowledge(screen: Screen) -> None:
    finding(screen).get_by_role("button", name="Silence…").click()
    dialog = screen.page.locator("#silence-dialog")
    screen.picture("silence")
    assert screen.barriers() == []
    dialog.get_by_label("For how long").select_option("24")
    dialog.get_by_label("Note").fill("<b>a new one is ordered</b>")
    dialog.get_by_role("button", name="Silence", exact=True).click()
    screen.see(".silences", "“<b>a new one is ordered</b>”")
    expect(finding(screen)).to_contain_text("Silenced until")
    finding(screen).get_by_role("button", name="Acknowledge").click()
    expect(finding(screen)).to_contain_text("Acknowledged")
    screen.picture("silenced")
    assert screen.barriers() == []


def take_back(screen: Screen) -> None:
    screen.press("End it")
    expect(finding(screen)).not_to_contain_text("Silenced until")
    expect(screen.page.locator("#silenced")).to_be_hidden()
    finding(screen).get_by_role("button", name="Take back").click()
    expect(finding(screen).get_by_role("button", name="Acknowledge")).to_be_visible()
