"""Where the journal lies: the same answer for trainer and agent, and an error that names the fix."""

import os
from pathlib import Path

import pytest

from trainvitals.errors import SettingError
from trainvitals.journal import layout

NOWHERE = Path("/nowhere/at/all")


def test_the_setting_comes_first(tmp_path: Path) -> None:
    assert layout.find_root({"TRAINVITALS_DIR": "/data/journal"}, shared=tmp_path) == Path("/data/journal")
    with pytest.raises(SettingError, match="TRAINVITALS_DIR: 'here' cannot be used: give an absolute path"):
        layout.find_root({"TRAINVITALS_DIR": "here"}, shared=tmp_path)


def test_the_shared_folder_comes_next_where_it_can_be_written(tmp_path: Path) -> None:
    assert layout.find_root({"XDG_STATE_HOME": "/state"}, shared=tmp_path) == tmp_path
    assert layout.find_root({"XDG_STATE_HOME": "/state"}, shared=NOWHERE) == Path("/state/trainvitals")


def test_the_home_folder_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    for environ in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        assert layout.find_root(environ, shared=NOWHERE) == Path("/home/me/.local/state/trainvitals")
    assert layout.find_root({"TRAINVITALS_DIR": "~/journal"}, shared=NOWHERE) == Path("/home/me/journal")


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number nobody has a name for."""
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(SettingError, match=r"TRAINVITALS_DIR: .* give an absolute path"):
        layout.find_root({}, shared=NOWHERE)


@pytest.mark.parametrize(
    ("name", "rank"),
    [("training_metrics_20250730_123456.jsonl", 0), ("training_metrics_20250730_123456.rank12.jsonl", 12),
     ("training_metrics_20250730_123456.jsonl.bak", None), ("training_metrics_x.jsonl", None),
     ("events.rank0.jsonl", None)],
)  # fmt: skip
def test_a_training_file_tells_its_rank(name: str, rank: int | None) -> None:
    assert layout.training_rank(name) == rank
    assert layout.training_rank(layout.stamped("training_metrics", layout.training_suffix(3, 8), 0)) == 3


def test_this_host_has_a_bare_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-7.cluster.example")
    monkeypatch.delenv("TRAINVITALS_HOSTNAME", raising=False)
    assert layout.host_name() == "gpu-7"
    monkeypatch.setenv("TRAINVITALS_HOSTNAME", "../evil")
    assert "/" not in layout.host_name()
    assert not layout.host_name().startswith(".")


@pytest.mark.parametrize("rank", ["00", "01", "1234567", "\u0661", "", "-1"])
def test_a_rank_has_one_spelling(rank: str) -> None:
    assert layout.PROCESS_FILE.match(f"process.rank{rank}.json") is None
    assert layout.EVENTS_FILE.match(f"events.rank{rank}.jsonl") is None
    assert layout.training_rank(f"training_metrics_20250730_123456.rank{rank}.jsonl") is None


@pytest.mark.parametrize("rank", [0, 7, 10, 999_999])
def test_every_rank_that_is_written_is_found(rank: int) -> None:
    process, events = (
        layout.PROCESS_FILE.match(f"process.rank{rank}.json"),
        layout.EVENTS_FILE.match(f"events.rank{rank}.jsonl"),
    )
    assert process is not None and int(process[1]) == rank
    assert events is not None and int(events[1]) == rank
    assert layout.training_rank(f"training_metrics_20250730_123456{layout.training_suffix(rank, 2)}") == rank


def test_a_time_is_in_ascii_digits() -> None:
    assert layout.NODE_FILE.match("gpu_metrics_2025073\u0660_123456.jsonl") is None


def test_a_link_in_place_of_a_shared_folder_opens_nobodys_folder_to_all(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal").chmod(0o1777)
    (tmp_path / "journal" / "runs").symlink_to(tmp_path / "private")
    layout.make_shared(tmp_path / "journal" / "runs")
    layout.make_shared(tmp_path / "journal" / "gpu")
    assert (tmp_path / "private").stat().st_mode & 0o7777 == 0o700
    assert (tmp_path / "journal" / "gpu").stat().st_mode & 0o7777 == 0o1777


def test_an_index_is_no_report_of_an_agent(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    (folder / "sinks").mkdir(parents=True)
    for name in ("gpu1.jsonl", "gpu2.jsonl", layout.index_file("gpu1", 0), layout.index_file("gpu1", 12), "gpu1.txt"):
        (folder / name).touch()
    assert [path.name for path in layout.reports(tmp_path)] == ["gpu1.jsonl", "gpu2.jsonl"]
    assert layout.reports(tmp_path / "none") == []
