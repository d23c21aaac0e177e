"""The dead man's switch: it is called while all is well, and never otherwise."""

from pathlib import Path

import pytest

from tests.collector.agent.fakes import FakeGpu, FakeSource
from tests.collector.support import wait_for
from tests.notify.support import HOST, Hook, settled
from tests.ports import free_port
from trainvitals import config
from trainvitals.agent.service import Agent
from trainvitals.notify import Notifier, heartbeat
from trainvitals.notify.heartbeat import Switch
from trainvitals.telling import Telling


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.05)


def beating(folder: Path, url: str, is_well: object = lambda: True) -> Notifier:
    switch = Switch("TRAINVITALS_HEARTBEAT_URL", url)
    found = Notifier([], folder, HOST, heartbeat=switch, is_well=is_well)  # type: ignore[arg-type]
    found.start()
    return found


def test_it_beats_as_long_as_all_is_well(tmp_path: Path, server: Hook) -> None:
    well = [True]
    notifier = beating(tmp_path, f"{server.url}/ping", lambda: well[0])
    wait_for(lambda: len(server.posts) >= 3)
    well[0] = False
    wait_for(lambda: not _beats(server))
    well[0] = True
    wait_for(lambda: _beats(server))
    notifier.stop()
    wait_for(lambda: not _beats(server))
    assert server.posts[0] == ("/ping", None)


def test_a_missing_gpu_stops_no_heartbeat_and_an_agent_that_sees_nothing_does(tmp_path: Path, server: Hook) -> None:
    telling = Telling(config.load({"heartbeat_url": f"{server.url}/ping"}, {}), {})
    agent = Agent([FakeSource([FakeGpu(0)])], tmp_path, interval=0.1, expected_gpus=2)
    agent.start()
    telling.start(agent)
    wait_for(agent.health)
    before = len(server.posts)
    wait_for(lambda: len(server.posts) > before + 2)
    agent._sampler.is_stuck = lambda: True  # type: ignore[method-assign]
    wait_for(lambda: not _beats(server))
    telling.stop()
    agent.stop()


def _beats(server: Hook, seconds: float = 0.4) -> bool:
    before = len(server.posts)
    try:
        settled(lambda: len(server.posts) > before, seconds)
    except AssertionError:
        return True
    return False


def test_who_cannot_tell_is_not_well(tmp_path: Path, server: Hook, caplog: pytest.LogCaptureFixture) -> None:
    def ask() -> bool:
        raise RuntimeError("hush")

    notifier = beating(tmp_path, server.url, ask)
    wait_for(lambda: "whether all is well cannot be told (RuntimeError)" in caplog.text)
    assert not server.posts and "hush" not in caplog.text
    notifier.stop()


def test_one_that_fails_is_said_once_and_called_again(tmp_path: Path, server: Hook,
                                                      caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    server.answers.extend([500, 500, 500])
    notifier = beating(tmp_path, f"{server.url}/hush")
    wait_for(lambda: server.posts)
    notifier.stop()
    assert caplog.text.count("heartbeat: answers 500") == 1
    assert "see TRAINVITALS_HEARTBEAT_URL" in caplog.text and "hush" not in caplog.text


def test_a_wrong_address_says_so_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notifier = beating(tmp_path, f"http://127.0.0.1:{free_port()}/hush")
    wait_for(lambda: "monitoring goes on" in caplog.text)
    notifier.stop()
    assert "TRAINVITALS_HEARTBEAT_URL: '(not shown)' cannot be used" in caplog.text and "hush" not in caplog.text
