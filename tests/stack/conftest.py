import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compose.files import SERVICES
from tests.stack import images
from tests.stack.bases import ROOT
from tests.stack.support import Stack, running


@pytest.fixture(scope="session")
def engine() -> str:
    """The command that talks to it. `make test-stack` starts one where none answers."""
    if not os.environ.get("STACK_TESTS"):
        pytest.skip("run by make test-stack")
    told = subprocess.run([ROOT / "scripts" / "start-engine"], check=True, capture_output=True, text=True, timeout=300)
    return told.stdout.strip()


@pytest.fixture(scope="session")
def client(engine: str) -> Any:
    docker = pytest.importorskip("docker")
    return docker.from_env(timeout=300)


@pytest.fixture(scope="session")
def stack(engine: str, client: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("stack")
    assert images.made(client, "python:3.13-slim-trixie")
    with running(engine, folder) as found:
        if client.images.list(name=SERVICES["grafana"]["image"]):
            found.left_out = frozenset()
        for image in found.compose("config", "--images").split():
            if not any(name in image for name in (*found.left_out, "trainvitals/collector")):
                assert images.made(client, image), image
        found.compose("build", seconds=600)
        yield found
