"""A real DDP run: steps are equally long on both ranks, and the one that sleeps before them is named anyway."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.detect.support import parsed
from trainvitals.cli import main

SCRIPT = Path(__file__).with_name("sleeping_rank.py")
STEPS, SECONDS = 40, 240


@pytest.mark.parametrize("where", ["forward", "loader"])
def test_the_rank_that_sleeps_is_named(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed: make trainers")
    started = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(tmp_path), str(STEPS), where],
            env={**os.environ, "TRAINVITALS_DIR": str(tmp_path / "journal"), "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    try:
        for each in started:
            each.wait(SECONDS)
    finally:
        for each in started:
            each.kill()
    # Whoever is last to leave gloo may be left by the other amid that: what counts is what both wrote.
    files = sorted((tmp_path / "journal").glob("runs/ddp/training_metrics_*.rank*.jsonl"))
    assert [len(file.read_text().splitlines()) for file in files] == [STEPS, STEPS]
    assert main(["replay", "--json", str(tmp_path / "journal")]) == 0
    named = {(one["kind"], one["rank"]) for one in parsed(capsys.readouterr().out)}
    assert named == {("TrainingStraggler", 1)}
