"""The stand-in for NVML, compiled once."""

from pathlib import Path

import pytest

from tests.fakenvml import build


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenarios go into folders of their own; the library is found here."""
    return build(tmp_path_factory.mktemp("nvml")).parent
