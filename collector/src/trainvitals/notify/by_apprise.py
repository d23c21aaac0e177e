"""Everything that apprise knows: ntfy, Pushover, Telegram, Discord, Teams, PagerDuty. By(url).send(message)

It says only whether it worked; why not is in what it writes to its log, which goes nowhere else, for it may hold
addresses with their tokens.
"""

import importlib.util
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trainvitals.alerting.channels import HIDDEN
from trainvitals.errors import SettingError, install_words, plain
from trainvitals.notify.channel import Channel, Unsent
from trainvitals.notify.limits import CHAT_CHARACTERS, CHAT_TOLD_WHOLE
from trainvitals.notify.message import Message
from trainvitals.notify.request import ONLY_REACHED, connect
from trainvitals.notify.words import subject, text

# They wake somebody, and each message is an incident: as in Alertmanager's routes they get pages alone.
PAGERS = frozenset({"pagerduty", "opsgenie"})
_LOGGER = "apprise"
_MAX_WORDS = 5
# apprise's own words for what a wrong address or token comes to.
_REFUSALS = ("unauthorized", "forbidden", "not found", "bad request", "invalid", "error=400", "error=401", "error=403",
             "error=404")  # fmt: skip


class Apprise(Channel):
    kind = "apprise"

    def __init__(self, key: str, url: str, *, only_pages: bool = False) -> None:
        scheme = url.partition("://")[0].lower()
        super().__init__(key, [url, *url.partition("://")[2].replace("?", "/").replace("@", "/").split("/")],
                         shown=scheme, only_pages=only_pages or scheme in PAGERS)  # fmt: skip
        self._url = url

    def send(self, message: Message) -> None:
        service = self._service()
        if service is None:
            raise Unsent("is no address that apprise knows", is_refused=True)
        import apprise

        kinds = {"page": apprise.NotifyType.FAILURE, "ticket": apprise.NotifyType.WARNING}
        kind = kinds.get(message.severity if message.goes_on else "", apprise.NotifyType.SUCCESS)
        body = text(message, CHAT_TOLD_WHOLE, CHAT_CHARACTERS, _safe)
        with _listening() as words:
            done = service.notify(body=body, title=_safe(subject(message)), notify_type=kind,
                                  body_format=apprise.NotifyFormat.TEXT)  # fmt: skip
        if not done:
            why = "; ".join(words[-_MAX_WORDS:]) or "apprise could not send it"
            raise Unsent(why, is_refused=any(word in why.lower() for word in _REFUSALS))

    def check(self) -> str:
        service = self._service()
        if service is None:
            fix = "give an address as apprise writes it, such as ntfy://ntfy.sh/my-topic or pover://USER@TOKEN"
            raise SettingError(self.key, HIDDEN, f"apprise knows no such {self.shown} address; {fix}")
        if place := _place(service):
            connect(place)
        return ONLY_REACHED

    def _service(self) -> Any:
        import apprise

        with _listening():
            return apprise.Apprise.instantiate(self._url, suppress_exceptions=True)


def _place(service: Any) -> str:
    """Where it posts to, as far as it says: an address of the service's own, or the machine that its user names."""
    port = f":{service.port}" if service.port else ""
    if "host" in service.template_tokens:
        host = getattr(service, "smtp_host", "") or service.host
        return f"{'https' if service.secure else 'http'}://{host}{port}"
    return str(getattr(service, "notify_url", None) or "")


def require(key: str) -> None:
    """Said at the start, not when the first page is to go."""
    if importlib.util.find_spec(_LOGGER) is None:
        raise SettingError(key, "apprise", f"apprise is not installed: {install_words('notify')}")


def _safe(words: str) -> str:
    """Nobody is called by the name of a run: Discord takes @everyone in any text."""
    return plain(words).replace("@", "@\u200b")


class _Ear(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._thread = threading.get_ident()
        self.words: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.words.append(record.getMessage())


@contextmanager
def _listening() -> Iterator[list[str]]:
    """What this thread's message makes it say."""
    logger = logging.getLogger(_LOGGER)
    logger.propagate = False
    # What it sends by names whole addresses too.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    ear = _Ear()
    logger.addHandler(ear)
    try:
        yield ear.words
    finally:
        logger.removeHandler(ear)
