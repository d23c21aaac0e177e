import os

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
# Threads that wait for each other on a busy machine take longer than these models' steps.
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """An empty journal, and no run that another test left."""
    root = tmp_path / "journal"
    monkeypatch.setenv("TRAINVITALS_DIR", str(root))
    for name in ("TRAINVITALS", "TRAINVITALS_RUN_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    return root


@pytest.fixture
def no_journal(tmp_path, monkeypatch):
    """A journal that cannot be written: its folder is a file."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRAINVITALS_DIR", str(tmp_path / "file" / "journal"))
