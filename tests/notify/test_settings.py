"""Which channels a text names, and one line that names key, value and fix where one is wrong, without its secret."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trainvitals.alerting.channels import QuietHours
from trainvitals.errors import SettingError, install_words
from trainvitals.notify import channels, plan

MAIL = {"SMTP_HOST": "mail.example", "SMTP_FROM": "tv@gpu.example", "SMTP_TO": "a@gpu.example", "SMTP_USER": "tv",
        "SMTP_PASSWORD": "hush-mail"}  # fmt: skip
HOOK = "https://hooks.example/hush-hook?a=1,2"
SLACK = "https://hooks.slack.example/services/T0/B0/hush-slack"
ALL = {**MAIL, "SLACK_WEBHOOK_URL": SLACK, "WEBHOOK_URL": HOOK, "APPRISE_URL": "ntfy://hush-topic\njson://hush.example"}


def names(text: str, environ: Mapping[str, str] = ALL) -> list[str]:
    return [channel.shown for channel in channels(text, environ)]


@pytest.mark.parametrize(("text", "found"), [
    ("", []),
    (" , ", []),
    ("email", ["email"]),
    ("alertmanager=http://127.0.0.1:9093,email, slack", ["alertmanager 127.0.0.1", "email", "slack"]),
    ("alertmanager=https://u:hush-user@am.example/prefix/", ["alertmanager am.example"]),
    ("webhook", ["webhook hooks.example"]),
    (f"webhook={HOOK},email", ["webhook hooks.example", "email"]),
    ("webhook=https://a.example/x,webhook=https://a.example/y", ["webhook a.example", "webhook a.example 2"]),
    ("apprise=mailto://u:hush@gpu.example?to=a@b.example,c@d.example,slack", ["mailto", "slack"]),
    ("apprise=ntfy://a/,apprise=pover://u@t?priority=high", ["ntfy", "pover"]),
    ("apprise", ["ntfy", "json"]),
    ("email\nslack\n", ["email", "slack"]),
    ("pages:email,pages:apprise=ntfy://x", ["email", "ntfy"]),
])  # fmt: skip
def test_a_text_names_channels(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(("text", "only_pages"), [
    ("email", False), ("pages:email", True), ("pages:webhook=https://a.example/x", True), ("apprise=ntfy://x", False),
    ("apprise=pagerduty://key@api", True), ("apprise=opsgenie://key", True),
])  # fmt: skip
def test_what_rings_may_get_pages_alone(text: str, only_pages: bool) -> None:
    [channel] = channels(text, ALL)
    assert (channel.only_pages, channel.wants_ends) == (only_pages, not only_pages)


WRONG = [
    ("carrier-pigeon", {}, "--notify (TRAINVITALS_NOTIFY): 'carrier-pigeon' cannot be used: give alertmanager=URL"),
    ("https://hooks.slack.example/hush", {}, "--notify (TRAINVITALS_NOTIFY): '(not shown)' cannot be used: give"),
    ("hush=pw", {}, "--notify (TRAINVITALS_NOTIFY): 'hush' cannot be used: give"),
    ("alertmanager", {}, "'' cannot be used: give Alertmanager's address: alertmanager=http://127.0.0.1:9093"),
    ("alertmanager=127.0.0.1:9093", {}, "'(not shown)' cannot be used: give Alertmanager's address"),
    ("pages:alertmanager=http://127.0.0.1:9093", {}, "let its routes choose"),
    ("webhook=hush.example/x", {}, "--notify (TRAINVITALS_NOTIFY): '(not shown)' cannot be used: give the whole"),
    ("webhook", {}, "WEBHOOK_URL: '' cannot be used: give it, for --notify (TRAINVITALS_NOTIFY) names webhook"),
    ("webhook", {"WEBHOOK_URL": "ftp://hush"}, "WEBHOOK_URL: '(not shown)' cannot be used: give the whole address"),
    ("slack", {}, "SLACK_WEBHOOK_URL: '' cannot be used: give it"),
    ("slack", {"SLACK_WEBHOOK_URL": "hush"}, "SLACK_WEBHOOK_URL: '(not shown)' cannot be used"),
    ("email", {}, "SMTP_HOST: '' cannot be used: give it"),
    ("email", {**MAIL, "SMTP_TO": ""}, "SMTP_TO: '' cannot be used: give it too, for SMTP_HOST is set"),
    ("email", {**MAIL, "SMTP_PORT": "mail"}, "SMTP_PORT: 'mail' cannot be used: give a whole number"),
    ("email", {**MAIL, "SMTP_TLS": "none"}, "SMTP_TLS: 'none' cannot be used: choose starttls or tls"),
    ("apprise=hush", {}, "'(not shown)' cannot be used: give an address as apprise writes it"),
    ("apprise", {}, "APPRISE_URL: '' cannot be used: give an address"),
    ("email=x@y.example", MAIL, "give alertmanager=URL, email"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "environ", "told"), WRONG)
def test_what_is_wrong_is_one_line_without_its_secret(text: str, environ: Mapping[str, str], told: str) -> None:
    with pytest.raises(SettingError) as caught:
        channels(text, environ)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hush" not in str(caught.value) or told.count("hush")


@pytest.mark.parametrize(("text", "way", "told"), [
    (f"webhook={HOOK},emial", "webhook hooks.example", "'emial' cannot be used: email is nearest; give alertmanager="),
    (f"webhook={HOOK}\npages:Slack", "webhook hooks.example", "'pages:Slack' cannot be used: slack is nearest"),
    (f"webhook={HOOK},alertmanger=http://hush:x@am.example", "webhook hooks.example", "'alertmanger' cannot be used"),
    (f"webhook={HOOK},slack={SLACK}", "webhook hooks.example", "'slack' cannot be used: give alertmanager=URL"),
    ("apprise=mailto://u:hush@gpu.example?to=a@b.example,c@d.example,web-hook", "mailto", "webhook is nearest"),
])  # fmt: skip
def test_a_name_that_is_nearly_right_is_no_part_of_the_address_before_it(text: str, way: str, told: str) -> None:
    refused: list[SettingError] = []
    assert [channel.shown for channel in plan(text, {}, refused=refused).channels] == [way]
    [error] = refused
    assert told in str(error) and "hush" not in str(error)
    with pytest.raises(SettingError):
        channels(text, {})


@pytest.mark.parametrize("rest", ["x,y,high", "?to=a@b.example,mail@c.example", "x%2Cemial", "?tags=mail"])
def test_what_else_stands_behind_a_comma_stays_in_the_address(rest: str) -> None:
    assert names(f"webhook=https://a.example/{rest},slack") == ["webhook a.example", "slack"]


@pytest.mark.parametrize(("text", "environ", "told"), WRONG)
def test_an_agent_goes_on_without_it(text: str, environ: Mapping[str, str], told: str) -> None:
    refused: list[SettingError] = []
    found = plan(f"{text},webhook={HOOK}", environ, refused=refused)
    assert [channel.shown for channel in found.channels] == ["webhook hooks.example"]
    assert len(refused) == 1 and told in str(refused[0])


def test_of_several_things_that_are_wrong_each_is_left_out_alone() -> None:
    refused: list[SettingError] = []
    section = {"notify": ["email", 3, "slack"], "heartbeat": "nowhere", "quiet_hours": "late"}
    environ = {"SLACK_WEBHOOK_URL": SLACK, "WEBHOOK_URL_FILE": "/nowhere/at/all", "TRAINVITALS_URL": "x y"}
    found = plan("webhook", environ, section, refused=refused)
    assert [channel.shown for channel in found.channels] == ["slack"]
    assert (found.heartbeat, found.hours, found.page) == (None, None, "")
    assert sorted({error.key for error in refused}) == ["SMTP_HOST", "TRAINVITALS_URL", "WEBHOOK_URL",
                                                        "WEBHOOK_URL_FILE", "heartbeat", "notify[1]",
                                                        "quiet_hours"]  # fmt: skip


def test_what_another_way_lacks_is_not_asked_for() -> None:
    assert names("slack", {"SLACK_WEBHOOK_URL": SLACK, "PUSHOVER_USER": "x", "SMTP_TO": "nonsense"}) == ["slack"]


def test_apprise_that_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SettingError) as caught:
        channels("apprise=ntfy://x", {})
    assert install_words("notify") in str(caught.value)


def test_secrets_lie_in_files(tmp_path: Path) -> None:
    environ = {}
    for name, secret in (("SMTP_PASSWORD", "hush"), ("SLACK_WEBHOOK_URL", SLACK), ("WEBHOOK_URL", HOOK),
                         ("APPRISE_URL", "ntfy://x"), ("TRAINVITALS_NOTIFY", "email,slack\nwebhook,apprise"),
                         ("TRAINVITALS_HEARTBEAT_URL", "https://hc.example/x")):  # fmt: skip
        (tmp_path / name).write_text(f"{secret}\n")
        environ[f"{name}_FILE"] = str(tmp_path / name)
    mail = {name: value for name, value in MAIL.items() if name != "SMTP_PASSWORD"}
    found = plan("", {**mail, **environ})
    assert [channel.shown for channel in found.channels] == ["email", "slack", "webhook hooks.example", "ntfy"]
    assert found.heartbeat is not None and found.heartbeat.key == "TRAINVITALS_HEARTBEAT_URL"


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe", b"x" * 70000])
def test_a_file_that_holds_no_secret_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingError) as caught:
        channels("webhook", {"WEBHOOK_URL_FILE": str(path)})
    assert str(caught.value) == (f"WEBHOOK_URL_FILE: '{path}' cannot be used: name a file that can be read, and holds "
                                 "the secret alone")  # fmt: skip


def test_a_secret_and_its_file_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"WEBHOOK_URL_FILE.*give this or WEBHOOK_URL, not both"):
        channels("webhook", {"WEBHOOK_URL": HOOK, "WEBHOOK_URL_FILE": str(tmp_path / "x")})


def test_a_section_of_a_file_adds_to_what_the_environment_names() -> None:
    section = {"notify": ["email", {"webhook": HOOK}, {"slack": None}], "heartbeat": "https://hc.example/file",
               "quiet_hours": "22:00-07:00 Europe/Berlin"}  # fmt: skip
    found = plan("alertmanager=http://127.0.0.1:9093", {**ALL, "TRAINVITALS_URL": "https://tv.example/"}, section)
    assert [channel.shown for channel in found.channels] == ["alertmanager 127.0.0.1", "email", "webhook hooks.example",
                                                             "slack"]  # fmt: skip
    assert found.hours == QuietHours("22:00", "07:00", "Europe/Berlin")
    assert found.heartbeat is not None and found.heartbeat.key == "heartbeat"
    assert found.page == "https://tv.example"


def test_of_heartbeat_and_quiet_hours_the_environment_s_count() -> None:
    section = {"heartbeat": "https://hc.example/file", "quiet_hours": "22:00-07:00"}
    found = plan("", {"QUIET_HOURS": "20:00-06:00"}, section, heartbeat="https://hc.example/flag")
    assert found.hours == QuietHours("20:00", "06:00", "UTC")
    assert found.heartbeat is not None and found.heartbeat.key == "TRAINVITALS_HEARTBEAT_URL"


@pytest.mark.parametrize(("section", "told"), [
    ({"notfy": ["email"]}, "notfy: '(not shown)' cannot be used: choose one of notify, heartbeat, quiet_hours"),
    ({"notify": 3}, "notify: '(not shown)' cannot be used: give a list of"),
    ({"notify": [3]}, "notify[0]: '(not shown)' cannot be used: give alertmanager=URL"),
    ({"notify": ["email", {"a": 1, "b": 2}]}, "notify[1]: '(not shown)' cannot be used: give"),
    ({"notify": [{"webhook": "hush"}]}, "notify[0]: '(not shown)' cannot be used: give the whole address"),
    ({"notify": ["pigeon"]}, "notify[0]: 'pigeon' cannot be used: give"),
    ({"heartbeat": "hush"}, "heartbeat: '(not shown)' cannot be used: give the whole address"),
    ({"heartbeat": 3}, "heartbeat: '(not shown)' cannot be used: give a text"),
    ({"quiet_hours": "late"}, "quiet_hours: 'late' cannot be used: give a time span"),
])  # fmt: skip
def test_what_is_wrong_in_a_section_is_named_by_its_place(section: Mapping[str, Any], told: str) -> None:
    with pytest.raises(SettingError) as caught:
        plan("", MAIL, section)
    assert str(caught.value).startswith(told)


def test_no_secret_shows_where_a_channel_is_printed() -> None:
    found = plan("alertmanager=https://u:hush-user@am.example,email,slack,webhook,apprise", ALL,
                 heartbeat="https://hc.example/hush")  # fmt: skip
    assert "hush" not in repr(found)


@pytest.mark.parametrize(("text", "said"), [
    ("alertmanager=https://user:hush-user@am.example", "Post https://user:hush-user@am.example: no"),
    ("email", "535 hush-mail is no password"),
    ("slack", f"no_service at {SLACK}, /services/T0/B0/hush-slack or hush-slack"),
    ("webhook", f"Cannot POST /hush-hook?a=1,2 of {HOOK}"),
    ("webhook=https://u:hush%21pw@a.example/x", "u:hush!pw, hush%21pw and u:hush%21pw are wrong"),
    ("apprise=tgram://123:hush-token/-100?x=hush-x", "https://api.telegram.org/bot123:hush-token/sendMessage x=hush-x"),
    ("apprise=mailto://me:hush-pw@gpu.example", "login me hush-pw failed"),
])  # fmt: skip
def test_no_secret_stays_in_what_a_receiver_says(text: str, said: str) -> None:
    [channel] = channels(text, ALL)
    told = channel.hide(f"first\nsecond {said}" + "x" * 1000)
    assert "hush" not in told and "(not shown)" in told and "\n" not in told and len(told) < 300
