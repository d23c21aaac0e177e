"""What a run is told of itself: each argument in the form that is needed, or an error that names it.

whole("rank", "first")  ->  SettingError: rank: 'first' cannot be used: give a whole number, 0 or more
"""

import logging
import os
import reprlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from trainvitals.errors import SettingError
from trainvitals.journal.configuration import members_of

log = logging.getLogger("trainvitals")
Value = TypeVar("Value")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200


def given(read: Callable[..., Value], *arguments: Any) -> Value | None:
    """What cannot be used is said, and as if it had been left out."""
    try:
        return read(*arguments)
    except Exception as error:
        log.warning("tv.start: %s; it is left out", error)
        return None


def whole(key: str, value: Any, least: int = 0) -> int | None:
    try:
        number = None if value is None else int(value)
        if number is None or number >= least:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise unusable(key, value, f"give a whole number, {least} or more")


def planned(steps: Any) -> Any:
    """It is not read here: a device may have yet to compute it."""
    if steps is not None and not hasattr(steps, "__int__"):
        raise unusable("planned_steps", steps, "give a number")
    return steps


def folder(path: Any) -> Path | None:
    try:
        if path is None or "\0" not in os.fspath(path):
            return None if path is None else Path(os.path.expanduser(path)).absolute()
    except TypeError:
        pass
    raise unusable("dir", path, "give the path of a folder")


def tags_of(tags: Iterable[object] | None) -> list[str]:
    try:
        return [tags] if isinstance(tags, str) else [str(tag) for tag in tags or ()]
    except Exception as error:  # a value of the user's own may raise anything
        raise unusable("tags", tags, "give a list of words") from error


def config_of(config: object) -> dict[str, Any]:
    """A mapping, a dataclass or any object with attributes (argparse's Namespace), as a dictionary."""
    if config is None:
        return {}
    try:
        if (members := members_of(config)) is not None:
            return {str(key): value for key, value in members.items()}
        return {key: value for key, value in vars(config).items() if not key.startswith("_")}
    except Exception as error:
        raise unusable("config", config, "give a dictionary, a dataclass or an object with attributes") from error


def unusable(key: str, value: object, fix: str) -> SettingError:
    """However long it is, and whatever it does when it is looked at."""
    return SettingError(key, value[:200] if isinstance(value, str) else _SHORT.repr(value), fix)
