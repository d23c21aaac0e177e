"""Which folder a run gets: names, launchers, the ranks of one launch, runs that go on, names that mean harm."""

import json
import os
import tempfile
from pathlib import Path

import pytest

from tests.collector.journal.helpers import end, line_of, open_descriptors, python
from trainvitals.errors import JournalError
from trainvitals.journal import claiming, layout, runs
from trainvitals.journal.runs import Rank, claim

NOBODY = 65534
HOLDER = """
import sys, time
from pathlib import Path
from trainvitals.journal.runs import claim
rank = claim(Path(sys.argv[1]), sys.argv[2], environ={})
print(rank.run, flush=True)
time.sleep(600)
"""
# Ranks as a launcher starts them: children of one process, all at once, that live until all have claimed.
LAUNCH = """
import os, sys, time
from pathlib import Path
from trainvitals.journal.runs import claim
root, name, ranks, gate = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
children = []
for rank in range(ranks):
    child = os.fork()
    if child:
        children.append(child)
        continue
    while not gate.exists():
        pass
    held = claim(root, name, rank=rank, world_size=ranks, environ={})
    os.write(1, f"{held.run}\\n".encode())
    sys.stdin.read()
    os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""


def take(root: Path, name: str = "train", environ: dict[str, str] | None = None, **more: object) -> Rank:
    return claim(root, name, environ=environ or {}, **more)  # type: ignore[arg-type]


def test_a_run_has_its_name_the_next_ones_a_number(tmp_path: Path) -> None:
    ranks = [take(tmp_path) for _ in range(3)]
    assert [rank.run for rank in ranks] == ["train", "train-2", "train-3"]
    for rank in ranks:
        rank.release()
    assert take(tmp_path).run == "train-4"


def test_the_process_file_says_who_and_where(tmp_path: Path) -> None:
    rank = take(tmp_path, rank=3, world_size=8, facts={"gpus": [{"gpu": "0", "uuid": "GPU-a"}], "odd": float("nan")})
    said = runs.read_process(rank.folder / "process.rank3.json")
    assert said is not None
    assert (said["rank"], said["world_size"], said["pid"]) == (3, 8, os.getpid())
    assert (said["host"], said["boot_id"]) == (layout.host_name(), layout.boot_id())
    assert said["gpus"] == [{"gpu": "0", "uuid": "GPU-a"}]
    assert said["launcher"].startswith(f"{layout.boot_id()}:{os.getppid()}:")
    rank.release()
    assert json.loads((rank.folder / "process.rank3.json").read_text())["rank"] == 3


@pytest.mark.parametrize(
    ("environ", "run"),
    [({"TRAINVITALS_RUN_ID": "mine"}, "mine"), ({"SLURM_JOB_ID": "4711"}, "train-4711"),
     ({"TORCHELASTIC_RUN_ID": "abc"}, "train-abc"), ({"TORCHELASTIC_RUN_ID": "none"}, "train"),
     ({"TORCHELASTIC_RUN_ID": "c4814684-0118-4c7e-9a53-0123456789ab"}, "train-c4814684"),
     ({"RAY_JOB_ID": "01000000"}, "train-01000000"), ({"SLURM_JOB_ID": "", "RAY_JOB_ID": "7"}, "train-7"),
     ({"TRAINVITALS_RUN_ID": "mine", "SLURM_JOB_ID": "4711"}, "mine"),
     ({"SLURM_JOB_ID": "4711", "TORCHELASTIC_RUN_ID": "none"}, "train-4711"), ({"TRAINVITALS_RUN_ID": ""}, "train")],
)  # fmt: skip
def test_the_launcher_names_the_run_on_all_nodes(tmp_path: Path, environ: dict[str, str], run: str) -> None:
    assert take(tmp_path, environ=environ).run == run


def test_a_run_id_of_ones_own_comes_first(tmp_path: Path) -> None:
    assert take(tmp_path, environ={"TRAINVITALS_RUN_ID": "other"}, run_id="own").run == "own"


@pytest.mark.parametrize("resume", [True, False])
def test_a_run_that_ended_goes_on_in_place(tmp_path: Path, resume: bool) -> None:
    """By its name with `resume`, by its id always."""
    how = {"resume": True} if resume else {"run_id": "train"}
    rank = take(tmp_path, **how)
    (rank.folder / "kept").touch()
    rank.release()
    again = take(tmp_path, **how)
    assert (again.run, (again.folder / "kept").exists()) == ("train", True)


@pytest.mark.parametrize("how", [{"resume": True}, {"run_id": "train"}], ids=["resume", "run_id"])
def test_a_run_that_is_live_elsewhere_cannot_go_on_here(tmp_path: Path, how: dict[str, object]) -> None:
    holder = python(HOLDER, tmp_path, "train")
    try:
        assert line_of(holder) == "train"
        before = open_descriptors()
        with pytest.raises(JournalError, match=r"'train' is running already: choose another run_id, or end it"):
            take(tmp_path, **how)
        assert open_descriptors() == before
        assert runs.is_alive(tmp_path / "runs" / "train" / "process.rank0.json")
    finally:
        end(holder)
    assert take(tmp_path, **how).run == "train"


def test_a_run_that_is_live_in_this_process_stays_so(tmp_path: Path) -> None:
    """POSIX drops a lock when its process closes any descriptor of the file."""
    rank = take(tmp_path)
    before = open_descriptors()
    with pytest.raises(JournalError, match="running already"):
        take(tmp_path, resume=True)
    assert open_descriptors() == before
    assert seen_from_outside(rank.folder / "process.rank0.json")


def seen_from_outside(process_file: Path) -> bool:
    script = "import sys; from pathlib import Path; from trainvitals.journal import runs\n"
    asked = python(script + "print(runs.is_alive(Path(sys.argv[1])))", process_file)
    try:
        return {"True": True, "False": False}[line_of(asked)]
    finally:
        end(asked)


@pytest.mark.parametrize("again", range(5))
def test_the_ranks_of_one_launch_share_a_folder_and_two_launches_do_not(tmp_path: Path, again: int) -> None:
    gate = tmp_path / "gate"
    launches = [python(LAUNCH, tmp_path, "train", 6, gate) for _ in range(2)]
    try:
        gate.touch()
        claimed = [{line_of(launch) for _ in range(6)} for launch in launches]
    finally:
        for launch in launches:
            launch.communicate(timeout=10)
    assert sorted(map(len, claimed)) == [1, 1], claimed
    assert claimed[0] | claimed[1] == {"train", "train-2"}
    for run in ("train", "train-2"):
        assert len(runs.process_files(tmp_path / "runs" / run)) == 6


def test_a_launch_after_a_crashed_one_gets_its_own_folder(tmp_path: Path) -> None:
    """Even from the same launcher: who died is no rank of this launch."""
    rank = take(tmp_path, rank=0, world_size=2)
    rank.release()
    assert take(tmp_path, rank=1, world_size=2).run == "train-2"


def test_local_ranks_of_this_process_share_a_folder(tmp_path: Path) -> None:
    first, second = take(tmp_path, rank=0, world_size=2), take(tmp_path, rank=1, world_size=2)
    assert first.run == second.run == "train"
    assert take(tmp_path, rank=1, world_size=2).run == "train-2"


@pytest.mark.parametrize(
    "name",
    ["../x", "a/b", "/etc/passwd", "..", ".", "", "   ", ".hidden", "..\\x", "a\0b", "x" * 5000, "é" * 5000,
     "\U0001f600" * 100, "<script>alert(1)</script>", "line\nbreak", "\ud800", "-rf", "~", "a" * 119 + "é"],
    ids=lambda name: repr(name[:10]).encode("ascii", "backslashreplace").decode() + str(len(name)),
)  # fmt: skip
@pytest.mark.parametrize("by", ["name", "run_id"])
def test_no_name_leaves_the_journal(tmp_path: Path, name: str, by: str) -> None:
    root = tmp_path / "journal"
    rank = take(root, name) if by == "name" else take(root, "train", run_id=name)
    assert rank.folder.parent == root / "runs"
    assert rank.folder.resolve().parent == (root / "runs").resolve()
    assert not rank.run.startswith(".")
    assert rank.run.isprintable()
    assert len(os.fsencode(rank.run)) <= 130
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]
    assert runs.is_alive(rank.folder / "process.rank0.json")


def test_long_names_still_get_numbers(tmp_path: Path) -> None:
    names = {take(tmp_path, "x" * 5000).run for _ in range(3)}
    assert len(names) == 3


@pytest.mark.parametrize("name", ["x" * 115, "a-very-long-experiment-name-" * 5, "é" * 5000, "", "\U0001f600" * 100],
                         ids=["x", "words", "wide", "none", "wider"])  # fmt: skip
@pytest.mark.parametrize("job", ["1001", "j" * 79, "j" * 500, "é" * 300], ids=["short", "whole", "long", "wide"])
def test_two_jobs_of_one_long_name_have_a_folder_each(tmp_path: Path, name: str, job: str) -> None:
    taken = []
    for number in ("1", "2", "2"):
        rank = take(tmp_path, name, environ={"SLURM_JOB_ID": job + number})
        taken.append(rank.run)
        assert len(os.fsencode(rank.run)) <= 120
        rank.release()
    assert len(set(taken)) == 2
    assert taken[1] == taken[2]
    assert len(job) > 20 or [run[-6:] for run in taken[:2]] == ["-10011", "-10012"]


def test_a_journal_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    before = open_descriptors()
    with pytest.raises(JournalError, match=r"cannot be written \(Not a directory\): choose .* TRAINVITALS_DIR"):
        take(tmp_path / "file")
    (tmp_path / "runs" / "train" / "process.rank0.json").mkdir(parents=True)
    with pytest.raises(JournalError, match="cannot be written"):
        take(tmp_path, run_id="train")
    assert open_descriptors() == before


def test_one_who_hangs_while_he_claims_keeps_nobody_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "SHARED_SECONDS", 0.1)
    monkeypatch.setattr(claiming, "OWN_SECONDS", 0.1)
    (tmp_path / "runs").mkdir()
    with claiming.claiming(tmp_path):
        assert take(tmp_path).run == "train"


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root")
def test_two_users_share_a_journal_that_all_may_write_to() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o1777)
        assert take(root).run == "train"
        # What is imported later may lie where only root may read.
        other = python(
            f"import encodings.ascii, os, trainvitals.journal.runs; os.setuid({NOBODY})" + HOLDER, root, "train"
        )
        try:
            assert line_of(other) == "train-2"
            assert (root / "runs" / "train-2").stat().st_uid == NOBODY
            assert runs.is_alive(root / "runs" / "train-2" / "process.rank0.json")
        finally:
            end(other)
