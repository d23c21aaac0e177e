"""An Alertmanager's silences kept as the page says: made, prolonged and ended, whatever was down meanwhile.

silencer = Silencer(channel, "gpu1", wanted); silencer.start(); silencer.nudge()
silencer.problem   ->   "", or why Alertmanager may tell what nobody wants to hear

What there is it asks of Alertmanager itself, so that nothing has to be remembered: ours bear our name and a mark.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trainvitals.alerting.received import moment
from trainvitals.errors import plain
from trainvitals.journal.record import timestamp_at
from trainvitals.notify.alertmanager import Alertmanager
from trainvitals.notify.attempt import Attempt
from trainvitals.notify.channel import Unsent
from trainvitals.notify.limits import ATTEMPT_SECONDS, BACKOFF_SECONDS, MAX_BACKOFF_SECONDS
from trainvitals.notify.matchers import Matchers

LOOK_SECONDS, STAYS_SECONDS = 60.0, 300.0
_MARK = re.compile(r"\[([0-9a-f]{16})\]\Z")
_LIVING = ("active", "pending")

log = logging.getLogger("trainvitals.notify")


class Wanted(NamedTuple):
    """A silence that is to be there, until `until`; one that ends after `enough` is left as it is. Without matchers it
    is not to be made, and one that is there may run out."""

    key: str
    matchers: Matchers
    until: float
    enough: float
    words: str = ""


class Silencer(threading.Thread):
    def __init__(self, channel: Alertmanager, host: str, wanted: Callable[[], Iterable[Wanted]]) -> None:
        super().__init__(name="silences", daemon=True)
        self._channel, self._author, self._wanted = channel, f"TrainVitals on {plain(host)}", wanted
        self._wake, self._ending = threading.Event(), threading.Event()
        self._attempt = Attempt("silences")
        self._failures, self._said = 0, ""
        # Those of ours that it has, as far as was seen.
        self._there: set[str] = set()
        self.problem = ""
        # When Alertmanager last said which alerts ours keep quiet.
        self.listed_at = 0.0
        self._seen: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def silenced(self) -> list[Mapping[str, Any]]:
        """The alerts that ours keep quiet. Prometheus tells an Alertmanager that was started anew of its alerts within
        a minute or two: for as long they stay."""
        return [alert for _, alert in self._seen.values()]

    def nudge(self) -> None:
        self._wake.set()

    def end(self) -> None:
        self._ending.set()
        self._wake.set()

    def run(self) -> None:
        pause: float | None = 0.0
        while not self._ending.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            if not self._ending.is_set():
                pause = self._step()

    def _step(self) -> float | None:
        """How long to wait then; None: until somebody wants something."""
        try:
            wanted = {one.key: one for one in self._wanted()}
            self._attempt.run(lambda: self._settle(wanted), ATTEMPT_SECONDS)
        except Unsent as error:
            return self._failed(self._channel.hide(str(error)))
        except Exception as error:
            # What it says may hold a secret.
            return self._failed(f"failed by an error of ours ({type(error).__name__})")
        if self._said:
            log.info("%s: takes silences again", self._channel.shown)
        self._failures, self._said, self.problem = 0, "", ""
        return LOOK_SECONDS if wanted else None

    def _failed(self, why: str) -> float:
        self._failures += 1
        wanted = {one.key for one in self._wanted() if one.matchers}
        self.problem = ""
        if wanted or self._there:
            self.problem = f"{self._channel.shown}: {why}: its silences may be others than those here"
            if why != self._said:
                log.warning("%s; it is tried again", self.problem)
            self._said = why
        return float(min(BACKOFF_SECONDS * 2.0 ** min(self._failures - 1, 16), MAX_BACKOFF_SECONDS))

    def _settle(self, wanted: Mapping[str, Wanted]) -> None:
        """All of it is tried: one that is refused stands in no other's way."""
        there, refused = self._ours(), list[Unsent]()
        self._there = set(there)
        ours = set[str]()
        for key in there.keys() | {key for key, one in wanted.items() if one.matchers}:
            try:
                ours |= self._have(wanted.get(key), there.get(key, []))
            except Unsent as error:
                refused.append(error)
        if refused:
            raise refused[0]
        self._there = {key for key, one in wanted.items() if one.matchers or key in there}
        self._look(ours)

    def _look(self, ours: set[str]) -> None:
        alerts, now = self._channel.silenced() if ours else [], time.time()
        news = {str(one.get("fingerprint")): (now, one) for one in alerts if ours & set(_silenced_by(one))}
        before = {name: one for name, one in self._seen.items() if 0 <= now - one[0] < STAYS_SECONDS}
        self._seen, self.listed_at = before | news, now

    def _ours(self) -> dict[str, list[dict[str, Any]]]:
        """Those that live, by their marks."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in self._channel.silences():
            mark = _MARK.search(str(one.get("comment")))
            if mark and one.get("createdBy") == self._author and _state(one) in _LIVING:
                found.setdefault(mark[1], []).append(one)
        return found

    def _have(self, wanted: Wanted | None, known: Sequence[Mapping[str, Any]]) -> set[str]:
        """Its name there, where it is there then. It is made before another in its place ends."""
        if wanted and not wanted.matchers:
            return {str(one["id"]) for one in known}
        good = [one for one in known if wanted and _matchers(one) == sorted(wanted.matchers)][:1]
        kept = set[str]()
        if wanted:
            is_good = good and wanted.enough <= (moment(good[0].get("endsAt")) or 0.0) <= wanted.until + 1
            kept = {str(good[0]["id"]) if is_good else self._channel.silence(self._content(wanted, good))}
        for one in known:
            if one not in good:
                self._channel.expire(str(one["id"]))
        return kept

    def _content(self, wanted: Wanted, known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Where there is one already, that one with another end."""
        same = {"id": known[0]["id"], "startsAt": known[0].get("startsAt")} if known else {}
        return {"startsAt": timestamp_at(time.time()), "endsAt": timestamp_at(wanted.until), **same,
                "createdBy": self._author, "comment": f"{plain(wanted.words)} [{wanted.key}]",
                "matchers": [one.record() for one in wanted.matchers]}  # fmt: skip


def _state(one: Mapping[str, Any]) -> object:
    status = one.get("status")
    return status.get("state") if isinstance(status, dict) else None


def _silenced_by(alert: Mapping[str, Any]) -> list[str]:
    status = alert.get("status")
    found = status.get("silencedBy") if isinstance(status, dict) else None
    return found if isinstance(found, list) else []


def _matchers(one: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    found = [each for each in one.get("matchers") or () if isinstance(each, dict) and each.get("isEqual", True)]
    return sorted((str(each.get("name")), str(each.get("value")), bool(each.get("isRegex"))) for each in found)
