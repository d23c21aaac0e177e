"""Slack by an incoming webhook: {"text": "*[page] TrainingNonFinite …*\\n…"}"""

from typing import Any

import orjson

from trainvitals.alerting.channels import Values
from trainvitals.errors import plain
from trainvitals.notify.channel import Channel
from trainvitals.notify.limits import CHAT_CHARACTERS, CHAT_TOLD_WHOLE
from trainvitals.notify.message import Message
from trainvitals.notify.request import ONLY_REACHED, ask, connect
from trainvitals.notify.words import subject, text

_LETTERS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Slack(Channel):
    kind = "slack"

    def __init__(self, key: str, values: Values, *, only_pages: bool = False) -> None:
        self._url: str = values["SLACK_WEBHOOK_URL"]
        self._channel = values["SLACK_CHANNEL"]
        super().__init__(key, [self._url], only_pages=only_pages)

    def send(self, message: Message) -> None:
        ask(self._url, orjson.dumps(self._content(message)))

    def check(self) -> str:
        connect(self._url)
        return ONLY_REACHED

    def _content(self, message: Message) -> dict[str, Any]:
        body = text(message, CHAT_TOLD_WHOLE, CHAT_CHARACTERS, _safe)
        if len(message.items) > 1:
            body = f"*{_safe(subject(message))}*\n\n{body}"
        named = {"channel": self._channel} if self._channel else {}
        return {"text": body, "username": "TrainVitals", "unfurl_links": False, **named}


def _safe(words: str) -> str:
    """Slack reads <!channel> and <http://…|…> in any text: the name of a run must not ring for everybody."""
    return plain(words).translate(_LETTERS)
