"""What the training ends with when nothing monitors it."""

from pathlib import Path

import pytest

from tests.run.support import Outcome, Training

pytest.importorskip("torch", reason="torch is not installed: make trainers")


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = Training(tmp_path_factory.mktemp("alone"), "--without").outcome()
    assert outcome.code == 0, outcome.said
    return outcome


@pytest.fixture
def folders(tmp_path: Path) -> "Folders":
    return Folders(tmp_path)


class Folders:
    """One for each attempt."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __getitem__(self, number: int) -> Path:
        folder = self._root / f"attempt{number}"
        folder.mkdir(exist_ok=True)
        return folder
