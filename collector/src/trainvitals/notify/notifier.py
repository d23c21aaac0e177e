"""What tells people: changes in, messages out, a thread a channel.

notifier = Notifier(plan.channels, folder, "gpu1", hours=plan.hours)
notifier.adopt(open_ones); notifier.start(); notifier.tell(changes); notifier.stop()
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from trainvitals.alerting.channels import QuietHours
from trainvitals.clock import SYSTEM, Clock
from trainvitals.detect.finding import Change
from trainvitals.errors import SettingError
from trainvitals.notify.attempt import Attempt
from trainvitals.notify.channel import Channel, Unsent
from trainvitals.notify.courier import Counts, Courier
from trainvitals.notify.desk import Hear, whole
from trainvitals.notify.heartbeat import Heartbeat, Switch
from trainvitals.notify.limits import AGAIN_SECONDS, ATTEMPT_SECONDS, STOP_SECONDS, UNTIL_SECONDS
from trainvitals.notify.quiet import Quiet

log = logging.getLogger("trainvitals.notify")


class Notifier:
    """`folder` is for its queues. `page`: the agent's address as people call it, for links. `hear`: what is left
    of a change without what somebody acknowledged or silenced."""

    def __init__(self, channels: Sequence[Channel], folder: Path, host: str, *, hours: QuietHours | None = None,
                 page: str = "", heartbeat: Switch | None = None, is_well: Callable[[], bool] = lambda: True,
                 hear: Hear = whole, clock: Clock = SYSTEM) -> None:  # fmt: skip
        quiet = Quiet(hours)
        names = _file_names(channels)
        self._couriers = [Courier(channel, folder / f"{name}.jsonl", host, clock=clock, quiet=quiet, page=page,
                                  hear=hear)
                          for channel, name in zip(channels, names, strict=True)]  # fmt: skip
        self._heartbeat = Heartbeat(heartbeat, is_well) if heartbeat else None
        self._ended = threading.Event()

    def start(self) -> None:
        """Whether each channel can be used is looked at meanwhile, and a warning names the setting to mend."""
        for courier in self._couriers:
            courier.start()
        if self._heartbeat:
            self._heartbeat.start()
            self._look(self._heartbeat.switch, lambda why: None)
        for courier in self._couriers:
            self._look(courier.channel, courier.doubt)

    def _look(self, channel: Channel, doubt: Callable[[str], None]) -> None:
        threading.Thread(target=_look_at, args=(channel, doubt, self._ended), name=f"check-{channel.kind}"[:15],
                         daemon=True).start()  # fmt: skip

    def working(self) -> int:
        """How many of the channels do, as far as is known."""
        return sum(courier.is_well for courier in self._couriers)

    def tell(self, changes: Sequence[Change]) -> None:
        """Waits for nobody, raises nothing."""
        try:
            for courier in self._couriers if changes else ():
                courier.tell(changes)
        except Exception:
            log.exception("findings could not be handed on")

    def nudge(self) -> None:
        """What is left of changes may be another now."""
        for courier in self._couriers:
            courier.nudge()

    def adopt(self, changes: Sequence[Change]) -> None:
        """Once, best before the start: all that is open, be it nothing. What an agent before this one told of, and is
        not among them, is told to have ended."""
        try:
            for courier in self._couriers:
                courier.adopt(changes)
        except Exception:
            log.exception("open findings could not be taken over")

    def counts(self) -> dict[str, Counts]:
        return {courier.channel.shown: courier.counts() for courier in self._couriers}

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """What waits gets a last attempt; what does not arrive is in the queues for the next start."""
        self._ended.set()
        if self._heartbeat:
            self._heartbeat.end()
        for courier in self._couriers:
            courier.end()
        deadline = time.monotonic() + seconds
        for courier in self._couriers:
            if courier.ident:
                courier.join(max(0.0, deadline - time.monotonic()))


def _file_names(channels: Sequence[Channel]) -> list[str]:
    """By kind and place, not by address: who mends a wrong one wants what waited for it."""
    kinds = [channel.kind for channel in channels]
    return [kind if not kinds[:number].count(kind) else f"{kind}-{kinds[:number].count(kind) + 1}"
            for number, kind in enumerate(kinds)]  # fmt: skip


def _look_at(channel: Channel, doubt: Callable[[str], None], ended: threading.Event) -> None:
    """Each thing that is wrong is said once."""
    said, pause = "", AGAIN_SECONDS if channel.starts_beside else 0.0
    while why := _problem(channel):
        if pause != AGAIN_SECONDS and why != said:
            log.warning("%s; monitoring goes on", why)
            said = why
            doubt(why)
        if not channel.starts_beside or ended.wait(pause):
            return
        pause = UNTIL_SECONDS
    if said:
        log.info("%s: answers now", channel.shown)
        doubt("")


def _problem(channel: Channel) -> str:
    try:
        Attempt(channel.kind).run(channel.check, ATTEMPT_SECONDS)
    except SettingError as error:
        return str(error)
    except Unsent as error:
        return str(channel.problem(str(error)))
    except Exception as error:
        return f"{channel.shown}: could not be looked at ({type(error).__name__})"
    return ""
