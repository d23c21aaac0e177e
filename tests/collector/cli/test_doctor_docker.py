"""What `trainvitals doctor` says of the Docker Engine: one that answers as it is told to, and this machine's own."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from trainvitals import config, docker_engine, doctor

pytest.importorskip("docker", reason="the docker package is not installed")
CDI = {"DiscoveredDevices": [{"Source": "cdi", "ID": f"nvidia.com/gpu={name}"} for name in ("0", "all")]}
NEW = {"ServerVersion": "28.5.2"}


@contextmanager
def engine(folder: Path, info: dict[str, Any]) -> Iterator[str]:
    """Answers what the package asks, on a socket of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = info if self.path.endswith("/info") else {"ApiVersion": "1.51", "Version": "28.5.2"}
            body = json.dumps(told).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self) -> str:
            return "local"

        def log_message(self, *_: object) -> None:
            pass

    path = folder / "docker.sock"
    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"unix://{path}"
        server.shutdown()


@pytest.mark.parametrize(("info", "mark", "words"), [
    (NEW | CDI, "ok", "by CDI"),
    (NEW | {"Runtimes": {"runc": {}, "nvidia": {}}}, "ok", "NVIDIA runtime"),
    (NEW | {"Runtimes": {"runc": {}}}, "problem", "nvidia-ctk runtime configure"),
    (NEW | {"DiscoveredDevices": CDI["DiscoveredDevices"][:1], "Runtimes": None}, "problem", "nvidia-ctk cdi generate"),
])  # fmt: skip
def test_it_says_how_containers_get_gpus(
    info: dict[str, Any], mark: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(tmp_path, info) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        first, gpus = docker_engine.findings(has_gpus=True)
        assert first == ("ok", "engine 28.5.2 answers")
        assert gpus[0] == mark
        assert words in gpus[1]
        assert docker_engine.findings(has_gpus=False) == [first]


def test_an_old_engine_is_noted() -> None:
    ((mark, text),) = docker_engine.judge({"ServerVersion": "20.10.5"}, False)
    assert mark == "note"
    assert "28" in text
    assert list(docker_engine.judge({"ServerVersion": "29.0.0"}, False)) == [("ok", "engine 29.0.0 answers")]


def test_no_engine_is_no_problem_of_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    ((mark, text),) = docker_engine.findings(has_gpus=True)
    assert mark == "note"
    assert "make up" in text


def test_a_user_who_may_not_ask_is_told_how_to() -> None:
    assert "usermod" in docker_engine._silent("('Connection aborted.', PermissionError(13, 'Permission denied'))")[1]


def test_it_is_part_of_what_the_doctor_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine(tmp_path, NEW) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        found = doctor.checks(config.load({"dir": str(tmp_path), "port": "0"}, {}))
    assert doctor.Check("ok", "Docker", "engine 28.5.2 answers") in found
