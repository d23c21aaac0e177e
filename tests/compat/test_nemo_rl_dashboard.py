"""The dashboard is the agent's page: served until somebody ends it, and never in another agent's way."""

import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress

import pytest

from tests.collector.support import wait_for
from tests.compat.test_gpu_training import bare
from tests.ports import free_port
from trainvitals.agent.service import Agent
from trainvitals.compat.nemo_rl import MonitoringDashboard

PROGRAM = """
import sys
from trainvitals.compat.nemo_rl import MonitoringDashboard
MonitoringDashboard().run(host=sys.argv[1], port=int(sys.argv[2]))
print("and the script goes on")
"""


def page(port: int) -> str:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
        return str(answer.read().decode())
    return ""


def test_the_signature_is_that_of_the_other_tool():
    assert bare(MonitoringDashboard.run) == "(self, host='127.0.0.1', port=8050)"


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_it_serves_the_page_until_ctrl_c(journal, host):
    port = free_port()
    script = subprocess.Popen([sys.executable, "-c", PROGRAM, host, str(port)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=os.environ)  # fmt: skip
    try:
        said = next(line for line in script.stderr if "page" in line)
        assert f":{port}/" in said
        if host == "127.0.0.1":
            assert wait_for(lambda: "<title>TrainVitals</title>" in page(port))
        else:
            assert "?token=" in next(script.stderr)
        script.send_signal(signal.SIGINT)
        assert script.wait(timeout=10) == 0
        assert script.stdout.read() == "and the script goes on\n"
        wait_for(lambda: not page(port))
    finally:
        script.kill()
        script.communicate(timeout=10)


def test_where_an_agent_listens_its_page_shows_all(agent, journal, caplog):
    MonitoringDashboard().run(port=free_port())
    assert [record.message for record in caplog.records] == [
        f"an agent listens for {journal} already at {agent.address}: its page shows all of this journal"
    ]


def test_where_the_agent_has_no_page_none_is_named(journal, monkeypatch, caplog):
    agent = Agent([], journal, interval=0.1)
    agent.start()
    try:
        agent.tell_address("\x1b[31m http://127.0.0.1:8080")
        MonitoringDashboard().run(port=free_port())
    finally:
        agent.stop()
    assert [record.message for record in caplog.records] == [
        f"an agent listens for {journal} already: its page shows all of this journal"
    ]


def test_switched_off_it_returns_at_once_and_says_nothing(journal, monkeypatch, caplog):
    monkeypatch.setenv("TRAINVITALS", "off")
    assert MonitoringDashboard().run(port=free_port()) is None
    assert not caplog.records
