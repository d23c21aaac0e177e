"""pynvml in this process on the stand-in for NVML, a scenario for each test."""

from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from tests.fakenvml import Scenario, build, preload
from trainvitals.sources.nvml import NvmlSource


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = build(tmp_path_factory.mktemp("nvml"))
    preload(library)
    return library


@pytest.fixture
def scenario(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scenario]:
    """Starts from a library that nobody has started, whatever the last test left behind."""
    made = Scenario(tmp_path / "scenario", "gpus 2")
    monkeypatch.setenv("FAKENVML_SCENARIO", str(made.path))
    yield made
    while True:
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            break


@pytest.fixture
def source(scenario: Scenario) -> NvmlSource:
    return NvmlSource()
