"""Grafana's first password: made once, into a volume that Grafana alone shares.

make(Path("/run/grafana-password"))  ->  /run/grafana-password/password, which is left as it is from then on
"""

import os
import secrets
from pathlib import Path

NAME = "password"
BYTES = 18


def make(folder: Path) -> Path:
    path = folder / NAME
    # Not whole until it has its name: a start that was cut short leaves no empty password.
    unfinished = folder / f".{NAME}"
    if not path.exists():
        unfinished.unlink(missing_ok=True)
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(BYTES))
        unfinished.rename(path)
    return path
