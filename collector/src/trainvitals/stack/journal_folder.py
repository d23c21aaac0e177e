"""The host's journal folder, open to whoever trains as /tmp is: `python -m trainvitals.stack journal FOLDER`.

    TRAINVITALS_DIR: '/data/runs' cannot be used: it belongs to user 1000, and user 10001:10001 may not write there: …

Docker makes it root's own, who is this job's user. What is somebody else's stays as it is, and so does a folder of the
system's, or one with other things in it: Compose takes TRAINVITALS_DIR from the shell before .env.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from trainvitals.errors import SettingError
from trainvitals.stack.knobs import KNOBS

OPEN = 0o1777
_OURS = {"runs", "gpu", "lost+found"}


def opened(folder: Path, environ: Mapping[str, str]) -> str:
    """Nothing where the collector can write there."""
    found, name = folder.stat(), environ.get("TRAINVITALS_DIR", str(folder))
    KNOBS["TRAINVITALS_DIR"].read(name)
    if found.st_uid != os.geteuid():
        return problem(found, name, environ["TRAINVITALS_USER"])
    if found.st_mode & 0o7777 != OPEN and (others := sorted(set(os.listdir(folder)) - _OURS)):
        fix = f"it holds {others[0]!r}, which is no part of a journal: give a folder of its own"
        return str(SettingError("TRAINVITALS_DIR", name, fix))
    folder.chmod(OPEN)
    return ""


def problem(found: os.stat_result, folder: str, collector: str) -> str:
    """`folder` is what the host calls it."""
    user, group = (int(number) for number in collector.split(":"))
    is_writable = found.st_mode & 0o003 == 0o003 or (found.st_gid == group and found.st_mode & 0o070 == 0o070)
    if is_writable or user == found.st_uid:
        return ""
    fix = (f"it belongs to user {found.st_uid}, and user {collector} may not write there: set "
           f"TRAINVITALS_USER={found.st_uid}:{found.st_gid} in compose/.env, or open it to all who train: "
           f"sudo chmod 1777 {shlex.quote(folder)}")  # fmt: skip
    return str(SettingError("TRAINVITALS_DIR", folder, fix))
