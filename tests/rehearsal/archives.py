"""Images as tar files that a machine's engine loads, where it can pull none.

archive(client, ["prom/prometheus:v3.5.3"])  ->  .cache/rehearsal/images/4f0c9d81aa20.tar
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.rehearsal.images import CACHE

FOLDER = CACHE / "images"
_KEPT = 4


def archive(client: Any, images: Iterable[str]) -> Path:
    """All in one: layers that they share are in it once."""
    names = sorted(images)
    told = "\n".join(f"{name} {client.images.get(name).id}" for name in names)
    made = FOLDER / f"{hashlib.sha256(told.encode()).hexdigest()[:12]}.tar"
    if not made.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        unfinished = made.with_suffix(f".{os.getpid()}")
        subprocess.run(["docker", "save", "--output", unfinished, *names], check=True, capture_output=True, timeout=300)
        unfinished.rename(made)
    made.touch()
    for old in sorted(FOLDER.glob("*.tar"), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
        old.unlink()
    return made
