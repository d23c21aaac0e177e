"""A tab of the browser that shows the page, and what a test wants to know of it.

screen.open("?view=training")
screen.text("#verdict")
"""

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests import npm
from tests.collector.support import wait_for

PICTURES = npm.CACHE / "screens"
CHART = "document.querySelector(`#chart-${id} .plot`)?.chart"
PLOT = f"{CHART}?.plot"
# From where to where a chart shows its lines.
SHOWN = f"(id) => {{ const x = {PLOT}?.scales.x; return [x?.min, x?.max]; }}"
AXE = Path(__file__).with_name("axe")
# What a browser says by itself of an agent that is not there, or of a network that changes.
OF_A_LOST_AGENT = re.compile(
    "ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED|CONNECTION_RESET|EMPTY_RESPONSE|NETWORK_CHANGED)"
)


class Screen:
    def __init__(self, browser: Browser, address: str, **context: Any) -> None:
        settings = {"viewport": {"width": 1600, "height": 1000}, "timezone_id": "Europe/Berlin", "locale": "en-GB"}
        self._context = browser.new_context(**{**settings, **context}, reduced_motion="reduce")
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(15_000)
        self.address, self.said = address, list[str]()
        self.page.on("console", lambda line: self.said.append(line.text) if line.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self, query: str = "") -> "Screen":
        self.page.goto(f"{self.address}/{query}")
        self.wait_for_reading()
        return self

    def beside(self) -> Page:
        """Another tab of the same browser, with its cookies and its connections."""
        return self._context.new_page()

    def complaints(self) -> list[str]:
        return [said for said in self.said if not OF_A_LOST_AGENT.search(said)]

    def wait_for_reading(self) -> None:
        wait_for(self._has_reading, 15.0, pause=0.05)

    def _has_reading(self) -> bool:
        """A network that comes or goes on this machine, as an engine's does, makes Chromium drop what it is loading."""
        verdict = self.page.locator("#verdict")
        if "did not come whole" in (verdict.text_content() or ""):
            self.page.reload()
        return verdict.get_attribute("data-state") not in ("starting", "lost")

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def see(self, selector: str, words: str | re.Pattern[str]) -> None:
        expect(self.page.locator(selector).first).to_contain_text(words)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def drawn(self, chart: str) -> None:
        """Waits until that chart has been drawn with values."""
        figure = self.page.locator(f"#chart-{chart}")
        figure.scroll_into_view_if_needed()
        expect(figure.locator("canvas")).to_be_visible()
        expect(figure.locator(".no-values")).to_be_hidden()

    def drag(self, chart: str, begin: float, end: float, key: str = "") -> None:
        """From one share of that chart's width to another, with a key held down."""
        box = self.page.locator(f"#chart-{chart} .u-over").bounding_box()
        assert box
        height = box["y"] + box["height"] / 2
        if key:
            self.page.keyboard.down(key)
        self.page.mouse.move(box["x"] + begin * box["width"], height)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + end * box["width"], height, steps=5)
        self.page.mouse.up()
        if key:
            self.page.keyboard.up(key)

    def ask(self, program: str) -> Any:
        return self.page.evaluate(program)

    def until(self, program: str, seconds: float = 15.0) -> None:
        """Not by Playwright's own waiting, which the page's policy refuses."""
        wait_for(lambda: self.ask(program), seconds, pause=0.05)

    def on_a_stage(self) -> "Screen":
        """From now on the page hears what it is told by the test, and no agent."""
        self.page.add_init_script(
            "window.SharedWorker = undefined;"
            "window.EventSource = class { constructor() { window.stream = this; } addEventListener() {} close() {} }"
        )
        self.page.reload()
        self.until("Boolean(window.stream?.onmessage)")
        return self

    def tell(self, snapshot: dict[str, Any]) -> None:
        self.ask(f"window.stream.onmessage({{ data: {json.dumps(json.dumps(snapshot))} }})")

    def scrolls_sideways(self) -> bool:
        return bool(self.ask("document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"))

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    def barriers(self) -> list[str]:
        """What axe finds that keeps somebody from using the page."""
        script = (
            npm.made(AXE, ("package.json", "package-lock.json", ".npmrc"), "axe") / "node_modules/axe-core/axe.min.js"
        )
        # Not by a script element, which the page's policy would refuse.
        self.ask(f"() => {{ if (!window.axe) {{ {script.read_text()} }} }}")
        found = self.ask("async () => (await axe.run()).violations")
        return [f"{one['id']}: {node['html'][:200]} {json.dumps(node['any'] + node['all'])[:400]}"
                for one in found for node in one["nodes"]]  # fmt: skip

    def close(self) -> None:
        self._context.close()
