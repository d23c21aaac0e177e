"""Alertmanager's folder from the lines of compose/.env: `python -m trainvitals.stack alertmanager-config compose/.env`.

    compose/.env            SMTP_PASSWORD='hush'     its owner's alone, mode 0600
    /etc/alertmanager/      secrets/smtp             Alertmanager's alone, mode 0400

The lines are read as a file: what stands in a container's environment is shown by `docker inspect`. Root reads it, for
it belongs to whoever cloned; then the job becomes the folder's owner, who is to read what it writes.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from trainvitals.alerting import channels
from trainvitals.alerting.writing import LINKS, write
from trainvitals.config import read_env_lines
from trainvitals.errors import SettingError, TrainVitalsError
from trainvitals.stack.check_env import read_otherwise


def make(env_file: Path, out: Path, environ: Mapping[str, str]) -> list[str]:
    """Returns the ways to people that it found."""
    lines = _lines(env_file)
    _become_owner(out)
    # A link is no secret, and other services have it from the environment too.
    return write(out, {**lines, **{name: environ[name] for name in LINKS if environ.get(name)}})


def _lines(path: Path) -> dict[str, str]:
    lines = {name: value for name, value in read_env_lines(path).items() if name in channels.KNOBS}
    wrong = [told for told in read_otherwise(path.read_text(encoding="utf-8-sig", errors="replace"))
             if told.partition(":")[0] in lines]  # fmt: skip
    if wrong:
        raise TrainVitalsError("\n".join(f"{path}: {told}" for told in wrong))
    return lines


def _become_owner(folder: Path) -> None:
    try:
        owner = folder.stat().st_uid
    except OSError as error:
        raise SettingError("--out", folder, "name a folder that is there") from error
    if owner != os.geteuid() == 0:
        # For good: all capabilities go with it.
        os.setuid(owner)
