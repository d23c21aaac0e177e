"""One message by each channel, and what came of it; or, without a message, whether it could be sent.

delivered   slack
failed      email      535 5.7.8 authentication failed
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from trainvitals.detect.finding import Change, Finding
from trainvitals.errors import SettingError
from trainvitals.notify.channel import Channel, Unsent
from trainvitals.notify.message import Item, Message

DELIVERED, WELL, NOT_TRIED, FAILED = "delivered", "well", "not tried", "failed"
TEST = "AlertTest"
# The state, and what there is to say of it.
Answer = tuple[str, str]


class Outcome(NamedTuple):
    channel: str
    state: str
    why: str = ""


def send(channels: Sequence[Channel], host: str, seconds: float) -> list[Outcome]:
    message = test_message(host, time.time())

    def delivers(channel: Channel) -> Answer:
        channel.send(message)
        return DELIVERED, ""

    return _all(channels, delivers, seconds)


def look(channels: Sequence[Channel], seconds: float) -> list[Outcome]:
    return _all(channels, _looks, seconds)


def _looks(channel: Channel) -> Answer:
    left_open = channel.check()
    return (NOT_TRIED, left_open) if left_open else (WELL, "")


def test_message(host: str, now: float) -> Message:
    what = "This is a test of the way that findings take; nothing is wrong."
    finding = Finding(TEST, "info", what, advice="Nothing: that you read it is what was to be shown.")
    item = Item(Change("open", finding, now, now), "open", "info")
    return Message((item,), host, is_trial=True)


def _all(channels: Sequence[Channel], act: Callable[[Channel], Answer], seconds: float) -> list[Outcome]:
    """All at the same time; one that hangs is not waited for."""
    answers: dict[Channel, Outcome] = {}
    threads = [threading.Thread(target=_try, args=(channel, act, answers), daemon=True) for channel in channels]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = f"did not answer within {seconds:g} s"
    return [answers.get(channel, Outcome(channel.shown, FAILED, late)) for channel in channels]


def _try(channel: Channel, act: Callable[[Channel], Answer], answers: dict[Channel, Outcome]) -> None:
    state = FAILED
    try:
        state, why = act(channel)
    except Unsent as error:
        why = channel.hide(str(error))
    except SettingError as error:
        why = f"{error.key}: {error.fix}"
    except Exception as error:
        # What it says may hold a secret.
        why = f"an error of ours ({type(error).__name__})"
    answers[channel] = Outcome(channel.shown, state, why)
