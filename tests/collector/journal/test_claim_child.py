"""Ranks of which one starts the others, as Lightning does."""

import os
from pathlib import Path

from trainvitals.journal.runs import claim

WHERE = {"world_size": 2, "environ": {}}


def of_a_child(root: Path, rank: int) -> str:
    """The run that a child of this process claims as that rank."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, claim(root, "train", rank=rank, **WHERE).run.encode())  # type: ignore[arg-type]
        os._exit(0)
    os.wait()
    os.close(writer)
    with os.fdopen(reader) as said:
        return said.read()


def test_a_rank_that_another_started_shares_its_folder(tmp_path: Path) -> None:
    assert claim(tmp_path, "train", rank=0, **WHERE).run == "train"  # type: ignore[arg-type]
    assert of_a_child(tmp_path, 1) == "train"


def test_a_child_that_is_the_same_rank_is_another_run(tmp_path: Path) -> None:
    first = claim(tmp_path, "train", rank=0, **WHERE)  # type: ignore[arg-type]
    assert first.run == "train"
    assert of_a_child(tmp_path, 0) == "train-2"


def test_the_rank_that_started_the_others_joins_one_that_was_faster(tmp_path: Path) -> None:
    said, gate = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gate[1])
        os.write(said[1], claim(tmp_path, "train", rank=1, **WHERE).run.encode())  # type: ignore[arg-type]
        os.read(gate[0], 1)
        os._exit(0)
    assert os.read(said[0], 100) == b"train"
    first = claim(tmp_path, "train", rank=0, **WHERE)  # type: ignore[arg-type]
    os.close(gate[1])
    os.waitpid(child, 0)
    assert first.run == "train"
