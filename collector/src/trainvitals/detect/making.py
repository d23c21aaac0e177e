"""An engine as its user wants it: with thresholds and rules of their own, where a file has some."""

from pathlib import Path
from typing import Any

from trainvitals.detect.engine import Engine
from trainvitals.detect.limits import Limits, limits
from trainvitals.detect.rules.file import RulesFile
from trainvitals.errors import SettingError


def make_engine(path: Path | None) -> Engine:
    """SettingError where the file is bad already; one that becomes bad later keeps what held before. Thresholds count
    from the start on, rules as soon as they are written."""
    if path is None:
        return Engine()
    file = RulesFile(path, check=_limits)
    if file.problem:
        raise SettingError("--rules (TRAINVITALS_RULES)", str(path), file.problem)
    engine = Engine(_limits(file.sections), file)
    file.watch_gpus(engine.book.gpus)
    return engine


def _limits(sections: Any) -> Limits:
    return limits(sections.get("thresholds") or {})
