"""Mails, by a server that speaks TLS and asks for a login."""

import logging
import smtplib
from pathlib import Path

import pytest

from tests.collector.support import wait_for
from tests.notify.mailing import PASSWORD, USER, body, header, mail_server
from tests.notify.support import closed, finding, notifying, opened, storm, ticket, updated
from tests.ports import free_port
from trainvitals.errors import SettingError
from trainvitals.notify import Channel, channels
from trainvitals.notify.channel import Unsent
from trainvitals.notify.trial import test_message as trial_message

# Of the server: over TLS from the first byte it knows of no TLS.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
STALLED = finding("TrainingStalled", what="no step for 300 s", run="gemma")


def channel(environ: dict[str, str]) -> Channel:
    [found] = channels("email", environ)
    return found


@pytest.mark.parametrize("way", ["starttls", "tls"])
def test_a_mail_says_what_where_and_what_to_do(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server(tmp_path / "mail", way) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.signer))
        with notifying(tmp_path / "q", "email", server.environ(), page="https://tv.example") as notifier:
            notifier.tell([updated(finding(), evidence=(STALLED,))])
            [mail] = wait_for(lambda: server.box.mails)
    # At the start, without a mail, and for the mail.
    assert set(server.box.logins) == {USER.encode()}
    assert header(mail, "subject") == "[page] TrainingNonFinite · run gemma · rank 0 · gpu1"
    assert mail["rcpt"] == "a@gpu.example,b@gpu.example"
    assert header(mail, "from") == "TrainVitals <tv@gpu.example>"
    assert (mail["auto-submitted"], mail["importance"]) == ("auto-generated", "high")
    for words in ("the loss is nan at step 812", "Do first: Stop the run", "since 2025-07-30 12:34:56 UTC",
                  "With it: TrainingStalled: no step for 300 s", "/docs/runbooks/TrainingNonFinite.md",
                  "Now: https://tv.example/"):  # fmt: skip
        assert words in body(mail)


def test_many_are_one_mail_and_so_are_ends(tmp_path: Path, quick: None) -> None:
    with mail_server(tmp_path / "mail", "none") as server, notifying(tmp_path / "q", "email", server.environ()) as told:
        changes = [*storm(60), opened(ticket())]
        told.tell(changes)
        wait_for(lambda: server.box.mails)
        told.tell([closed(change.finding) for change in changes])
        first, second = wait_for(lambda: len(server.box.mails) == 2 and server.box.mails)
    assert header(first, "subject").endswith(" and 60 more")
    assert all(f"run-{number}" in body(first) for number in range(60)) and "GpuTemperatureHigh" in body(first)
    assert header(second, "subject").startswith("[resolved] ") and second["importance"] is None
    assert body(second).count("[resolved]") == 61 and "Do first" not in body(second)


def test_the_name_of_a_run_ends_no_header(tmp_path: Path) -> None:
    with mail_server(tmp_path / "mail", "none") as server, notifying(tmp_path / "q", "email", server.environ()) as told:
        told.tell([opened(finding(run="x\r\nBcc: evil@gpu.example\n\n\udcffä", what="\x1b[2J\udcff"))])
        [mail] = wait_for(lambda: server.box.mails)
    assert mail["bcc"] is None and mail["rcpt"] == "a@gpu.example,b@gpu.example"
    assert "\x1b" not in body(mail)


def test_a_server_that_is_busy_is_asked_again(tmp_path: Path, quick: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with mail_server(tmp_path / "mail", "none") as server, notifying(tmp_path / "q", "email", server.environ()) as told:
        server.box.answer = "451 come again"
        told.tell([opened()])
        wait_for(lambda: server.box.tried >= 3)
        server.box.answer = "250 OK"
        wait_for(lambda: "delivers again" in caplog.text)
    assert len(server.box.mails) == 1
    assert caplog.text.count("email: 451 come again; it is tried again") == 1


def test_a_server_that_comes_back_gets_what_waited(tmp_path: Path, quick: None) -> None:
    port = free_port()
    with mail_server(tmp_path / "mail", "none", port) as server:
        environ = server.environ()
    with notifying(tmp_path / "q", "email", environ) as notifier:
        notifier.tell([opened()])
        wait_for(lambda: notifier.counts()["email"].failed >= 2)
        with mail_server(tmp_path / "mail", "none", port) as server:
            wait_for(lambda: server.box.mails)


def test_some_that_are_refused_keep_it_from_nobody(tmp_path: Path) -> None:
    with mail_server(tmp_path / "mail", "none") as server:
        server.box.refuse = {"a@gpu.example": "550 no such user"}
        channel(server.environ()).send(trial_message("gpu1", 0))
        assert [mail["rcpt"] for mail in server.box.mails] == ["b@gpu.example"]


@pytest.mark.parametrize(("answer", "refusals", "is_refused"), [
    ("554 no", {}, True), ("451 later", {}, False),
    ("250 OK", {"a@gpu.example": "550 gone", "b@gpu.example": "550 gone"}, True),
    ("250 OK", {"a@gpu.example": "450 greylisted", "b@gpu.example": "550 gone"}, False),
])  # fmt: skip
def test_what_is_meant_for_good_is_told_from_what_is_not(tmp_path: Path, answer: str, refusals: dict[str, str],
                                                         is_refused: bool) -> None:  # fmt: skip
    with mail_server(tmp_path / "mail", "none") as server:
        server.box.answer, server.box.refuse = answer, refusals
        with pytest.raises(Unsent) as caught:
            channel(server.environ()).send(trial_message("gpu1", 0))
    assert caught.value.is_refused is is_refused


# --- At the start ---


def complaint(environ: dict[str, str]) -> str:
    with pytest.raises(SettingError) as caught:
        channel(environ).check()
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


def test_what_is_right_is_seen_without_a_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server(tmp_path / "mail") as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.signer))
        channel(server.environ()).check()
        assert (server.box.logins, server.box.tried) == ([USER.encode()], 0)


def test_a_wrong_password_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                   caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    with mail_server(tmp_path / "mail") as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.signer))
        with notifying(tmp_path / "q", "email", server.environ(SMTP_PASSWORD="hush-wrong")):
            wait_for(lambda: "monitoring goes on" in caplog.text)
    assert "SMTP_PASSWORD: '(not shown)' cannot be used: 127.0.0.1:" in caplog.text
    assert "takes no such login: 535" in caplog.text and "hush" not in caplog.text


def test_a_password_that_no_login_can_carry_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server(tmp_path / "mail") as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.signer))
        assert complaint(server.environ(SMTP_PASSWORD="h\u00fcsh")).startswith("SMTP_PASSWORD: '(not shown)'")


def test_a_certificate_of_somebody_is_not_taken(tmp_path: Path) -> None:
    with mail_server(tmp_path / "mail") as server:
        told = complaint(server.environ())
        assert "SMTP_HOST: '127.0.0.1:" in told and "SSL_CERT_FILE" in told
        with pytest.raises(Unsent) as caught:
            channel(server.environ()).send(trial_message("gpu1", 0))
        assert caught.value.is_refused
        assert server.box.logins == []


def test_no_password_goes_over_a_line_that_is_not_encrypted(tmp_path: Path) -> None:
    """A server that offers no STARTTLS, or somebody in between who took the offer out."""
    with mail_server(tmp_path / "mail", "none") as server:
        server.way = "starttls"
        told = complaint(server.environ())
        assert "STARTTLS" in told and "look at SMTP_HOST, SMTP_PORT and SMTP_TLS" in told
        assert (server.box.logins, server.box.tried) == ([], 0)


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    port = str(free_port())
    environ = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": port, "SMTP_FROM": "a@b.example", "SMTP_TO": "a@b.example"}
    fix = "look at SMTP_HOST, SMTP_PORT and SMTP_TLS"
    assert complaint(environ) == f"SMTP_HOST: '127.0.0.1:{port}' cannot be used: connection refused; {fix}"


def test_no_name_server_is_asked_for_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That may take longer than a page may."""

    def fail(name: str = "") -> str:
        raise AssertionError("asked for the full name")

    monkeypatch.setattr(smtplib.socket, "getfqdn", fail)  # type: ignore[attr-defined]
    with mail_server(tmp_path / "mail", "none") as server:
        channel(server.environ()).send(trial_message("gpu1", 0))
        assert len(server.box.mails) == 1
