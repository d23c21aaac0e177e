"""Who may look: by link, cookie, header or user; and that a token is told to nobody who does not bear it."""

import logging
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from starlette.applications import Starlette

from tests.collector.support import Served, command_line, run, serving, wait_for
from tests.collector.web.asking import LOCAL, Answer, ask
from tests.collector.web.finding import HOT, listed, made, note, silence
from trainvitals import cli, config, demo_nodes
from trainvitals.agent.findings import MAX_RUNS as MOST_RUNS
from trainvitals.agent.quiet import MOST
from trainvitals.agent.service import Agent
from trainvitals.errors import SettingError
from trainvitals.web import access, server
from trainvitals.web.access import Access
from trainvitals.web.app import make_app
from trainvitals.web.bodies import MOST_BYTES, MOST_NOTE
from trainvitals.web.config import WebConfig

TOKEN = "hush-0123456789_~.AZ"
PAGES = ("/", "/api/v1/snapshot", "/api/v1/node", "/api/v1/stream", "/api/v1/alerts", "/static/js/main.js", "/nothing")
BEARER = {**LOCAL, "authorization": f"Bearer {TOKEN}"}
USERS = {"me": bcrypt.hashpw(b"pw", bcrypt.gensalt(4))}
BASIC = {**LOCAL, "authorization": "Basic bWU6cHc="}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINVITALS_TOKEN", raising=False)
    monkeypatch.delenv("TRAINVITALS_TOKEN_FILE", raising=False)


@pytest.fixture(scope="module")
def locked(agent: Agent) -> Starlette:
    return make_app(agent, token=TOKEN)


def cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


def entered(app: Starlette, headers: Mapping[str, str] = LOCAL) -> dict[str, str]:
    """The headers of a browser that opened the link."""
    return {**headers, "cookie": cookie_of(ask(app, f"/?token={TOKEN}", headers))}


# --- With a token ---


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
def test_without_it_no_page_is_shown_whatever_the_method(locked: Starlette, path: str, method: str) -> None:
    answer = ask(locked, path, LOCAL, method)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="trainvitals"')
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in answer.headers and TOKEN not in answer.text


@pytest.mark.parametrize("path", ["/", "/api/v1/snapshot", "/static/js/main.js"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_program_bears_it_in_a_header(locked: Starlette, path: str, method: str, scheme: str) -> None:
    assert ask(locked, path, {**LOCAL, "authorization": f"{scheme} {TOKEN}"}, method).status == 200


@pytest.mark.parametrize(
    "headers",
    [{"authorization": text} for text in (
        f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Token {TOKEN}",
        f"Bearer {TOKEN.upper()}", "Bearer none", "Bearer \u00e9", f"Bearer {TOKEN}, Bearer x", "Basic Og==")]
    + [{"cookie": text} for text in (
        f"trainvitals-8080={TOKEN}", "trainvitals-8080=", "trainvitals-8080", "trainvitals-8080=none", ";;=;",
        "\u00e9=\u00e9", f"{'a' * 5000}={'b' * 5000}")],
)  # fmt: skip
def test_anything_else_opens_nothing(locked: Starlette, headers: dict[str, str]) -> None:
    assert ask(locked, "/api/v1/snapshot", {**LOCAL, **headers}).status == 401
    assert ask(locked, "/", {**LOCAL, **headers}).status == 401


def test_machines_are_answered_as_without_one(locked: Starlette) -> None:
    assert ask(locked, "/metrics", {"host": "gpu1.example"}).status == 200
    assert ask(locked, "/metrics", {"host": "gpu1.example"}, "HEAD").status == 200
    assert ask(locked, "/healthz").status == 200
    told = ask(locked, "/api/v1/alertmanager", {**LOCAL, "content-type": "application/json"}, "POST")
    assert (told.status, told.json()) == (400, {"error": "the body is no JSON"})


# --- The link ---


@pytest.mark.parametrize(("query", "rest"), [
    (f"token={TOKEN}", "/"), (f"token={TOKEN}&", "/"), (f"view=alerts&token={TOKEN}", "/?view=alerts"),
    (f"run=a%20b&run=c&token={TOKEN.replace('.', '%2E')}&from=1&field=", "/?run=a%20b&run=c&from=1&field="),
])  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_link_leads_to_the_page_without_the_token_in_its_address(
    locked: Starlette, query: str, rest: str, method: str
) -> None:
    answer = ask(locked, f"/?{query}", LOCAL, method)
    assert (answer.status, answer.headers["location"]) == (303, rest)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert TOKEN not in answer.text + str(answer.headers)
    assert ask(locked, rest, {**LOCAL, "cookie": cookie_of(answer)}).status == 200


def test_the_cookie_is_kept_from_scripts_and_other_sites(locked: Starlette) -> None:
    name, _, flags = ask(locked, f"/?token={TOKEN}").headers["set-cookie"].partition("=")
    value, *rest = [part.strip() for part in flags.split(";")]
    assert name == "trainvitals-8080"
    assert len(value) == 64 and TOKEN not in value
    assert {part.lower() for part in rest} == {"httponly", "samesite=strict", "path=/", "max-age=2592000"}


def test_agents_on_one_machine_keep_their_cookies_apart(agent: Agent, locked: Starlette) -> None:
    other = make_app(agent, token="another-token-of-somebody")
    at = {"host": "localhost:8081"}
    cookies = [cookie_of(ask(locked, f"/?token={TOKEN}")),
               cookie_of(ask(other, "/?token=another-token-of-somebody", at))]  # fmt: skip
    both = {"cookie": "; ".join(cookies)}
    assert ask(locked, "/", {**LOCAL, **both}).status == ask(other, "/", {**at, **both}).status == 200
    assert ask(other, "/", {**at, "cookie": cookies[0].replace("8080", "8081")}).status == 401


@pytest.mark.parametrize("host", ["localhost", "[::1]", "[::1]:8080", "127.0.0.1:65535"])
def test_the_cookie_is_found_again_whatever_the_page_is_called(locked: Starlette, host: str) -> None:
    assert ask(locked, "/api/v1/snapshot", entered(locked, {"host": host})).status == 200


@pytest.mark.parametrize("query", [
    "token=", "token", "token=none", f"token={TOKEN}x", f"Token={TOKEN}", f"token=x&token={TOKEN}",
    f"token={TOKEN[:16]}", "token=%ff%00", "token=%E2%82", f"xtoken={TOKEN}"])  # fmt: skip
def test_a_wrong_link_opens_nothing(locked: Starlette, query: str) -> None:
    answer = ask(locked, f"/?{query}")
    assert answer.status == 401
    assert "set-cookie" not in answer.headers and "location" not in answer.headers


@pytest.mark.parametrize(("path", "method"), [
    ("/api/v1/snapshot", "GET"), ("/static/js/main.js", "GET"), ("/", "POST"), ("//evil.example/", "GET")])  # fmt: skip
def test_a_token_in_another_address_counts_for_nothing(locked: Starlette, path: str, method: str) -> None:
    answer = ask(locked, f"{path}?token={TOKEN}", LOCAL, method)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers and "location" not in answer.headers


def test_an_old_link_leads_in_whoever_is_in_already(locked: Starlette) -> None:
    answer = ask(locked, "/?token=of-the-agent-before&view=alerts", entered(locked))
    assert (answer.status, answer.headers["location"]) == (303, "/?view=alerts")
    assert "set-cookie" not in answer.headers


def test_where_nobody_asks_for_one_the_link_leads_to_the_page(app: Starlette) -> None:
    answer = ask(app, f"/?token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "rebound.evil.example:8080", ""])
def test_a_name_that_was_bound_to_here_gets_no_cookie_and_no_page(locked: Starlette, host: str) -> None:
    for headers in ({"host": host}, {**BEARER, "host": host}, {**entered(locked), "host": host}):
        answer = ask(locked, f"/?token={TOKEN}", headers)
        assert answer.status == 421 and "set-cookie" not in answer.headers
        assert ask(locked, "/api/v1/snapshot", headers).status == 421


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9999"])
def test_another_site_gets_nothing_by_a_cookie_it_was_sent(locked: Starlette, origin: str, method: str) -> None:
    for path in (*PAGES, f"/?token={TOKEN}"):
        answer = ask(locked, path, {**entered(locked), "origin": origin}, method)
        assert answer.status == 403 and "set-cookie" not in answer.headers


def test_who_follows_a_link_of_another_site_is_asked_to_come_again_by_the_page_itself(locked: Starlette) -> None:
    """A browser sends a strict cookie only with what its own site began."""
    away = {**LOCAL, "sec-fetch-site": "cross-site"}
    answer = ask(locked, '/?run=a&b="><script>', away)
    assert answer.status == 401
    assert 'http-equiv="refresh" content="0;url=/?run=a&amp;b=&quot;&gt;&lt;script&gt;"' in answer.text
    assert "http-equiv" not in ask(locked, "/?run=a", {**LOCAL, "sec-fetch-site": "same-origin"}).text
    assert "http-equiv" not in ask(locked, "//evil.example/", away).text
    assert "http-equiv" not in ask(locked, "/api/v1/snapshot", away).text


# --- Users and a token ---


def test_either_of_both_is_enough_and_a_program_may_bear_it_to_metrics(agent: Agent) -> None:
    app = make_app(agent, WebConfig(users=USERS), token=TOKEN)
    for path in ("/", "/api/v1/snapshot", "/metrics"):
        refused = ask(app, path)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Basic realm="trainvitals"')
        for headers in (BASIC, BEARER, entered(app)):
            assert ask(app, path, headers).status == 200
    assert ask(app, "/", {**LOCAL, "authorization": "Basic bWU6eA=="}).status == 401
    assert ask(app, "/healthz").status == 200


# --- Which it is ---


def chosen(environ: Mapping[str, str] | None = None, **flags: str) -> Access:
    told = {"host": "0.0.0.0", **flags}
    return access.choose(config.load(told, environ or {}), environ or {})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1.2.3"])
def test_on_loopback_none_is_needed(host: str) -> None:
    assert chosen(host=host) == Access()
    assert chosen(host=host, token="none") == Access()
    assert chosen(host=host, token=TOKEN).token == TOKEN


def test_elsewhere_one_is_made_each_time_another() -> None:
    first, second = chosen(), chosen()
    assert first.is_made and len(first.token) >= 43 and first.token != second.token
    assert first.token not in repr(first)


def test_a_user_of_the_web_configuration_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text(f"basic_auth_users: {{me: {USERS['me'].decode()}}}")
    found = chosen(web_config=str(path))
    assert (found.token, found.is_made, found.is_open) == ("", False, False)
    path.write_text("http_server_config: {headers: {X-Y: z}}")
    assert chosen(web_config=str(path)).is_made


def test_none_is_said_on_purpose() -> None:
    assert chosen(token="none") == chosen({"TRAINVITALS_TOKEN": "none"}) == Access(is_open=True)


def test_flag_over_environment_over_file(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("of-the-secret-file-1\n")
    named = {"TRAINVITALS_TOKEN_FILE": str(secret)}
    assert chosen(named).token == "of-the-secret-file-1"
    assert chosen(named, token=TOKEN).token == TOKEN
    assert chosen(named, token="none").is_open
    # As in the stack, where a file may be named and need not.
    assert chosen({**named, "TRAINVITALS_TOKEN": "none"}).token == "of-the-secret-file-1"
    with pytest.raises(SettingError, match=r"TRAINVITALS_TOKEN_FILE: .* give this or TRAINVITALS_TOKEN, not both"):
        chosen({**named, "TRAINVITALS_TOKEN": TOKEN})


@pytest.mark.parametrize(
    "token", ["short", "hush" * 200, "hush hush hush hush", "hush/hush/hush/hush", "\u00fc" * 20, "NONE"]
)
@pytest.mark.parametrize("by", ["flag", "environment", "file", "line"])
def test_one_that_cannot_be_used_is_refused_and_not_shown(token: str, by: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    words = ["serve"]
    (tmp_path / "it").write_text(token if by == "file" else f"TRAINVITALS_TOKEN='{token}'")
    if by == "flag":
        words += ["--token", token]
    elif by == "environment":
        monkeypatch.setenv("TRAINVITALS_TOKEN", token)
    elif by == "file":
        monkeypatch.setenv("TRAINVITALS_TOKEN_FILE", str(tmp_path / "it"))
    else:
        words += ["--env-file", str(tmp_path / "it")]
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("trainvitals: --token (TRAINVITALS_TOKEN): '(not shown)' cannot be used: give 16 letters")
    assert (out, err.count("\n"), token in err) == ("", 1, False)


def test_a_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRAINVITALS_TOKEN_FILE", "/nothing/there")
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err.startswith("trainvitals: TRAINVITALS_TOKEN_FILE: '/nothing/there' cannot be used")


def test_the_page_about_it_names_every_setting_and_address_and_what_they_answer(agent: Agent) -> None:
    page = (Path(__file__).parents[3] / "docs" / "access.md").read_text(encoding="utf-8")
    for name in ("TRAINVITALS_TOKEN", "TRAINVITALS_TOKEN_FILE", "--token", "--token none", "Authorization: Bearer"):
        assert name in page, name
    for route in make_app(agent).routes:
        path = getattr(route, "path", "")
        if "findings" in path or "silences" in path:
            assert path.replace("{id}", "ID") in page, path
    own = made(agent.root / "other")
    note(own, HOT._replace(step=1))
    other = make_app(own)
    silence(other, kind="GpuTemperatureHigh")
    for name in listed(other)[0].keys() | {"closed", "part", "run", "rank"}:
        assert f"`{name}`" in page, name
    for number in (f"{MOST:,}", f"{MOST_RUNS} newest", f"{MOST_NOTE} characters", f"{MOST_BYTES // 1024} KiB"):
        assert number in page, number


# --- A real server ---


def told_at_the_start(agent: Served) -> str:
    assert agent.process.stdout
    lines = []
    for line in agent.process.stdout:
        lines.append(line)
        if line.startswith("Ctrl-C"):
            break
    return "".join(lines)


class Browser:
    """Cookies and redirections as a browser has them."""

    def __init__(self) -> None:
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def get(self, url: str) -> tuple[int, str, str]:
        try:
            with self._opener.open(url, timeout=10) as answer:
                return answer.status, answer.url, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, url, ""


def test_a_link_is_printed_once_and_opens_the_page_and_stands_nowhere_else(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "1", "--host", "0.0.0.0") as agent:
        words = told_at_the_start(agent)
        [link] = [line.split()[1] for line in words.splitlines() if line.startswith("  link ")]
        port, token = agent.address.rpartition(":")[2], link.partition("?token=")[2]
        assert words.count(token) == 1 and len(token) >= 43
        here, browser = f"http://127.0.0.1:{port}", Browser()
        assert browser.get(f"{here}/")[0] == 401
        status, url, page = browser.get(f"{here}/?token={token}")
        assert (status, url) == (200, f"{here}/") and "<title>TrainVitals</title>" in page
        assert browser.get(f"{here}/api/v1/snapshot")[0] == 200
        wait_for(lambda: list(tmp_path.rglob("gpu_metrics_*.jsonl")))
        shown = browser.get(f"{here}/api/v1/snapshot")[2] + Browser().get(f"{here}/metrics")[2] + page
        shown += "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
        line = Path(f"/proc/{agent.process.pid}/cmdline").read_text()
        agent.stop()
        assert agent.process.stdout and agent.process.stderr
        shown += agent.process.stdout.read() + agent.process.stderr.read() + line
        assert token not in shown


@pytest.mark.parametrize("case", ["a token of one's own", "none", "loopback"])
def test_otherwise_no_link_is_printed(tmp_path: Path, case: str) -> None:
    flags = () if case == "loopback" else ("--host", "0.0.0.0")
    given = {"a token of one's own": TOKEN, "none": "none"}.get(case, "")
    with serving(tmp_path, "--simulate", "1", *flags, env={"TRAINVITALS_TOKEN": given}) as agent:
        words = told_at_the_start(agent)
        assert "  link " not in words and "?token=" not in words and TOKEN not in words
        assert ("everyone who reaches this address" in words) is (case == "none")
        status = Browser().get(f"http://127.0.0.1:{agent.address.rpartition(':')[2]}/api/v1/snapshot")[0]
        assert status == (401 if given == TOKEN else 200)


def test_a_json_log_never_holds_one(tmp_path: Path) -> None:
    words = ("serve", "--dir", str(tmp_path), "--port", "0", "--host", "0.0.0.0", "--log-format", "json")
    answer = run(*words)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("trainvitals: --token (TRAINVITALS_TOKEN): '' cannot be used: give 16 letters")
    process = subprocess.Popen(command_line(*words, "--token", TOKEN), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)  # fmt: skip
    assert process.stdout
    told = process.stdout.readline()
    process.terminate()
    out, err = process.communicate(timeout=10)
    assert '"message"' in told and TOKEN not in told + out + err


def test_every_node_of_a_demo_asks_for_the_same(tmp_path: Path) -> None:
    settings = config.load({"interval": "0.2"}, {})
    with server.bind("127.0.0.1", 0) as first, server.bind("127.0.0.1", 0) as second:
        (tmp_path / "demo-2").mkdir()
        with demo_nodes.others(tmp_path, settings, Access(token=TOKEN), [first, second]):
            address = f"http://127.0.0.1:{second.getsockname()[1]}"
            assert Browser().get(f"{address}/")[0] == 401
            assert Browser().get(f"{address}/?token={TOKEN}")[0] == 200


def test_a_demo_is_opened_by_the_token_too(tmp_path: Path) -> None:
    with serving(tmp_path, command="demo", env={"TRAINVITALS_TOKEN": TOKEN, "TMPDIR": str(tmp_path)}) as agent:
        assert Browser().get(f"{agent.address}/")[0] == 401
        assert Browser().get(f"{agent.address}/?token={TOKEN}")[0] == 200


def test_a_guess_leaves_no_trace_in_the_log(
    tmp_path: Path, locked: Starlette, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ask(locked, f"/?token={TOKEN}")
    ask(locked, "/?token=guess-guess-guess-guess")
    ask(locked, "/", BEARER)
    shown: list[Any] = [record.getMessage() for record in caplog.records if record.name != "asyncio"]
    assert not [text for text in shown if "guess" in text or TOKEN in text]
