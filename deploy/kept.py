"""What a clone keeps of its deployments: .cache/deploy/NAME.log, and a lock, so that no two commands work on one site.

with alone("aws"): …
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deploy.cloud import CLOUDS, ROOT
from deploy.errors import DeployError

KEPT = ROOT / ".cache" / "deploy"


def name_of(cloud: str, inventory: str) -> str:
    """One for one site, by whatever path it is called."""
    path = Path(inventory).expanduser().resolve()
    written = next((name for name in CLOUDS if path == inventory_of(name).resolve()), "")
    return cloud or written or os.path.relpath(path, ROOT.resolve()).replace(os.sep, "-")


def inventory_of(cloud: str) -> Path:
    return ROOT / "ansible" / "inventory" / f"{cloud}.yml"


def log_of(name: str) -> Path:
    return KEPT / f"{name}.log"


@contextmanager
def alone(name: str) -> Iterator[None]:
    KEPT.mkdir(parents=True, mode=0o700, exist_ok=True)
    with open(KEPT / f"{name}.lock", "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise DeployError(_at_work(name, file.read().strip())) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        # What runs for long keeps it, should this be ended hard.
        os.set_inheritable(file.fileno(), True)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def _at_work(name: str, process: str) -> str:
    if process.isdecimal() and not _lives(int(process)):
        return (f"a command on {name} was ended hard, what it had begun still works, and notes what it makes: wait "
                "some minutes, then run this again")  # fmt: skip
    return f"another command is at work on {name} (process {process}): wait until it has ended"


def _lives(process: int) -> bool:
    # One that was killed may stay listed until somebody asks how it ended.
    with suppress(OSError):
        if Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
            return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
