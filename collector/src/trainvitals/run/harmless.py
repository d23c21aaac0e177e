"""Nothing of ours reaches the run: an exception becomes one warning and a count."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

log = logging.getLogger("trainvitals")
Call = TypeVar("Call", bound=Callable[..., Any])
MAX_WORDS = 300


def harmless(method: Call) -> Call:
    """For methods of what has `failed(error)`, and for any other function, which then warns each time by itself."""

    @wraps(method)
    def safe(*arguments: Any, **more: Any) -> Any:
        try:
            return method(*arguments, **more)
        except Exception as error:
            # At the limit of recursion even to say so fails.
            try:
                failed = getattr(arguments[0], "failed", None) if arguments else None
                (failed or warn)(error)
            except RecursionError:
                return None
            return None

    return cast(Call, safe)


def warn(error: BaseException) -> None:
    log.warning("monitoring failed and training goes on: %s", told(error))


def told(error: BaseException) -> str:
    """The exception's type and the last line of what it says."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:
        lines = []
    name = type(error).__name__
    return f"{name}: {lines[-1].strip()}"[:MAX_WORDS] if lines else name
