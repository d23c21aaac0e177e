"""The place a target keeps in a run's folder, which belongs to another user: nothing he puts there is followed."""

import os
from pathlib import Path

import orjson
import pytest

from tests.sinks.support import ended_run, needed, sync
from trainvitals.sinks import SinkError, parse
from trainvitals.sinks.state import StateFile, peek, state_path

NOBODY = 65534
TARGET = parse("tensorboard=/tb")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving a file to another user needs root")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a run in a journal that all may write to."""
    (tmp_path / "runs" / "evil" / "agent").mkdir(parents=True)
    for folder in (tmp_path / "runs", tmp_path / "runs" / "evil" / "agent"):
        folder.chmod(0o1777)
    return state_path(tmp_path / "runs" / "evil", "node", TARGET)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    (folder / "file").write_text("precious")
    return folder


def unharmed(private: Path) -> bool:
    is_as_made = private.stat().st_mode & 0o7777 == 0o700 and os.listdir(private) == ["file"]
    return is_as_made and (private / "file").read_text() == "precious"


def saved(path: Path, rows: int = 1) -> None:
    file = StateFile(path, TARGET, 1.0)
    try:
        file.state.rows = rows
        file.save()
    finally:
        file.close()


def test_what_was_saved_is_there_the_next_time_and_whoever_comes_later_may_keep_his_there_too(path: Path) -> None:
    assert peek(path) is None
    saved(path, rows=7)
    state = peek(path)
    assert state is not None and state.rows == 7
    file = StateFile(path, TARGET, 2.0)
    file.close()
    assert (file.state.rows, file.state.id) == (7, state.id)
    assert path.parent.stat().st_mode & 0o7777 == 0o1777
    assert path.parent.parent.stat().st_mode & 0o7777 == 0o1777


def test_in_a_journal_of_one_user_nobody_else_may_write(tmp_path: Path) -> None:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    path = state_path(tmp_path / "runs" / "mine", "node", TARGET)
    saved(path)
    assert not any(folder.stat().st_mode & 0o022 for folder in (path.parent, path.parent.parent))


@pytest.mark.parametrize("level", [0, 1, 2], ids=["sinks", "agent", "run"])
def test_a_link_in_a_folders_place_is_refused_in_words(path: Path, private: Path, level: int) -> None:
    place = path.parents[level]
    if place.exists():
        place.rename(place.with_name("aside"))
    place.symlink_to(private)
    with pytest.raises(SinkError, match=rf"{place.name} is a link, or no folder\): tensorboard=/tb keeps its place"):
        StateFile(path, TARGET, 1.0)
    assert peek(path) is None and unharmed(private)


@pytest.mark.parametrize("name", ["{}", ".{}.lock", ".{}.new"], ids=["state", "lock", "draft"])
def test_a_link_in_a_files_place_is_not_followed(path: Path, private: Path, name: str) -> None:
    saved(path)
    planted = path.with_name(name.format(path.name))
    planted.unlink(missing_ok=True)
    planted.symlink_to(private / "file")
    if name == ".{}.new":
        saved(path)
    else:
        with pytest.raises(SinkError, match="cannot be written"):
            saved(path)
    assert unharmed(private)


@pytest.mark.parametrize("name", ["{}", ".{}.lock"], ids=["state", "lock"])
def test_a_pipe_in_a_files_place_keeps_nobody_waiting(path: Path, name: str) -> None:
    saved(path)
    planted = path.with_name(name.format(path.name))
    planted.unlink()
    os.mkfifo(planted)
    with pytest.raises(SinkError, match="is not a regular file"):
        StateFile(path, TARGET, 1.0)
    if planted == path:
        assert peek(path) is None


@as_root
@pytest.mark.parametrize("name", ["{}", ".{}.lock"], ids=["state", "lock"])
def test_what_another_user_says_of_the_place_is_not_believed(path: Path, name: str) -> None:
    saved(path)
    file = path.with_name(name.format(path.name))
    os.chown(file, NOBODY, NOBODY)
    # Where fs.protected_regular is set, as it is on most machines, the kernel refuses first.
    words = rf"belongs to another user \(uid {NOBODY}\) and is not followed: remove it|cannot be written \(Permission"
    with pytest.raises(SinkError, match=words):
        StateFile(path, TARGET, 1.0)


def test_a_folder_that_was_put_in_place_of_a_new_one_is_opened_to_nobody(path: Path) -> None:
    path.parent.mkdir()
    (path.parent / "file").touch()
    saved(path)
    assert path.parent.stat().st_mode & 0o022 == 0


def test_a_run_that_was_tidied_up_does_not_come_back(path: Path) -> None:
    run = path.parents[2]
    run.rename(run.with_name("other"))
    with pytest.raises(SinkError, match="No such file"):
        StateFile(path, TARGET, 1.0)
    assert not run.exists()


@as_root
def test_root_hands_a_run_on_and_writes_to_no_file_that_its_user_names(tmp_path: Path, private: Path) -> None:
    needed("tensorboard")
    trainer = ended_run(tmp_path)
    target = f"tensorboard={tmp_path}/tb"
    assert sync(tmp_path, "gemma", target).returncode == 0
    (state,) = trainer.folder.glob("agent/sinks/*.json")
    told = orjson.loads(state.read_bytes()) | {"over": [], "kept": {"file": str(private / "file"), "bytes": 0}}
    state.write_bytes(orjson.dumps(told))
    os.chown(state, NOBODY, NOBODY)
    done = sync(tmp_path, "gemma", target)
    assert done.returncode == 1 and "belongs to another user" in done.stderr
    assert unharmed(private)
