"""Everything else by the real apprise, which here posts JSON to a receiver of ours."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.support import wait_for
from tests.notify.support import Hook, finding, notifying, opened, storm, ticket
from tests.ports import free_port
from trainvitals.errors import SettingError
from trainvitals.notify import by_apprise, channels
from trainvitals.notify.channel import Unsent
from trainvitals.notify.limits import CHAT_CHARACTERS, CHAT_TOLD_WHOLE
from trainvitals.notify.trial import test_message as trial_message

pytest.importorskip("apprise", reason="apprise is not installed: make .venv/.dev")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def address(server: Hook) -> str:
    return f"apprise=json://user:hush-password@{server.url.removeprefix('http://')}/hush-path"


def test_a_page_is_a_failure_a_ticket_a_warning_and_an_end_neither(tmp_path: Path, server: Hook, quick: None) -> None:
    with notifying(tmp_path, address(server)) as notifier:
        for number, change in enumerate((opened(), opened(ticket()), opened()._replace(state="close")), 1):
            notifier.tell([change])
            wait_for(lambda number=number: len(server.taken) == number)
    assert [body["type"] for body in server.taken] == ["failure", "warning", "success"]
    assert server.taken[0]["title"] == "[page] TrainingNonFinite · run gemma · rank 0 · gpu1"
    assert "Do first: Stop the run" in server.taken[0]["message"]


def test_a_storm_fits_in_a_chat(tmp_path: Path, server: Hook) -> None:
    with notifying(tmp_path, address(server)) as notifier:
        notifier.tell(storm(1000))
        wait_for(lambda: server.taken)
    [body] = server.taken
    assert len(body["message"]) < CHAT_CHARACTERS + 1000
    assert f"And {1000 - CHAT_TOLD_WHOLE} more:" in body["message"] and "[page] Kind5: 142" in body["message"]


def test_nobody_is_called_by_the_name_of_a_run(tmp_path: Path, server: Hook) -> None:
    with notifying(tmp_path, address(server)) as notifier:
        notifier.tell([opened(finding(run="@everyone <b>"))])
        wait_for(lambda: server.taken)
    told = str(server.taken[0])
    assert "@everyone" not in told and "everyone <b>" in told


class Listening(logging.Handler):
    """What a log would hold. Not pytest's: that listens to what is passed on to nobody too."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{record.name} {record.getMessage()}\n"


@pytest.fixture
def log() -> Iterator[Listening]:
    root, found = logging.getLogger(), Listening()
    level = root.level
    root.addHandler(found)
    root.setLevel(logging.DEBUG)
    try:
        yield found
    finally:
        root.removeHandler(found)
        root.setLevel(level)


def test_why_it_failed_is_told_without_the_address(server: Hook, log: Listening) -> None:
    server.status = 401
    [channel] = channels(address(server), {})
    with pytest.raises(Unsent) as caught:
        channel.send(trial_message("gpu1", 0))
    assert caught.value.is_refused
    told = channel.hide(str(caught.value))
    assert "401" in told and "hush" not in told
    # What it says while it works holds addresses: none of it reaches the log.
    assert "hush" not in log.text


def test_one_that_is_down_is_no_refusal(server: Hook) -> None:
    server.status = 503
    [channel] = channels(address(server), {})
    with pytest.raises(Unsent) as caught:
        channel.send(trial_message("gpu1", 0))
    assert not caught.value.is_refused


@pytest.mark.parametrize("url", ["nonsense://hush", "pover://hush", "tgram://hush"])
def test_an_address_that_apprise_does_not_know_is_named_at_the_start(url: str) -> None:
    [channel] = channels(f"apprise={url}", {})
    with pytest.raises(SettingError) as caught:
        channel.check()
    assert str(caught.value).startswith("--notify (TRAINVITALS_NOTIFY): '(not shown)' cannot be used: apprise knows no")
    assert "hush" not in str(caught.value)
    with pytest.raises(Unsent, match="no address that apprise knows"):
        channel.send(trial_message("gpu1", 0))


@pytest.mark.parametrize(("url", "reached"), [
    ("ntfy://ntfy.sh/topic", "http://ntfy.sh"),
    ("gotifys://[fd00::1]:8443/token", "https://[fd00::1]:8443"),
    ("mailto://me:hush@gpu.example:2525?smtp=mail.example", "http://mail.example:2525"),
    (f"pover://{'u' * 30}@{'t' * 30}", "https://api.pushover.net/1/messages.json"),
    (f"tgram://123456789:{'a' * 35}/-100123", "https://api.telegram.org/bot"),
    (f"discord://123456789012345678/{'t' * 40}", "https://discord.com/api/webhooks"),
    (f"pagerduty://{'k' * 32}@{'a' * 20}", None),
    (f"workflows://prod.westus.logic.azure.com:443/{'a' * 32}/{'b' * 40}/", "https://prod.westus.logic.azure.com:443"),
])  # fmt: skip
def test_what_rings_a_phone_is_known_and_reached(url: str, reached: str | None,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    asked: list[str] = []
    monkeypatch.setattr(by_apprise, "connect", asked.append)
    [channel] = channels(f"apprise={url}", {})
    assert "known once one is sent" in channel.check()
    assert asked == ([reached] if reached else [])


def test_a_machine_where_nobody_listens_is_said_at_the_start() -> None:
    [channel] = channels(f"apprise=json://user:hush-password@127.0.0.1:{free_port()}/hush-path", {})
    with pytest.raises(Unsent, match="connection refused"):
        channel.check()


def test_it_is_loaded_when_it_is_needed_and_not_before() -> None:
    code = ("import sys; from trainvitals.notify import channels; channels('apprise=ntfy://x', {});"
            "print('apprise' in sys.modules)")  # fmt: skip
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert told.stdout == "False\n"
