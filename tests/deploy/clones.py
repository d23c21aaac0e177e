"""What `make deploy` reads of a clone, elsewhere, with this one's Python: what it writes stays there."""

import shutil
import sys
from pathlib import Path

from tests.terraform import support

LEFT_OUT = shutil.ignore_patterns("__pycache__", ".secrets", ".backups")


def bare(folder: Path) -> Path:
    """Gives the folder of the AWS module."""
    for name in ("deploy", "ansible"):
        shutil.copytree(support.ROOT / name, folder / name, ignore=LEFT_OUT)
    # What the user of this one says of machines.
    for name in ("group_vars", "host_vars"):
        shutil.rmtree(folder / "ansible" / "inventory" / name, ignore_errors=True)
    (folder / "terraform").mkdir()
    shutil.copy(support.ROOT / "Makefile", folder)
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    return Path(support.copy_of(folder / "terraform", "aws"))


def make(*words: str) -> list[str]:
    """What is installed there is this clone's business. Within another make it would tell of folders too."""
    return ["make", "--no-print-directory", "-o", ".venv/.deploy", *words]
