import os

import pytest

from tests.collector.support import serving

os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture
def journal(tmp_path, monkeypatch):
    root = tmp_path / "journal"
    monkeypatch.setenv("TRAINVITALS_DIR", str(root))
    for name in ("TRAINVITALS", "TRAINVITALS_RUN_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    return root


@pytest.fixture
def agent(journal):
    """A real one, with two simulated GPUs."""
    with serving(journal, "--simulate", "2", "--interval", "0.2") as served:
        yield served
