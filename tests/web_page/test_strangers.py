"""Who is let in, in a real browser: another site's page is not, by no name; whoever has the link or the password is."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import bcrypt
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.collector.support import Served, serving
from tests.web_page.screen import Screen

Opens = Callable[..., Screen]
TOKEN = "hush-0123456789_~.AZ"
NAME, PASSWORD = "me", "pw"


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another site, with a link to the address after its question mark."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(f'<a href="{urlsplit(self.path).query}">go</a>'.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://evil.example:{server.server_port}"
    server.shutdown()
    server.server_close()


def port(served: Served) -> int:
    return urlsplit(served.address).port or 0


def test_by_a_foreign_name_nothing_is_told(opens: Opens, agent: Served) -> None:
    tab = opens().beside()
    for path in ("/", "/api/v1/snapshot", "/static/js/main.js"):
        answer = tab.goto(f"http://evil.example:{port(agent)}{path}")
        assert answer and answer.status == 421
        assert "Host: " in answer.text() and "simulated" not in answer.text()


def fetched(tab: Page, address: str, settings: str) -> str:
    return str(tab.evaluate(f"fetch('{address}', {settings}).then((answer) => answer.text(), () => 'refused')"))


READS = ("{}", "{ mode: 'no-cors' }", "{ credentials: 'include' }")


@pytest.mark.parametrize("settings", READS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_another_sites_page_reads_nothing(
    opens: Opens, agent: Served, elsewhere: str, host: str, settings: str
) -> None:
    tab = opens().beside()
    tab.goto(elsewhere)
    assert fetched(tab, f"http://{host}:{port(agent)}/api/v1/snapshot", settings) == "refused"


FORM = """(action) => {
  const form = Object.assign(document.createElement("form"), { action, method: "POST", enctype: "text/plain" });
  form.append(Object.assign(document.createElement("input"), { name: '{"gpu": 1, "note": "', value: '"}' }));
  document.body.append(form);
  form.submit();
}"""
JSON = "headers: { 'content-type': 'application/json' }"


def test_another_sites_page_silences_nothing(opens: Opens, agent: Served, elsewhere: str) -> None:
    tab = opens().beside()
    tab.goto(elsewhere)
    for more in ("", ", mode: 'no-cors'", f", {JSON}", f", {JSON}, credentials: 'include'"):
        settings = f"{{ method: 'POST', body: '{{\"gpu\": 1}}'{more} }}"
        assert fetched(tab, f"{agent.address}/api/v1/silences", settings) == "refused"
    with tab.expect_navigation() as answered:
        tab.evaluate(FORM, f"{agent.address}/api/v1/silences")
    assert answered.value.status == 403
    assert "Origin: another site" in answered.value.text()
    assert json.loads(agent.get("/api/v1/silences"))["silences"] == []


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("locked"), "--simulate", "1", "--interval", "0.5", "--token", TOKEN) as served:
        yield served


def goes_on(page: Page) -> None:
    """The stream of snapshots has come through, not the page alone."""
    expect(page.locator("#gpu-tiles > li")).to_have_count(1)
    before = page.locator("#at").inner_text()
    expect(page.locator("#at")).not_to_have_text(before)


def test_a_stranger_sees_that_a_token_is_wanted(browser: Browser, locked: Served) -> None:
    page = browser.new_context().new_page()
    for path in ("", "?token=wrong-0123456789-abc"):
        answer = page.goto(f"{locked.address}/{path}")
        assert answer and answer.status == 401
        expect(page.locator("body")).to_contain_text("token")
    page.context.close()


def test_the_link_lets_in_and_leaves_no_token_behind(opens: Opens, locked: Served) -> None:
    screen = opens(f"?token={TOKEN}&view=overview", address=locked.address)
    assert screen.page.url == f"{locked.address}/?view=overview"
    goes_on(screen.page)
    [cookie] = screen.page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
    assert TOKEN not in str(cookie)
    assert screen.ask("document.cookie") == ""
    screen.page.reload()
    screen.wait_for_reading()
    screen.page.keyboard.press("4")
    expect(screen.page.locator("#open")).to_contain_text("No finding is open.")


def test_who_follows_a_link_from_another_site_is_let_in_by_the_page_itself(
    opens: Opens, locked: Served, elsewhere: str
) -> None:
    tab = opens(f"?token={TOKEN}", address=locked.address).beside()
    tab.goto(f"{elsewhere}/?{locked.address}/?view=overview")
    with tab.expect_response(f"{locked.address}/?view=overview") as answered:
        tab.get_by_text("go").click()
    assert answered.value.status == 401
    goes_on(tab)


def test_a_user_is_let_in_with_the_stream(opens: Opens, browser: Browser, tmp_path: Path) -> None:
    secret = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{{NAME}: {secret}}}")
    flags = ("--simulate", "1", "--interval", "0.5", "--web-config", str(tmp_path / "web.yml"))
    with serving(tmp_path / "journal", *flags) as served:
        screen = opens(address=served.address, http_credentials={"username": NAME, "password": PASSWORD})
        goes_on(screen.page)
        page = browser.new_context(http_credentials={"username": NAME, "password": "wrong"}).new_page()
        answer = page.goto(served.address)
        assert answer and answer.status == 401
        page.context.close()
