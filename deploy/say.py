"""What the commands tell: a heading a stage, a question before anything costs money or is gone; and a log of all of it.

deploy: 2/5 Machines
"""

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.errors import DeployError

_LOG = logging.getLogger("deploy")


def keep(path: Path) -> Path:
    """From now on all that is told, and what the programs told us, is in that file; the one before is kept once."""
    if path.exists():
        path.replace(path.with_suffix(".old.log"))
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    return path


def kept_in() -> Path | None:
    return next((Path(each.baseFilename) for each in _LOG.handlers if isinstance(each, logging.FileHandler)), None)


def note(text: str) -> None:
    """Into the log alone."""
    _LOG.info("%s", text.rstrip("\n"))


def quote(text: str) -> None:
    """What a program says, as it says it."""
    note(text)
    print(text.rstrip("\n"), flush=True)


def stage(number: int, of: int, name: str) -> None:
    quote(f"\ndeploy: {number}/{of} {name}")


def line(text: str) -> None:
    quote(f"  {text}")


def agree(question: str, lost: Sequence[str] = ()) -> None:
    """Returns when the user says yes, or YES said it before: YES=1, or the names of machines whose data is `lost`."""
    beforehand, wanted = os.environ.get("YES", ""), ",".join(lost) or "1"
    if beforehand == wanted:
        return
    if beforehand not in ("", "0", "1"):
        raise DeployError(f"YES: '{beforehand}' does not agree to this: YES={wanted} does, without it you are asked")
    if lost and (beforehand == "1" or not sys.stdin.isatty()):
        raise DeployError(f"machines would go with their disks, or history be left behind: say YES={wanted}, or leave "
                          "YES out and answer")  # fmt: skip
    if not sys.stdin.isatty():
        raise DeployError(f"{question} Nobody is there to answer: say YES=1 to agree beforehand")
    if _answer(question) not in ("y", "yes"):
        raise DeployError("nothing was done")


def agree_now(question: str, otherwise: str) -> None:
    """As `agree`, of what nobody could have agreed to beforehand."""
    if not somebody_answers() or _answer(question) not in ("y", "yes"):
        raise DeployError(otherwise)


def somebody_answers() -> bool:
    """Who agreed beforehand may be no one at all."""
    return os.environ.get("YES", "") in ("", "0") and sys.stdin.isatty()


def _answer(question: str) -> str:
    try:
        return input(f"{question} [yes/no] ").strip().lower()
    except EOFError:
        return "no"
