"""Who is answered: the Host and Origin checks, methods, headers, and nothing outside the page's folder."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from starlette.applications import Starlette

from tests.collector.web.asking import LOCAL, ask
from trainvitals.agent.service import Agent
from trainvitals.web.app import STATIC, make_app
from trainvitals.web.config import WebConfig

PAGES = ("/", "/api/v1/snapshot", "/api/v1/node", "/api/v1/stream", "/static/js/main.js", "/nothing")
THERE = ("/", "/metrics", "/healthz", "/api/v1/snapshot", "/api/v1/node", "/api/v1/stream", "/static/js/main.js")
MACHINES = ("/metrics", "/healthz")
OTHER_METHODS = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "ANY")


def status(app: Starlette, path: str, headers: Mapping[str, str], method: str = "GET") -> int:
    return ask(app, path, headers, method).status


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8080", "LOCALHOST:8080", "localhost.", "127.0.0.1", "127.0.0.1:8080", "10.1.2.3:80",
     "[::1]", "[::1]:8080", "[FE80::1]:8080", "::1"],
)  # fmt: skip
def test_addresses_and_localhost_are_answered(app: Starlette, host: str) -> None:
    assert status(app, "/", {"host": host}) == 200


@pytest.mark.parametrize(
    "headers",
    [{}, {"host": ""}, {"host": ":8080"}, {"host": "evil.example"}, {"host": "evil.example:8080"},
     {"host": "localhost.evil.example"}, {"host": "127.0.0.1.evil.example"}, {"host": "[evil.example]:8080"},
     {"host": "127.0.0.1@evil.example"}, {"host": "2130706433"}, {"host": "\u00e9vil"}],
)  # fmt: skip
@pytest.mark.parametrize("path", PAGES)
def test_other_names_are_refused_everywhere_but_for_machines(
    app: Starlette, path: str, headers: dict[str, str]
) -> None:
    answer = ask(app, path, headers)
    assert answer.status == 421
    assert "TRAINVITALS_ALLOWED_HOSTS" in answer.text
    assert "x-content-type-options" in answer.headers


@pytest.mark.parametrize("path", MACHINES)
@pytest.mark.parametrize("headers", [{}, {"host": "gpu1.example:8080"}, {"host": "evil.example"}])
def test_scrapers_may_call_by_any_name(app: Starlette, path: str, headers: dict[str, str]) -> None:
    assert status(app, path, headers) == 200


@pytest.mark.parametrize("allowed", ["gpu1.example", "GPU1.Example", "gpu1.example:8080", "gpu1.example."])
@pytest.mark.parametrize("host", ["gpu1.example", "gpu1.example:8080", "GPU1.EXAMPLE:1", "gpu1.example."])
def test_a_name_that_was_allowed_is_answered(agent: Agent, allowed: str, host: str) -> None:
    app = make_app(agent, allowed_hosts=["other.example", allowed])
    assert status(app, "/", {"host": host}) == 200
    assert status(app, "/", {"host": "sub." + host}) == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9999", "http://localhost", "x"])
@pytest.mark.parametrize("path", PAGES + MACHINES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_another_sites_page_is_refused_with_every_method(app: Starlette, path: str, origin: str, method: str) -> None:
    answer = ask(app, path, {**LOCAL, "origin": origin}, method)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["localhost:8080", "[::1]:8080", "127.0.0.1"])
def test_the_page_itself_may_ask(app: Starlette, host: str) -> None:
    assert status(app, "/api/v1/snapshot", {"host": host, "origin": f"http://{host.upper()}"}) == 200


@pytest.mark.parametrize("method", OTHER_METHODS)
@pytest.mark.parametrize("path", THERE)
def test_nothing_but_reading_is_possible(app: Starlette, path: str, method: str) -> None:
    assert status(app, path, LOCAL, method) == 405


@pytest.mark.parametrize("path", THERE)
def test_head_is_answered_at_once(app: Starlette, path: str) -> None:
    assert status(app, path, LOCAL, "HEAD") == 200


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/nothing", "/api/v1/node?gpu=x"])
def test_every_answer_bears_the_headers_that_keep_a_page_to_itself(app: Starlette, path: str) -> None:
    headers = ask(app, path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_the_page_needs_nothing_that_its_policy_forbids() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://", page)
    scripts = re.findall(r"<script([^>]*)>", page)
    assert scripts and all(re.match(r' src="/static/[\w/.-]+"( (defer|type="module"))?$', script) for script in scripts)


@pytest.mark.parametrize("path", sorted((STATIC / "js").glob("*.js")), ids=lambda path: path.name)
def test_a_script_makes_no_markup_of_text_and_reaches_nothing_elsewhere(path: Path) -> None:
    script = path.read_text().replace("http://www.w3.org/2000/svg", "")
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|\.style\b|\sstyle:|https?://\w"
    )
    assert not re.search(forbidden, script)
    assert len(script.splitlines()) < 300
    # Each file that it imports is there.
    for name in re.findall(r'from "(\./[\w.]+)"', script):
        assert (path.parent / name).is_file(), name


@pytest.mark.parametrize("name", re.findall(r'(?:src|href)="(/static/[^"]+)"', (STATIC / "index.html").read_text()))
def test_what_the_page_names_is_there(app: Starlette, name: str) -> None:
    assert status(app, name, LOCAL) == 200


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/../../config.py", "/static/%2e%2e/app.py", "/static//etc/passwd",
     "/static/..\\app.py", "/static/", "/static", "/../app.py", "/static/\0"],
)  # fmt: skip
def test_nothing_outside_the_static_folder_is_served(app: Starlette, path: str) -> None:
    answer = ask(app, path)
    assert answer.status in (307, 404)
    assert b"import" not in answer.body
    assert b"root:" not in answer.body


def test_headers_of_the_web_config_are_added_and_win(agent: Agent) -> None:
    config = WebConfig(headers={"Strict-Transport-Security": "max-age=1", "Referrer-Policy": "origin"})
    headers = ask(make_app(agent, config), "/").headers
    assert headers["strict-transport-security"] == "max-age=1"
    assert headers["referrer-policy"] == "origin"
