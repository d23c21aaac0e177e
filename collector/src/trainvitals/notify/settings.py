"""Which ways to people the settings name, and what is wrong with how they name them.

plan("email, webhook=https://hook.example/x", os.environ)   ->   Plan(channels=(<email>, <webhook hook.example>), …)
channels("slack", {})   ->   SettingError: SLACK_WEBHOOK_URL: '' cannot be used: give it, for … names slack

No error shows a secret. What is secret may lie in a file: SMTP_PASSWORD_FILE names it in the place of SMTP_PASSWORD.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from trainvitals.alerting import channels as knobs
from trainvitals.alerting.channels import HIDDEN, QuietHours, Values
from trainvitals.config import SETTINGS
from trainvitals.errors import SettingError, nearest
from trainvitals.notify.alertmanager import Alertmanager
from trainvitals.notify.by_apprise import Apprise, require
from trainvitals.notify.channel import Channel
from trainvitals.notify.heartbeat import Switch
from trainvitals.notify.slack import Slack
from trainvitals.notify.webhook import Webhook

NOTIFY, HEARTBEAT = SETTINGS["notify"].variable, SETTINGS["heartbeat_url"].variable
KEY = f"{SETTINGS['notify'].flag} ({NOTIFY})"
FORMS = "alertmanager=URL, email, slack, webhook, webhook=URL or apprise=URL"
_NAMES = ("alertmanager", "email", "slack", "webhook", "apprise")
_SECRETS = ("SMTP_USER", "SMTP_PASSWORD", "SLACK_WEBHOOK_URL", "WEBHOOK_URL", "APPRISE_URL", NOTIFY, HEARTBEAT)
_MAX_SECRET_BYTES = 2**16
# A comma within an address does not end it.
_NEXT = re.compile(
    r"[,\n](?=\s*(?:pages:)?(?:(?:alertmanager|apprise|webhook)\s*=|(?:email|slack|webhook|apprise)\s*(?:[,\n]|$))"
    r"|\s*(?:[,\n]|$))"
)
_NAME = re.compile(r"(?:pages:)?[a-z-]{1,20}")
_WORD = re.compile(r"\s*(?:pages:)?([a-zA-Z-]{1,20})\s*(?:=\s*[a-z]+://.*)?")
_NEARLY = 0.7
_APPRISE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s\0]+")
_ONLY_PAGES = "pages:"
_SECTION = ("notify", "heartbeat", "quiet_hours")
# What cannot be used is put there; None: it is raised.
Refused = list[SettingError] | None


@dataclass(frozen=True, slots=True)
class Plan:
    """`page` is the agent's address as people call it."""

    channels: tuple[Channel, ...] = ()
    heartbeat: Switch | None = None
    hours: QuietHours | None = None
    page: str = ""


def channels(text: str, environ: Mapping[str, str]) -> list[Channel]:
    return list(plan(text, environ).channels)


def plan(text: str, environ: Mapping[str, str], section: Mapping[str, Any] | None = None, *,
         heartbeat: str = "", refused: Refused = None) -> Plan:  # fmt: skip
    """`text` and `heartbeat` are the settings `notify` and `heartbeat_url`; `section` is of a file: {"notify": [...],
    "heartbeat": URL, "quiet_hours": "…"}. The ways of both count; of heartbeat and quiet hours, those of the
    environment where they are there. What cannot be used is raised, or, where there is a list for it, left out."""
    known, more = with_files(environ, refused=refused), _tried(refused, {}, _checked, section or {}, refused)
    known |= {HEARTBEAT: heartbeat} if heartbeat else {}
    names = [(KEY, part) for part in _parts(text or known.get(NOTIFY, ""))]
    names += [(f"notify[{number}]", part) for number, part in enumerate(more.get("notify", ())) if part is not None]
    found = [channel for key, part in names for channel in _tried(refused, [], _made, key, part, known)]
    return Plan(tuple(_called_apart(found)), _tried(refused, None, _switch, known, more),
                _tried(refused, None, _hours, known, more), _tried(refused, "", _page, known))  # fmt: skip


def _tried(refused: Refused, instead: Any, make: Callable[..., Any], *arguments: object) -> Any:
    try:
        return make(*arguments)
    except SettingError as error:
        if refused is None:
            raise
        refused.append(error)
        return instead


def with_files(environ: Mapping[str, str], names: Iterable[str] = _SECRETS, refused: Refused = None) -> dict[str, str]:
    """With what lies in the files that NAME_FILE names."""
    found = dict(environ)
    for name in names:
        if environ.get(f"{name}_FILE", "").strip():
            found |= _tried(refused, {}, _in_file, environ, name)
    return found


def _in_file(environ: Mapping[str, str], name: str) -> dict[str, str]:
    path = environ[f"{name}_FILE"].strip()
    if environ.get(name, "").strip():
        raise SettingError(f"{name}_FILE", path, f"give this or {name}, not both")
    return {name: _read(f"{name}_FILE", path)}


def _read(key: str, path: str) -> str:
    fix = "name a file that can be read, and holds the secret alone"
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(_MAX_SECRET_BYTES + 1)
        text = content.decode().strip()
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingError(key, path, fix) from error
    if not text or len(content) > _MAX_SECRET_BYTES:
        raise SettingError(key, path, fix)
    return text


def _parts(text: str) -> list[str]:
    found = [part.strip(" \t\n,") for each in _NEXT.split(text) for part in _apart(each)]
    return [part for part in found if part]


def _apart(part: str) -> list[str]:
    """Of the words at an address's end those from one on that is nearly a way's name: that is a typing error."""
    words = re.split("[,\n]", part)
    bare = takewhile(lambda at: _WORD.fullmatch(words[at]), range(len(words) - 1, 0, -1))
    first = min((at for at in bare if _meant(words[at])), default=len(words))
    return [",".join(words[:first]), *words[first:]]


def _meant(word: str) -> str:
    found = _WORD.fullmatch(word)
    return nearest(found[1].lower(), _NAMES, _NEARLY) if found else ""


def _checked(section: Mapping[str, Any], refused: Refused) -> dict[str, Any]:
    """`- webhook: https://…` is as good as `- webhook=https://…`."""
    for name, value in section.items():
        if name not in _SECTION:
            raise SettingError(str(name), HIDDEN, f"choose one of {', '.join(_SECTION)}")
        if name != "notify" and not (value is None or isinstance(value, str)):
            raise SettingError(name, HIDDEN, "give a text")
    ways = section.get("notify") or ()
    ways = (ways,) if isinstance(ways, (str, Mapping)) else ways
    if not isinstance(ways, Sequence):
        raise SettingError("notify", HIDDEN, f"give a list of {FORMS}")
    named = [_tried(refused, None, _way, f"notify[{number}]", way) for number, way in enumerate(ways)]
    return dict(section) | {"notify": named}


def _way(key: str, way: Any) -> str:
    if isinstance(way, Mapping) and len(way) == 1:
        [(name, value)] = way.items()
        way = f"{name}={value}" if value else name
    if not isinstance(way, str):
        raise SettingError(key, HIDDEN, f"give {FORMS}")
    return way.strip()


def _made(key: str, part: str, environ: Mapping[str, str]) -> list[Channel]:
    return list(_channels(key, part, environ))


def _channels(key: str, part: str, environ: Mapping[str, str]) -> Iterator[Channel]:
    only_pages = part.startswith(_ONLY_PAGES)
    name, given, value = part.removeprefix(_ONLY_PAGES).partition("=")
    name, value = name.strip(), value.strip()
    if name == "alertmanager":
        yield _alertmanager(key, value, only_pages)
    elif name == "email" and not given:
        # Much is loaded for a mail.
        from trainvitals.notify.mail import Mail

        yield Mail(key, _needed(key, name, environ, "SMTP_"), only_pages=only_pages)
    elif name == "slack" and not given:
        yield Slack("SLACK_WEBHOOK_URL", _needed(key, name, environ, "SLACK_"), only_pages=only_pages)
    elif name == "webhook" and given:
        yield Webhook(key, _url(key, value), only_pages=only_pages)
    elif name == "webhook":
        values = _needed(key, name, environ, "WEBHOOK_URL")
        yield Webhook("WEBHOOK_URL", values["WEBHOOK_URL"], only_pages=only_pages)
    elif name == "apprise":
        yield from _by_apprise(key, value if given else None, environ, only_pages)
    else:
        raise _no_way(key, part)


def _no_way(key: str, part: str) -> SettingError:
    shown, meant = part.partition("=")[0].strip(), _meant(part)
    fix = f"give {FORMS}, with commas between"
    if meant not in ("", shown):
        fix = f"{meant} is nearest; {fix}, and a comma of an address as %2C"
    return SettingError(key, shown if meant or _NAME.fullmatch(shown) else HIDDEN, fix)


def _alertmanager(key: str, url: str, only_pages: bool) -> Channel:
    if only_pages:
        raise SettingError(key, f"{_ONLY_PAGES}alertmanager", "let its routes choose: it wants all of them")
    return Alertmanager(key, _url(key, url, "give Alertmanager's address: alertmanager=http://127.0.0.1:9093"))


def _url(key: str, value: str, fix: str = "give the whole address: webhook=https://hooks.example.org/abc") -> str:
    try:
        return knobs.url(value)
    except ValueError:
        raise SettingError(key, HIDDEN if value else "", fix) from None


def _by_apprise(key: str, url: str | None, environ: Mapping[str, str], only_pages: bool) -> Iterator[Channel]:
    require(key)
    key, urls = (key, [url]) if url is not None else ("APPRISE_URL", environ.get("APPRISE_URL", "").split())
    for one in urls or [""]:
        if not _APPRISE.fullmatch(one):
            fix = "give an address as apprise writes it, such as ntfy://ntfy.sh/my-topic"
            raise SettingError(key, HIDDEN if one else "", fix)
        yield Apprise(key, one, only_pages=only_pages)


def _needed(key: str, name: str, environ: Mapping[str, str], prefix: str) -> Values:
    """Checked as for Alertmanager, and what this way needs is there."""
    values = _values(environ, prefix)
    for needed in knobs.NEEDED[name]:
        if values[needed] is None:
            raise SettingError(needed, "", f"give it, for {key} names {name}")
    return values


def _values(environ: Mapping[str, str], prefix: str) -> Values:
    """What others need is not asked for."""
    return knobs.read({name: value for name, value in environ.items() if name.startswith(prefix)})


def _switch(environ: Mapping[str, str], section: Mapping[str, Any]) -> Switch | None:
    for key, url in ((HEARTBEAT, environ.get(HEARTBEAT)), ("heartbeat", section.get("heartbeat"))):
        if url and url.strip():
            return Switch(key, _url(key, url.strip(), "give the whole address: https://hc-ping.example/abc"))
    return None


def _page(environ: Mapping[str, str]) -> str:
    return _values(environ, "TRAINVITALS_URL")["TRAINVITALS_URL"] or ""


def _hours(environ: Mapping[str, str], section: Mapping[str, Any]) -> QuietHours | None:
    hours: QuietHours | None = _values(environ, "QUIET_HOURS")["QUIET_HOURS"]
    given = section.get("quiet_hours")
    if hours is None and given:
        check: Callable[[str], QuietHours] = knobs.quiet_hours
        try:
            return check(given)
        except ValueError:
            raise SettingError("quiet_hours", given, check.__doc__ or "") from None
    return hours


def _called_apart(found: Sequence[Channel]) -> Iterator[Channel]:
    """Two of a name get numbers."""
    counts: dict[str, int] = {}
    for channel in found:
        counts[channel.shown] = count = counts.get(channel.shown, 0) + 1
        if count > 1:
            channel.shown = f"{channel.shown} {count}"
        yield channel
