"""Run folders that another user made first, in a journal that all may write to."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.journal.helpers import open_descriptors
from trainvitals.errors import JournalError
from trainvitals.journal import runs, small_files
from trainvitals.journal.run_files import RunFiles

NOBODY = 65534
JOB = {"SLURM_JOB_ID": "77"}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder to another user needs root")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in (tmp_path, tmp_path / "runs"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)
    return tmp_path


def planted(root: Path, name: str) -> Path:
    folder = root / "runs" / name
    folder.mkdir()
    folder.chmod(0o777)
    os.chown(folder, NOBODY, NOBODY)
    return folder


@as_root
@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(("environ", "run"), [(JOB, "train-77"), ({}, "train")], ids=["launcher", "number"])
def test_a_folder_of_another_user_is_passed_over(root: Path, environ: dict[str, str], run: str, resume: bool) -> None:
    folder = planted(root, run)
    rank = runs.claim(root, "train", environ=environ, resume=resume)
    assert rank.run == f"{run}-2"
    assert os.listdir(folder) == []


@as_root
def test_a_folder_of_another_user_is_refused_by_its_id_and_says_what_to_do(root: Path) -> None:
    folder = planted(root, "mine")
    before = open_descriptors()
    what = rf"{re.escape(str(folder))} belongs to another user \(uid {NOBODY}; .* uid 0\).*: choose another run_id, or"
    with pytest.raises(JournalError, match=what):
        runs.claim(root, "train", run_id="mine", environ={})
    assert (os.listdir(folder), open_descriptors()) == ([], before)


@as_root
def test_where_all_files_have_one_owner_a_folder_of_his_is_ours(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network disk that takes root for nobody."""
    planted(root, "mine")
    monkeypatch.setattr(small_files, "_owner_of_ours", lambda folder: NOBODY)
    assert runs.claim(root, "train", run_id="mine", environ={}).run == "mine"


def test_whose_our_files_are_is_found_out_without_a_trace(root: Path) -> None:
    folder = os.open(root, os.O_PATH)
    assert small_files._owner_of_ours(folder) == os.geteuid()
    os.close(folder)
    assert os.listdir(root) == ["runs"]


@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_link_in_place_of_a_runs_folder_is_not_followed(root: Path, target: str) -> None:
    (root / "victim").mkdir()
    (root / "runs" / "train-77").symlink_to(root / target)
    assert runs.claim(root, "train", environ=JOB).run == "train-77-2"
    with pytest.raises(JournalError, match="choose another run_id"):
        runs.claim(root, "train", run_id="train-77", environ={})
    assert os.listdir(root / "victim") == []


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "precious"
    path.write_text("precious")
    yield path
    assert path.read_text() == "precious"


def test_run_json_is_written_through_no_link(root: Path, victim: Path) -> None:
    rank = runs.claim(root, "train", environ={})
    for name in (".run.json", f".run.json.{os.getpid()}", "run.json"):
        (rank.folder / name).symlink_to(victim)
    RunFiles(rank, "train").end("finished")
    assert not (rank.folder / "run.json").is_symlink()


def test_run_json_is_not_written_into_a_folder_that_became_a_link(root: Path, tmp_path: Path) -> None:
    rank = runs.claim(root, "train", environ={})
    shutil.move(rank.folder, tmp_path / "elsewhere")
    rank.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="Not a directory"):
        runs.write_run(rank.folder, {"n": 1})
    assert not (tmp_path / "elsewhere" / "run.json").exists()
