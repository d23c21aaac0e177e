"""A way to a person or to another service, and what can go wrong on it.

class Slack(Channel): kind = "slack"; def send(self, message): …   # returns, or raises Unsent
"""

import base64
import re
from collections.abc import Iterable
from typing import ClassVar
from urllib.parse import quote, unquote, urlsplit

from trainvitals.alerting.channels import HIDDEN
from trainvitals.errors import SettingError, plain
from trainvitals.notify.limits import PACES, Pace
from trainvitals.notify.message import Message

_SHORTEST_SECRET = 4
_MAX_WHY = 200


class Unsent(Exception):
    """`is_refused`: the same message would be refused again. `after`: the seconds that the receiver asks for. `status`:
    of an answer by HTTP."""

    def __init__(self, why: str, *, is_refused: bool = False, after: float | None = None, status: int = 0) -> None:
        super().__init__(why)
        self.is_refused, self.after, self.status = is_refused, after, status


class Channel:
    """`key` names the setting to mend; what is in `secrets` is told to nobody."""

    kind: ClassVar[str]
    # Perhaps by who starts the agent, in the same moment: not to be there yet is no trouble.
    starts_beside: ClassVar[bool] = False

    def __init__(self, key: str, secrets: Iterable[str] = (), *, shown: str = "", only_pages: bool = False) -> None:
        self.key, self.only_pages = key, only_pages
        # How it is called where several are of a kind; it holds no secret.
        self.shown = shown or self.kind
        self._secrets = sorted({form for one in secrets for form in _forms(one)}, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"<{self.shown}>"

    @property
    def pace(self) -> Pace:
        return PACES[self.kind]

    @property
    def wants_ends(self) -> bool:
        """What rings for pages alone cannot take one back by another message."""
        return not self.only_pages

    def send(self, message: Message) -> None:
        """Raises Unsent; waits as long as the receiver makes it wait, within limits."""
        raise NotImplementedError

    def check(self) -> str:
        """Whether it could be sent, without sending: Unsent says what is wrong, and words what could not be tried."""
        raise NotImplementedError

    def hide(self, text: str) -> str:
        """One line, of a length that a log can bear, without what is secret here."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        line = " ".join(plain(text).split())
        return line if len(line) <= _MAX_WHY else f"{line[:_MAX_WHY]} …"

    def problem(self, why: str) -> SettingError:
        """In the words of a setting that is wrong."""
        return SettingError(self.key, HIDDEN, f"{self.shown} {self.hide(why)}")


def _forms(secret: str) -> set[str]:
    """As it is, as it stands in an address or a header, and, of an address, the parts that are secret by themselves."""
    parts = {secret}
    if "://" in secret:
        split = urlsplit(secret)
        login = split.netloc.rpartition("@")[0]
        parts |= {split.path, split.path.strip("/"), split.query, *login.split(":"), login,
                  base64.b64encode(unquote(login).encode()).decode()}  # fmt: skip
        parts |= set(re.split(r"[/&=]", f"{split.path}/{split.query}")) if split.path.count("/") > 1 else set()
    parts |= {form(part) for part in parts for form in (unquote, lambda part: quote(part, safe=""))}
    return {part for part in parts if len(part) >= _SHORTEST_SECRET}
