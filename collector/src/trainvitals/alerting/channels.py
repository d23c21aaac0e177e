"""The ways to a person that the environment names, and what is wrong with how it names them.

read({"SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/x"})["SLACK_WEBHOOK_URL"]
read({"SMTP_TO": "me@example.org"})  ->  SettingError: SMTP_HOST: '' cannot be used: give it too, for SMTP_TO is set

What is unset or empty is absent. No error shows a secret.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from trainvitals.config import one_of, whole
from trainvitals.errors import SettingError

HIDDEN = "(not shown)"
# No braces anywhere: Alertmanager would take what is between them for a template.
_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f{}\"'<>\\]+")
_LINK = re.compile(r"https?://[^\s\x00-\x1f\x7f{}\"'<>\\@?#]+")
_HOST = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.?|\[[0-9A-Fa-f:.]+\]")
# As Go reads them, which Alertmanager is written in: it refuses its whole configuration for one that it cannot.
_CALLED = re.compile(r"[\w.~-]+|[0-9A-Fa-f:.]+")
_USER = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ADDRESS = re.compile(r"[^\s@,<>{}\"]+@[^\s@,<>{}\"]+")
_NAMED_ADDRESS = re.compile(rf"{_ADDRESS.pattern}|(?:[^@,<>{{}}\"]+ )?<{_ADDRESS.pattern}>")
_CHANNEL = re.compile(r"[#@]?[^\s{}#@]{1,80}")
_TIME = r"((?:[01]\d|2[0-3]):[0-5]\d)"
_QUIET = re.compile(rf"{_TIME}\s*-\s*{_TIME}(?:\s+([A-Za-z0-9_+/-]+))?")


class QuietHours(NamedTuple):
    start: str
    end: str
    zone: str


@dataclass(frozen=True, slots=True)
class Knob:
    name: str
    check: Callable[[str], Any]
    default: Any = None
    is_secret: bool = False

    def read(self, value: str) -> Any:
        try:
            return self.check(value)
        except (ValueError, KeyError) as error:
            told = HIDDEN if self.is_secret or ("://" in value and "@" in value) else value
            raise SettingError(self.name, told, self.check.__doc__ or "") from error


def _matching(pattern: str | re.Pattern[str], fix: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError
        return value

    check.__doc__ = fix
    return check


def link(value: str) -> str:
    """give an address as a browser takes it, such as https://gpu.example:3000, without password, ? and #; a % as %25"""
    if not _LINK.fullmatch(value):
        raise ValueError
    return _with_a_host(value).rstrip("/")


def url(value: str) -> str:
    """give the whole address, such as https://hooks.example.org/abc, where a % for itself is %25 and a | is %7C"""
    if not _URL.fullmatch(value):
        raise ValueError
    return _with_a_host(value)


def _with_a_host(value: str) -> str:
    """ValueError also for a port that is none."""
    parts = urlsplit(value)
    user, _, _ = parts.netloc.rpartition("@")
    is_right = _CALLED.fullmatch(parts.hostname or "") and parts.port != 0 and _USER.fullmatch(user)
    if not is_right or _LONE_PERCENT.search(parts.path + parts.fragment):
        raise ValueError
    return value


def addresses(value: str) -> str:
    """give e-mail addresses separated by commas"""
    found = [part.strip() for part in value.split(",") if part.strip()]
    if not found or not all(_ADDRESS.fullmatch(part) for part in found):
        raise ValueError
    return ", ".join(found)


def chat(value: str) -> int:
    """give the chat's number, which is below zero for a group"""
    number = int(value)
    if not number or not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def quiet_hours(value: str) -> QuietHours:
    """give a time span and, where it is not UTC, its time zone, such as 22:00-07:00 Europe/Berlin"""
    match = _QUIET.fullmatch(value.strip())
    if not match or match[1] == match[2]:
        raise ValueError
    zone = match[3] or "UTC"
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    try:
        ZoneInfo(zone)
    except ZoneInfoNotFoundError as error:
        # A machine may have no zones at all; Alertmanager brings its own.
        if available_timezones():
            raise ValueError from error
    return QuietHours(match[1], match[2], zone)


_word = _matching(r"[^\s{}]+(?: [^\s{}]+)*", "give a name without braces")
_pushover = _matching(r"[A-Za-z0-9]{30}", "give the 30 letters and digits that Pushover shows")

KNOBS = {
    knob.name: knob
    for knob in (
        Knob("SMTP_HOST", _matching(_HOST, "give the mail server's name alone; its port is SMTP_PORT")),
        Knob("SMTP_PORT", whole(1, 65535), 587),
        Knob("SMTP_TLS", one_of("starttls", "tls", "none"), "starttls"),
        Knob("SMTP_FROM", _matching(_NAMED_ADDRESS, "give one e-mail address")),
        Knob("SMTP_TO", addresses),
        Knob("SMTP_USER", _word),
        Knob("SMTP_PASSWORD", str, is_secret=True),
        Knob("SLACK_WEBHOOK_URL", url, is_secret=True),
        Knob("SLACK_CHANNEL", _matching(_CHANNEL, "give a channel such as #gpus")),
        Knob("PAGERDUTY_KEY", _matching(r"[A-Za-z0-9_+-]{16,80}", "give the Events API v2 integration key"),
             is_secret=True),
        Knob("TELEGRAM_BOT_TOKEN", _matching(r"\d{3,}:[\w-]{20,}", "give the token as BotFather shows it"),
             is_secret=True),
        Knob("TELEGRAM_CHAT_ID", chat),
        Knob("DISCORD_WEBHOOK_URL", url, is_secret=True),
        Knob("PUSHOVER_TOKEN", _pushover, is_secret=True),
        Knob("PUSHOVER_USER", _pushover, is_secret=True),
        Knob("WEBHOOK_URL", url, is_secret=True),
        Knob("DEADMAN_URL", url, is_secret=True),
        Knob("COLLECTOR_URL", url, "http://collector:8080", is_secret=True),
        Knob("QUIET_HOURS", quiet_hours),
        Knob("GRAFANA_URL", link),
        Knob("PROMETHEUS_URL", link),
        Knob("TRAINVITALS_URL", link),
    )
}  # fmt: skip
# What each way needs, the one that names it first.
NEEDED = {
    "email": ("SMTP_HOST", "SMTP_FROM", "SMTP_TO"),
    "slack": ("SLACK_WEBHOOK_URL",),
    "pagerduty": ("PAGERDUTY_KEY",),
    "telegram": ("TELEGRAM_BOT_TOKEN", "TELEGRAM_CHAT_ID"),
    "discord": ("DISCORD_WEBHOOK_URL",),
    "pushover": ("PUSHOVER_TOKEN", "PUSHOVER_USER"),
    "webhook": ("WEBHOOK_URL",),
    "deadman": ("DEADMAN_URL",),
}
_MORE = (("SMTP_USER", "SMTP_PASSWORD"), ("SMTP_PASSWORD", "SMTP_USER"), ("SMTP_USER", "SMTP_HOST"),
         ("SLACK_CHANNEL", "SLACK_WEBHOOK_URL"))  # fmt: skip
_OWN_MACHINE = frozenset({"localhost", "127.0.0.1", "[::1]"})
Values = dict[str, Any]


def read(environ: Mapping[str, str]) -> Values:
    """Every knob's value, None where it is unset; SettingError names the one that cannot be used."""
    values = {name: knob.read(given) if (given := environ.get(name, "").strip()) else knob.default
              for name, knob in KNOBS.items()}  # fmt: skip
    pairs = [(one, other) for names in NEEDED.values() for one in names for other in names]
    for given, missing in (*pairs, *_MORE):
        if values[given] is not None and values[missing] is None:
            raise SettingError(missing, "", f"give it too, for {given} is set")
    _refuse_open_password(values)
    _refuse_the_other_s_port(values)
    return values


def _refuse_open_password(values: Values) -> None:
    """Alertmanager would refuse at each message."""
    if values["SMTP_USER"] and values["SMTP_TLS"] == "none" and values["SMTP_HOST"] not in _OWN_MACHINE:
        fix = "choose starttls or tls, for a password is sent only over an encrypted connection"
        raise SettingError("SMTP_TLS", "none", fix)


def _refuse_the_other_s_port(values: Values) -> None:
    """Each would wait for the other's first word."""
    for port, way in ((465, "tls"), (587, "starttls")):
        if values["SMTP_HOST"] and values["SMTP_PORT"] == port and values["SMTP_TLS"] not in (way, "none"):
            raise SettingError("SMTP_TLS", values["SMTP_TLS"], f"choose {way}, which is what port {port} is for")


def configured(values: Values) -> list[str]:
    return [channel for channel, names in NEEDED.items() if values[names[0]] is not None]
