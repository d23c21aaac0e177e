"""A running agent over HTTPS, with a certificate that is made here."""

import http.client
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.collector.support import Served, serving
from trainvitals.errors import SettingError
from trainvitals.web.config import load

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_certificate(folder: Path, name: str) -> None:
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2,
            "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder, "server")
    make_certificate(folder, "client")
    return folder


def write_config(folder: Path, more: str = "", cert: str = "server.crt", key: str = "server.key") -> Path:
    path = folder / "web.yml"
    path.write_text(f"tls_server_config:\n  cert_file: {cert}\n  key_file: {key}\n{more}")
    return path


def get(agent: Served, context: ssl.SSLContext) -> tuple[int, str]:
    address = urlsplit(agent.address)
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, timeout=10, context=context)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def trusting(folder: Path, client: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "server.crt"))
    if client:
        context.load_cert_chain(folder / f"{client}.crt", folder / f"{client}.key")
    return context


def test_metrics_over_https_and_not_without(folder: Path, tmp_path: Path) -> None:
    config = write_config(folder)
    with serving(tmp_path, "--simulate", "1", "--web-config", str(config)) as agent:
        assert agent.address.startswith("https://")
        status, text = get(agent, trusting(folder))
        assert (status, "trainvitals_build_info{" in text) == (200, True)
        with pytest.raises(ssl.SSLCertVerificationError):
            get(agent, ssl.create_default_context())
        address = urlsplit(agent.address)
        with socket.create_connection((address.hostname, address.port), timeout=10) as plain:
            plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert b"trainvitals" not in plain.makefile("rb").read()
        assert agent.stop() == 0


def test_only_clients_with_a_certificate_are_answered(folder: Path, tmp_path: Path) -> None:
    config = write_config(folder, "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: client.crt\n")
    with serving(tmp_path, "--web-config", str(config)) as agent:
        assert get(agent, trusting(folder, "client"))[0] == 200
        for client in ("", "server"):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                get(agent, trusting(folder, client))


def test_the_cookie_of_a_token_goes_by_https_alone(folder: Path, tmp_path: Path) -> None:
    token = "hush-hush-hush-hush"
    with serving(tmp_path, "--web-config", str(write_config(folder)), env={"TRAINVITALS_TOKEN": token}) as agent:
        address = urlsplit(agent.address)
        connection = http.client.HTTPSConnection(address.hostname or "", address.port, timeout=10,
                                                 context=trusting(folder))  # fmt: skip
        connection.request("GET", f"/?token={token}")
        answer = connection.getresponse()
        flags = [part.strip().lower() for part in str(answer.headers["set-cookie"]).split(";")]
        connection.close()
    assert answer.status == 303
    assert {"secure", "httponly", "samesite=strict", "path=/"} <= set(flags)


def test_versions_are_honoured(folder: Path) -> None:
    context = load(write_config(folder, "  min_version: TLS13\n")).tls
    assert context is not None
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert context.maximum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("cert", "key"),
    [("missing.crt", "server.key"), ("server.crt", "missing.key"), ("server.key", "server.crt"),
     ("server.crt", "client.key"), ("web.yml", "web.yml"), (".", "server.key")],
)  # fmt: skip
def test_certificates_that_cannot_be_used_are_named(folder: Path, cert: str, key: str) -> None:
    with pytest.raises(SettingError) as caught:
        load(write_config(folder, cert=cert, key=key))
    assert f"{folder / cert}, {folder / key}" in str(caught.value)
    assert "PRIVATE" not in str(caught.value)


def test_a_key_with_a_password_is_refused_and_not_asked_for(folder: Path) -> None:
    locked = folder / "locked.key"
    openssl("ec", "-aes256", "-passout", "pass:abcdef", "-in", folder / "server.key", "-out", locked)
    with pytest.raises(SettingError, match="without a password"):
        load(write_config(folder, key="locked.key"))


@pytest.mark.parametrize("authority", ["missing.crt", "server.key", "web.yml"])
def test_an_authority_that_cannot_be_used_is_named(folder: Path, authority: str) -> None:
    more = f"  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: {authority}\n"
    with pytest.raises(SettingError, match=f"client_ca_file: .*{authority}"):
        load(write_config(folder, more))
