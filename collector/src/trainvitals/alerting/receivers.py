"""Alertmanager's receivers: what a page, a ticket and a trial are sent by.

receivers(values, secrets)  ->  [{"name": "page", "slack_configs": [{"api_url_file": "…/secrets/slack", …}]}, …]

`secrets` is the folder that the secrets will lie in: the configuration names their files and holds none.
"""

from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from trainvitals.alerting.channels import NEEDED, Values, configured

Config = dict[str, Any]

COLLECTOR_PATH = "/api/v1/alertmanager"
# What rings at night is for pages alone.
_PAGES_ONLY = frozenset({"pagerduty"})
# The dead man's switch is told by the Watchdog alone.
_NOT_FOR_ALERTS = frozenset({"deadman"})
TRIAL = "test-"
_SECRETS = {"SMTP_PASSWORD": "smtp-password", "SLACK_WEBHOOK_URL": "slack", "PAGERDUTY_KEY": "pagerduty",
            "TELEGRAM_BOT_TOKEN": "telegram", "DISCORD_WEBHOOK_URL": "discord", "PUSHOVER_TOKEN": "pushover-token",
            "PUSHOVER_USER": "pushover-user", "WEBHOOK_URL": "webhook", "DEADMAN_URL": "deadman"}  # fmt: skip
COLLECTOR_SECRET = "collector"


def secrets(values: Values) -> dict[str, str]:
    """What each secret's file holds."""
    found = {file: values[name] for name, file in _SECRETS.items() if values[name] is not None}
    if _has_password(values["COLLECTOR_URL"]):
        found[COLLECTOR_SECRET] = values["COLLECTOR_URL"].rstrip("/") + COLLECTOR_PATH
    return found


def receivers(values: Values, folder: PurePath) -> list[Config]:
    there = configured(values)
    people = [name for name in there if name not in _NOT_FOR_ALERTS]
    by_day = [name for name in people if name not in _PAGES_ONLY]
    found = [_receiver("page", people, values, folder, is_page=True),
             _receiver("ticket", by_day, values, folder, is_page=False),
             {"name": "collector", **_collector(values, folder)},
             {"name": "nobody"}]  # fmt: skip
    if "deadman" in there:
        found.append(_receiver("deadman", ["deadman"], values, folder, is_page=False))
    found += [_receiver(TRIAL + name, [name], values, folder, is_page=True) for name in there]
    return [*found, {"name": f"{TRIAL}collector", **_collector(values, folder)}]


def _receiver(name: str, channels: Iterable[str], values: Values, folder: PurePath, *, is_page: bool) -> Config:
    found: Config = {"name": name}
    for channel in channels:
        key, make = _MAKERS[channel]
        found.setdefault(key, []).append({"send_resolved": True, **make(values, folder, is_page)})
    return found


def _email(values: Values, folder: PurePath, is_page: bool) -> Config:
    found: Config = {
        "to": values["SMTP_TO"], "from": values["SMTP_FROM"],
        "smarthost": f"{values['SMTP_HOST']}:{values['SMTP_PORT']}",
        "require_tls": values["SMTP_TLS"] == "starttls", "force_implicit_tls": values["SMTP_TLS"] == "tls",
        "headers": {"Subject": _template("subject")},
        "text": _template("text"), "html": _template("html"),
    }  # fmt: skip
    if values["SMTP_USER"]:
        found |= {"auth_username": values["SMTP_USER"], "auth_password_file": str(folder / "smtp-password")}
    return found


def _slack(values: Values, folder: PurePath, is_page: bool) -> Config:
    found: Config = {
        "api_url_file": str(folder / "slack"), "username": "TrainVitals", "link_names": False,
        "title": _template("slack.title"), "title_link": _template("link"), "fallback": _template("slack.title"),
        "text": _template("slack.text"),
    }  # fmt: skip
    if values["SLACK_CHANNEL"]:
        found["channel"] = values["SLACK_CHANNEL"]
    return found


def _pagerduty(values: Values, folder: PurePath, is_page: bool) -> Config:
    return {
        "routing_key_file": str(folder / "pagerduty"), "client": "TrainVitals", "client_url": _template("link"),
        "severity": "critical", "description": _template("subject"), "class": "{{ .CommonLabels.alertname }}",
        "source": _template("source"), "details": {"what": _template("text")},
    }  # fmt: skip


def _telegram(values: Values, folder: PurePath, is_page: bool) -> Config:
    # Plain text: in HTML the name of a run could end the message.
    return {"bot_token_file": str(folder / "telegram"), "chat_id": values["TELEGRAM_CHAT_ID"], "parse_mode": "",
            "message": _template("message"), "disable_notifications": not is_page}  # fmt: skip


def _discord(values: Values, folder: PurePath, is_page: bool) -> Config:
    return {"webhook_url_file": str(folder / "discord"), "title": _template("subject"), "message": _template("text"),
            "username": "TrainVitals"}  # fmt: skip


def _pushover(values: Values, folder: PurePath, is_page: bool) -> Config:
    # 2 rings until somebody confirms.
    urgent = '{{ if eq .Status "firing" }}2{{ else }}0{{ end }}'
    return {"token_file": str(folder / "pushover-token"), "user_key_file": str(folder / "pushover-user"),
            "title": _template("subject"), "message": _template("text"), "url": _template("link"),
            "url_title": "Look", "priority": urgent if is_page else "0"}  # fmt: skip


def _webhook(values: Values, folder: PurePath, is_page: bool) -> Config:
    return {"url_file": str(folder / "webhook")}


def _deadman(values: Values, folder: PurePath, is_page: bool) -> Config:
    # A Watchdog that ended must not count as a sign of life.
    return {"url_file": str(folder / "deadman"), "send_resolved": False}


_MAKERS: dict[str, tuple[str, Callable[[Values, PurePath, bool], Config]]] = {
    "email": ("email_configs", _email), "slack": ("slack_configs", _slack),
    "pagerduty": ("pagerduty_configs", _pagerduty), "telegram": ("telegram_configs", _telegram),
    "discord": ("discord_configs", _discord), "pushover": ("pushover_configs", _pushover),
    "webhook": ("webhook_configs", _webhook), "deadman": ("webhook_configs", _deadman),
}  # fmt: skip
INTEGRATIONS = {name: key.removesuffix("_configs") for name, (key, _) in _MAKERS.items()} | {"collector": "webhook"}
CHANNELS = (*NEEDED, "collector")


def _collector(values: Values, folder: PurePath) -> Config:
    url: str = values["COLLECTOR_URL"]
    if _has_password(url):
        where = {"url_file": str(folder / COLLECTOR_SECRET)}
    else:
        where = {"url": url.rstrip("/") + COLLECTOR_PATH}
    return {"webhook_configs": [{"send_resolved": True, **where, "max_alerts": 500}]}


def _has_password(url: str) -> bool:
    return "@" in urlsplit(url).netloc


def _template(name: str) -> str:
    return f'{{{{ template "trainvitals.{name}" . }}}}'
