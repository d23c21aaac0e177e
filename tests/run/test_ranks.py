"""Which rank a process is, by what its launcher says."""

from pathlib import Path

import pytest

from tests.run.support import python
from trainvitals.run.ranks import Place, find

TORCHRUN = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "GROUP_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
SRUN = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "9", "SLURM_LOCALID": "1", "SLURM_NTASKS": "16", "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": "16"}  # fmt: skip
BATCH = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "16", "SLURM_NPROCS": "16"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}
PMI = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0"}
# A launcher -> its variables, and the place that they mean: rank, local rank, world size.
LAUNCHERS: dict[str, tuple[dict[str, str], tuple[int, int, int]]] = {
    "none": ({}, (0, 0, 1)),
    "torchrun": (TORCHRUN, (5, 1, 8)),
    "torchrun within srun": (SRUN | {"SLURM_PROCID": "1"} | TORCHRUN, (5, 1, 8)),
    "srun": (SRUN, (9, 1, 16)),
    "srun of one node": ({key: SRUN[key] for key in SRUN if "STEP" not in key}, (9, 1, 16)),
    "a batch script": (BATCH, (0, 0, 1)),
    "a shell within an allocation": (SRUN | {"SLURM_JOB_NAME": "bash", "SLURM_PROCID": "0"}, (0, 0, 1)),
    "Open MPI": (OPEN_MPI, (3, 1, 4)),
    "Open MPI within a batch script": (BATCH | OPEN_MPI, (3, 1, 4)),
    "MPICH": (PMI, (2, 0, 4)),
    "Lightning's own": ({"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2"}, (1, 1, 2)),
    "Lightning on two nodes": (
        {"LOCAL_RANK": "1", "NODE_RANK": "2", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "2"}, (5, 1, 8)),
    "half of torchrun": ({"RANK": "1"}, (1, 0, 2)),
    "no numbers": ({"RANK": "first", "WORLD_SIZE": ""}, (0, 0, 1)),
    "a rank outside of the world": ({"RANK": "4", "WORLD_SIZE": "4", **OPEN_MPI}, (3, 1, 4)),
}  # fmt: skip


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launchers_variables_say_which_rank_this_is(launcher: str) -> None:
    variables, place = LAUNCHERS[launcher]
    assert find(variables) == Place(*place)


def test_what_is_told_goes_before_what_is_found(tmp_path: Path) -> None:
    script = """
import trainvitals as tv
run = tv.start("x", rank=2, world_size=4, local_rank=1)
print(run.rank, run.world_size, run.local_rank, sorted(path.name for path in run.folder.iterdir()))
"""
    said = python(script, journal=tmp_path, **TORCHRUN).stdout
    assert said.startswith("2 4 1 ['agent', 'process.rank2.json']")


def test_a_process_group_that_runs_knows_best(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: make trainers")
    script = f"""
import os, torch.distributed as dist
import trainvitals as tv
os.environ |= {TORCHRUN!r}
dist.init_process_group("gloo", init_method="file://{tmp_path}/group", rank=0, world_size=1)
run = tv.start("x")
print(run.rank, run.world_size, run.local_rank)
"""
    assert python(script, journal=tmp_path).stdout == "0 1 1\n"


def test_only_the_first_rank_speaks_where_that_is_asked(tmp_path: Path) -> None:
    script = """
import trainvitals as tv
run = tv.start("x", rank_zero_only=True)
with run.step():
    run.log(loss=1)
print(bool(run), run.status, run.number)
"""
    assert python(script, journal=tmp_path, RANK="1", WORLD_SIZE="2").stdout == "False off 0\n"
    assert not (tmp_path / "runs").exists()
    assert python(script, journal=tmp_path, RANK="0", WORLD_SIZE="2").stdout == "True running 1\n"


def test_finding_the_rank_imports_nothing(tmp_path: Path) -> None:
    done = python("import sys, trainvitals as tv; tv.start('x'); print({'torch', 'ray', 'numpy'} & set(sys.modules))",
                  journal=tmp_path)  # fmt: skip
    assert done.stdout == "set()\n"
