"""Nothing of ours reaches the run: an exception becomes one warning and a count."""

import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar, cast

from trainvitals.journal.secrecy import without_secrets

log = logging.getLogger("trainvitals")
Call = TypeVar("Call", bound=Callable[..., Any])
MAX_WORDS, MAX_TEXT = 300, 10_000


def harmless(method: Call) -> Call:
    """For methods of what has `failed(error)`, and for any other function, which then warns each time by itself."""

    @wraps(method)
    def safe(*arguments: Any, **more: Any) -> Any:
        try:
            return method(*arguments, **more)
        except Exception as error:
            # At the limit of recursion even to say so fails.
            with suppress(RecursionError):
                failed = getattr(arguments[0], "failed", None) if arguments else None
                (failed or warn)(error)
            return None

    return cast(Call, safe)


def warn(error: BaseException) -> None:
    let_through(error)
    with suppress(Exception):  # a handler of the log may fail as well
        log.warning("monitoring failed and training goes on: %s", told(error))


def let_through(error: BaseException) -> None:
    """What a signal's handler raises while it interrupts us, a timeout say, is meant for the code that called us."""
    handlers = [_code_of(signal.getsignal(number)) for number in signal.valid_signals()]
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            raise error
        trace = trace.tb_next


def _code_of(handler: Any) -> object:
    handler = getattr(handler, "func", handler)  # of a partial
    return getattr(handler, "__code__", getattr(type(handler).__call__, "__code__", handler))


def told(error: BaseException) -> str:
    """The exception's type and the last line of what it says."""
    try:
        lines = without_secrets(str(error)[-MAX_TEXT:]).strip().splitlines()
    except Exception:
        lines = []
    name = type(error).__name__
    return f"{name}: {lines[-1].strip()}"[:MAX_WORDS] if lines else name
