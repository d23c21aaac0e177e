"""The web configuration file: who is admitted, what is refused, and that no secret is told."""

import logging
from base64 import b64encode
from pathlib import Path

import bcrypt
import pytest
from starlette.applications import Starlette

from tests.collector.web.asking import LOCAL, ask
from trainvitals.agent.service import Agent
from trainvitals.errors import SettingError
from trainvitals.web import config as module
from trainvitals.web.app import make_app
from trainvitals.web.config import WebConfig, load

PASSWORD = "correct: horse \u00fc"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()


def written(folder: Path, text: str) -> Path:
    path = folder / "web.yml"
    path.write_text(text)
    return path


def basic(user: str, password: str, scheme: str = "Basic") -> dict[str, str]:
    return {**LOCAL, "authorization": f"{scheme} {b64encode(f'{user}:{password}'.encode()).decode()}"}


@pytest.fixture
def config(tmp_path: Path) -> WebConfig:
    return load(written(tmp_path, f"basic_auth_users:\n  prometheus: {HASH}\n"))


@pytest.fixture
def guarded(agent: Agent, config: WebConfig) -> Starlette:
    return make_app(agent, config)


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/snapshot", "/static/js/main.js", "/nothing"])
def test_who_knows_the_password_is_admitted_and_nobody_else(guarded: Starlette, path: str) -> None:
    refused = ask(guarded, path)
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == 'Basic realm="trainvitals"'
    assert ask(guarded, path, basic("prometheus", PASSWORD)).status in (200, 404)
    assert ask(guarded, path, basic("prometheus", PASSWORD, "bAsIc")).status in (200, 404)


@pytest.mark.parametrize(
    "headers",
    [
        basic("prometheus", "wrong"),
        basic("prometheus", ""),
        basic("prometheus", PASSWORD + " "),
        basic("prometheus", HASH),
        basic("nobody", PASSWORD),
        basic("", PASSWORD),
        basic("prometheus", PASSWORD, "Bearer"),
        basic("prometheus", PASSWORD, ""),
        basic("prometheus", "a\0b"),
        basic("prometheus", "x" * 5000),
        *({**LOCAL, "authorization": text} for text in
          ("", "Basic", "Basic ", "Basic !!!", "Basic eA", "Basic /w==", "Basic cHJvbWV0aGV1cw==",
           "\u00e9", "Basic \u00e9")),
    ],
)  # fmt: skip
def test_everything_else_is_refused(guarded: Starlette, headers: dict[str, str]) -> None:
    assert ask(guarded, "/metrics", headers).status == 401
    assert ask(guarded, "/api/v1/stream", headers).status == 401


def test_health_is_told_to_all(guarded: Starlette) -> None:
    assert ask(guarded, "/healthz").status == 200


def test_bcrypt_is_asked_once_for_the_right_password_and_each_time_for_a_wrong_one(
    guarded: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    check = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda *given: asked.append(given) or check(*given))
    for _ in range(3):
        assert ask(guarded, "/metrics", basic("prometheus", PASSWORD)).status == 200
    assert len(asked) == 1
    for _ in range(2):
        assert ask(guarded, "/metrics", basic("prometheus", "wrong")).status == 401
    assert len(asked) == 3


def test_an_unknown_user_takes_as_long_as_a_wrong_password(config: WebConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(bcrypt, "checkpw", lambda *given: asked.append(given))
    assert not config.admits(basic("nobody", "x")["authorization"])
    assert len(asked) == 1


def test_what_is_kept_of_a_password_is_not_the_password(config: WebConfig) -> None:
    header = basic("prometheus", PASSWORD)["authorization"]
    assert config.admits(header)
    assert HASH not in repr(config)
    assert not any(header.encode() in good for good in config._good)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "{}", "basic_auth_users:\n", "http_server_config: {http2: true}\n"]
)
def test_a_file_without_demands_demands_nothing(tmp_path: Path, text: str) -> None:
    config = load(written(tmp_path, text))
    assert (config.users, config.tls, config.headers) == ({}, None, {})


def test_headers_are_taken_over(tmp_path: Path) -> None:
    config = load(written(tmp_path, "http_server_config:\n  headers:\n    X-Frame-Options: deny\n"))
    assert config.headers == {"X-Frame-Options": "deny"}


TLS = "tls_server_config:\n  cert_file: c.pem\n  key_file: k.pem\n"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("basic_auth_user: {x: SECRET}", "basic_auth_user"),
        ("basic_auth_users: SECRET", "basic_auth_users"),
        ("basic_auth_users: [SECRET]", "basic_auth_users"),
        ("basic_auth_users: []", "basic_auth_users"),
        ("basic_auth_users: ''", "basic_auth_users"),
        ("basic_auth_users: false", "basic_auth_users"),
        ("basic_auth_users: {alice: SECRET}", "basic_auth_users.alice"),
        ("basic_auth_users: {alice: }", "basic_auth_users.alice"),
        ("basic_auth_users: {alice: $2y$10$SECRET}", "basic_auth_users.alice"),
        (f"basic_auth_users: {{alice: {HASH}, bob: SECRET}}", "basic_auth_users.bob"),
        (f"basic_auth_users: {{alice: {HASH}x}}", "basic_auth_users.alice"),
        ("tls_server_config: SECRET", "tls_server_config"),
        ("tls_server_config: []", "tls_server_config"),
        ("tls_server_config: {key: SECRET}", "tls_server_config.key"),
        (TLS + "  cipher_suites: [SECRET]", "tls_server_config.cipher_suites"),
        ("tls_server_config: {key_file: k.pem}", "tls_server_config.cert_file"),
        ("tls_server_config: {cert_file: c.pem}", "tls_server_config.key_file"),
        ("tls_server_config: {cert_file: [c.pem], key_file: k.pem}", "tls_server_config.cert_file"),
        (TLS, "tls_server_config"),
        (TLS + "  min_version: TLS10", "tls_server_config.min_version"),
        (TLS + "  min_version: [TLS12]", "tls_server_config.min_version"),
        (TLS + "  min_version: TLS13\n  max_version: TLS12", "tls_server_config.min_version"),
        (TLS + "  max_version: 1.3", "tls_server_config.max_version"),
        ("http_server_config: SECRET", "http_server_config"),
        ("http_server_config: {rate: SECRET}", "http_server_config.rate"),
        ("http_server_config: {headers: SECRET}", "http_server_config.headers"),
        ("http_server_config: {headers: {'X Y': z}}", "http_server_config.headers.X Y"),
        ("http_server_config: {headers: {X: \"a\\r\\nSet-Cookie: b\"}}", "http_server_config.headers.X"),
        ("http_server_config: {headers: {X: '\u00fc'}}", "http_server_config.headers.X"),
        ("SECRET", "--web-config"),
        ("[SECRET]", "--web-config"),
        ("basic_auth_users:\n  alice: SECRET\n bob: SECRET", "--web-config"),
        ("basic_auth_users: {alice: 'SECRET", "--web-config"),
        ("basic_auth_users: !!python/object:os.system SECRET", "--web-config"),
        ("a: 2026-99-99 # SECRET", "--web-config"),
        ("\x01SECRET", "--web-config"),
        ("[" * 100_000, "--web-config"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named_without_its_value(
    tmp_path: Path, text: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, text)
    with caplog.at_level(logging.DEBUG), pytest.raises(SettingError) as caught:
        load(path)
    words = str(caught.value)
    assert words.startswith(f"{path}: {key}: " if key != "--web-config" else f"--web-config: '{path}' ")
    assert "\n" not in words
    assert "SECRET" not in words + caplog.text
    assert len(caught.value.fix) > 5


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingError, match="UTF-8"):
        load(path)


@pytest.mark.parametrize("mode", ["RequireAndVerifyClientCert", "VerifyClientCertIfGiven", "RequireAnyClientCert", "x"])
def test_checking_clients_needs_an_authority(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_load_own", lambda *_: None)
    with pytest.raises(SettingError, match="client_auth_type"):
        load(written(tmp_path, TLS + f"  client_auth_type: {mode}\n"))


def test_an_authority_that_nothing_is_checked_with_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_load_own", lambda *_: None)
    with pytest.raises(SettingError, match="RequireAndVerifyClientCert"):
        load(written(tmp_path, TLS + "  client_ca_file: ca.pem\n"))


def test_no_file_is_no_demand() -> None:
    assert load(None) == WebConfig()


def test_a_password_longer_than_bcrypt_looks_at_is_refused(tmp_path: Path) -> None:
    """What bcrypt would leave out must not be taken for right."""
    longest = "\u00fc" * 36
    secret = bcrypt.hashpw(longest.encode(), bcrypt.gensalt(4)).decode()
    config = load(written(tmp_path, f"basic_auth_users:\n  prometheus: {secret}\n"))
    assert config.admits(basic("prometheus", longest)["authorization"])
    assert not config.admits(basic("prometheus", longest + "x")["authorization"])


def test_the_headers_that_were_admitted_are_remembered_up_to_a_number(
    config: WebConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bcrypt, "checkpw", lambda *_: True)
    headers = [basic("prometheus", str(number))["authorization"] for number in range(200)]
    assert all(config.admits(header) for header in headers)
    assert len(config._good) == 64
    assert config.has_admitted(headers[-1]) and not config.has_admitted(headers[0])
