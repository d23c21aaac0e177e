"""An engine as its user wants it: with thresholds and rules of their own, where a file has some."""

import logging
from pathlib import Path
from typing import Any

from trainvitals.detect.engine import Engine
from trainvitals.detect.limits import Limits, limits
from trainvitals.errors import SettingError

_WITHOUT = "the detectors go on by their own numbers, without it until it is mended"

log = logging.getLogger("trainvitals.rules")


def make_engine(path: Path | None, *, goes_on: bool = False, folder: Path | None = None) -> Engine:
    """SettingError where the file is bad already, or a warning, where it `goes_on` until that is mended; one that
    becomes bad later keeps what held before, as one does that is bad already where `folder` has a copy of it.
    Thresholds count from the start on, rules as soon as they are written."""
    if path is None:
        return Engine()
    # Loaded where somebody has rules.
    from trainvitals.detect.rules.file import RulesFile

    file = RulesFile(path.expanduser(), check=_limits, folder=folder)
    if file.problem and goes_on:
        held = f"{file.held()}, from {file.copy}" if file.version else _WITHOUT
        log.warning("%s\n%s", file.problem, held)
    elif file.problem:
        raise SettingError("--rules (TRAINVITALS_RULES)", str(path), file.problem)
    engine = Engine(_limits(file.sections), file)
    file.watch_gpus(engine.book.gpus)
    return engine


def _limits(sections: Any) -> Limits:
    return limits(sections.get("thresholds") or {})
