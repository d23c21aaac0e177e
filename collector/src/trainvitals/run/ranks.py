"""Which of a launch's processes this one is, whoever launched it.

find()  ->  Place(rank=9, local_rank=1, world_size=16)
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Environ = Mapping[str, str]


class Place(NamedTuple):
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1


def find(environ: Environ = os.environ) -> Place:
    """What runs already knows best; then the launchers' variables, the inner one first."""
    for look in _LOOKS:
        try:
            place = look(environ)
        except Exception:  # a launcher that is half there, or none
            continue
        if place and 0 <= place.rank < place.world_size:
            return place
    return Place()


def launch(environ: Environ = os.environ) -> Environ:
    """The variables that name this launch to the journal. Ray counts its jobs anew in each cluster, and one of them may
    train many things, one after another: in its workers what is trained has the name."""
    try:
        name = _in_ray(environ)
    except Exception:  # a Ray that is half there, or another version of it
        name = ""
    return {"TRAINVITALS_RUN_ID": environ.get("TRAINVITALS_RUN_ID", ""), "RAY_JOB_ID": name} if name else environ


def _in_ray(environ: Environ) -> str:
    """The same in all workers: of a Ray Train run its id, of a trial the trial's, else the cluster's and the job's."""
    ray: Any = sys.modules.get("ray")
    if ray is None or "RAY_JOB_ID" not in environ:
        return ""
    if name := _ray_train_run() or _ray_trial():
        return name
    context = ray.get_runtime_context()
    began = str(context.get_session_name()).removeprefix("session_")[:19]
    return f"{began}-{context.get_job_id()}"


def _ray_train_run() -> str:
    inside: Any = sys.modules.get("ray.train.v2._internal.execution.context")
    try:
        # The public context has the experiment's name only, and two of one name may run at once.
        return str(inside.get_train_context().train_run_context.run_id)[:12]
    except Exception:
        return ""


def _ray_trial() -> str:
    tune: Any = sys.modules.get("ray.tune")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # outside a trial it warns and says None
            return str(tune.get_context().get_trial_id() or "")
    except Exception:
        return ""


def _process_group(environ: Environ) -> Place | None:
    group: Any = sys.modules.get("torch.distributed")
    if group is None or not group.is_available() or not group.is_initialized():
        return None
    rank = int(group.get_rank())
    return Place(rank, int(environ.get("LOCAL_RANK", rank)), int(group.get_world_size()))


def _ray_train(_: Environ) -> Place | None:
    session: Any = sys.modules.get("ray.train")
    if session is None:
        return None
    context = session.get_context()
    return Place(int(context.get_world_rank()), int(context.get_local_rank()), int(context.get_world_size()))


def _variables(rank: str, local_rank: str, world_size: str) -> Callable[[Environ], Place | None]:
    def look(environ: Environ) -> Place | None:
        number = int(environ[rank])
        return Place(number, int(environ.get(local_rank, 0)), int(environ.get(world_size, number + 1)))

    return look


def _slurm(environ: Environ) -> Place | None:
    """Within `srun`. In the batch script itself there is one process, however many tasks the job asked for."""
    rank = int(environ["SLURM_PROCID"])
    is_step = rank > 0 or "SLURM_STEP_ID" in environ or "SLURM_STEP_NUM_TASKS" in environ
    if not is_step or environ.get("SLURM_JOB_NAME") in ("bash", "interactive"):
        return None
    size = environ.get("SLURM_STEP_NUM_TASKS") or environ.get("SLURM_NTASKS") or environ["SLURM_NPROCS"]
    return Place(rank, int(environ.get("SLURM_LOCALID", 0)), int(size))


def _lightning(environ: Environ) -> Place | None:
    """Its own launcher names the node and the process on it."""
    local, size = int(environ["LOCAL_RANK"]), int(environ["WORLD_SIZE"])
    node = int(environ.get("NODE_RANK", environ.get("GROUP_RANK", 0)))
    per_node = int(environ.get("LOCAL_WORLD_SIZE", size)) if node else 0
    return Place(node * per_node + local, local, size)


_LOOKS: tuple[Callable[[Environ], Place | None], ...] = (
    _process_group,
    _ray_train,
    _variables("RANK", "LOCAL_RANK", "WORLD_SIZE"),  # torchrun, Accelerate, Ray Train, DeepSpeed
    _variables("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    _variables("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    _slurm,
    _lightning,
)
