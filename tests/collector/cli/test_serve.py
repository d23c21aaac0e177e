"""`trainvitals serve` as a process: how it begins, what it says, how it ends."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.collector.support import Served, command_line, complaints, run, serving, wait_for
from tests.ports import free_port
from trainvitals import console
from trainvitals.errors import SettingError
from trainvitals.journal.layout import gpu_folder, host_name
from trainvitals.web import server

ENDING_SECONDS = 2.0


def ends_in_time(process: "subprocess.Popen[str]", number: int) -> None:
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(timeout=10) == 0
    assert time.monotonic() - began < ENDING_SECONDS


def rest_of_words(agent: Served) -> str:
    assert agent.process.stdout
    text = ""
    for line in agent.process.stdout:
        text += line
        if line.startswith("Ctrl-C"):
            break
    return text


@contextmanager
def reading_the_stream(agent: Served) -> Iterator[socket.socket]:
    with agent.connect() as connection:
        connection.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        yield connection


def test_the_first_reading_comes_soon(tmp_path: Path) -> None:
    began = time.monotonic()
    with serving(tmp_path, "--simulate", "8") as agent:
        wait_for(lambda: len(agent.snapshot()["gpus"]) == 8)
        seconds = time.monotonic() - began
        print(f"first reading after {seconds:.2f} s")
        assert seconds < 10


def test_words_at_the_start_with_gpus(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "3") as agent:
        words = rest_of_words(agent)
        assert agent.address.startswith("http://127.0.0.1:")
        assert f"  metrics  {agent.address}/metrics" in words
        assert f"  journal  {tmp_path}\n" in words
        assert "3 x Simulated H100 80GB" in words
        assert "GiB memory" in words
        assert "Prometheus" in words
        assert f"`{console._from_here(Path(sys.executable))} -m trainvitals doctor`" in words


def test_words_at_the_start_without_a_gpu(tmp_path: Path) -> None:
    with serving(tmp_path) as agent:
        words = rest_of_words(agent)
        if Path("/proc/driver/nvidia").exists():
            pytest.skip("this machine has a GPU")
        assert "this machine has no NVIDIA GPU" in words
        assert "-m trainvitals demo` shows" in words
        assert agent.get("/healthz") == "ok\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_everything_written(tmp_path: Path, number: int) -> None:
    with serving(tmp_path, "--simulate", "8", "--interval", "0.1") as agent, reading_the_stream(agent) as reader:
        wait_for(lambda: sum(len(file.read_bytes()) for file in tmp_path.rglob("gpu_metrics_*.jsonl")) > 5000)
        ends_in_time(agent.process, number)
        while reader.recv(65536):
            pass
        assert complaints(agent.process) == []
    files = list(tmp_path.rglob("*_metrics_*.jsonl"))
    assert files
    for file in files:
        lines = file.read_bytes().split(b"\n")
        assert lines.pop() == b""
        assert all(json.loads(line)["timestamp"] for line in lines)


def test_a_reader_that_takes_nothing_does_not_keep_it(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "64", "--interval", "0.1") as agent, reading_the_stream(agent):
        before = agent.snapshot()["timestamp"]
        wait_for(lambda: agent.snapshot()["timestamp"] > before)
        # Long enough for the socket to be full: 64 GPUs make 100 KB ten times a second.
        wait_for(lambda: _unread(agent) > 100_000)
        ends_in_time(agent.process, signal.SIGTERM)


def _unread(agent: Served) -> int:
    """Bytes that lie in the send queues of the agent's connections."""
    port = int(agent.address.rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[4].partition(":")[0], 16) for row in rows if int(row[1].partition(":")[2], 16) == port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("delay", [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7])
def test_a_signal_at_any_time_ends_it_quietly(tmp_path: Path, number: int, delay: float) -> None:
    process = subprocess.Popen(command_line("serve", "--dir", str(tmp_path), "--port", "0"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    time.sleep(delay)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode in (0, 130, -number, 1), err
    # What the interpreter says while it still loads the program is its own.
    assert "Traceback" not in err or "in main\n" not in err, err


def test_a_second_agent_on_one_journal_is_told_so(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "1") as agent:
        second = run("serve", "--simulate", "1", "--dir", str(tmp_path), "--port", "0")
        assert second.returncode == 2
        assert second.stdout == ""
        assert second.stderr.startswith(f"trainvitals: an agent runs already on {tmp_path}")
        assert "--dir" in second.stderr
        assert second.stderr.count("\n") == 1
        assert agent.snapshot()["gpus"]


def test_a_busy_port_is_named_with_its_flag(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words in (("serve", "--dir", str(tmp_path)), ("demo",)):
            answer = run(*words, "--port", str(port))
            assert answer.returncode == 2
            assert answer.stderr.startswith(f"trainvitals: --port: '{port}' cannot be used: the port is taken")
            assert f"`--port {port + 1}`" in answer.stderr
            assert answer.stderr.count("\n") == 1


def test_a_port_that_only_root_may_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(SettingError, match=r"--port: '80' cannot be used: ports below 1024 need root"):
        server.bind("127.0.0.1", 80)


def test_a_journal_that_cannot_be_written_is_said_and_served_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving(tmp_path / "file" / "journal", "--simulate", "1", "--interval", "0.1") as agent:
        words = rest_of_words(agent)
        assert "cannot be written: readings are shown but not kept" in words
        assert "gpu_utilization_percent{" in agent.get("/metrics")
        before = agent.snapshot()["timestamp"]
        wait_for(lambda: agent.snapshot()["timestamp"] > before)
        ends_in_time(agent.process, signal.SIGTERM)
        assert agent.process.stderr
        assert "cannot be written" in agent.process.stderr.read()


def closed() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize(
    ("make_stdout", "redirect"),
    [(lambda: os.open(os.devnull, os.O_WRONLY), ">&-"), (closed, ""), (lambda: os.open("/dev/full", os.O_WRONLY), "")],
    ids=["closed", "a pipe that nobody reads", "a full disk"],
)
def test_it_serves_without_standard_output(tmp_path: Path, make_stdout: Callable[[], int], redirect: str) -> None:
    port, stdout = free_port(), make_stdout()
    words = command_line("serve", "--simulate", "1", "--dir", str(tmp_path), "--port", str(port))
    process = subprocess.Popen(["sh", "-c", f'exec "$@" {redirect}', "sh", *words], stdout=stdout,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    os.close(stdout)
    agent = Served(process, f"http://127.0.0.1:{port}", tmp_path)
    try:
        wait_for(lambda: answers(agent))
        time.sleep(0.3)  # for the words at the start, which nobody sees
        assert agent.snapshot()["gpus"]
        ends_in_time(process, signal.SIGTERM)
        assert complaints(process) == []
    finally:
        process.kill()
        process.communicate()


def answers(agent: Served) -> bool:
    try:
        return bool(agent.snapshot()["gpus"])
    except OSError:
        return False


def test_other_names_and_ipv6(tmp_path: Path) -> None:
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6")
    with serving(tmp_path, "--host", "::1", env={"TRAINVITALS_ALLOWED_HOSTS": "gpu1.example"}) as agent:
        assert agent.address.startswith("http://[::1]:")
        assert "<title>TrainVitals</title>" in agent.get("/")
        assert "<title>TrainVitals</title>" in agent.get("/", {"Host": "GPU1.example:80"})
        with pytest.raises(OSError, match="421"):
            agent.get("/", {"Host": "gpu2.example"})


def test_logs_as_json(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    flags = ("--simulate", "3", "--scenario", "lost", "--log-format", "json")
    words = command_line("serve", "--port", "0", "--dir", str(tmp_path / "file" / "journal"), *flags)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stderr
    told = [json.loads(process.stderr.readline()) for _ in range(2)]
    assert {line["level"] for line in told} == {"warning"}
    said = [json.loads(process.stdout.readline())]
    process.terminate()
    said += [json.loads(line) for line in process.stdout]
    assert process.wait(timeout=10) == 0
    process.stdout.close()
    process.stderr.close()
    assert said[0]["message"].startswith("TrainVitals ")
    assert any(line["message"].startswith("page http://127.0.0.1:") for line in said)
    assert said[-1]["message"] == "Ended."
    assert len({line["correlation_id"] for line in [*told, *said]}) == 1
    assert all(line["timestamp"] and line["message"] for line in [*told, *said])


def test_a_long_question_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A day read from a journal of this size takes several times as long as an end may."""
    folder = gpu_folder(tmp_path, host_name())
    folder.mkdir(parents=True)
    line = json.dumps({"timestamp": "2020-01-01T00:00:00.000Z", "gpu_index": 0, "clock_hertz_sm": 1.0}) + "\n"
    for name in range(2):
        (folder / f"gpu_metrics_20200101_00000{name}.jsonl").write_text(line * 700_000)
    with serving(tmp_path) as agent, agent.connect() as connection:
        path = "/api/v1/node?gpu=0&fields=clock_hertz_sm&from=1577836800&to=1577923200"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        time.sleep(0.3)
        ends_in_time(agent.process, signal.SIGTERM)
        connection.settimeout(10)
        assert b"gpus" not in connection.recv(65536)
