"""What the environment comes to: a configuration that Alertmanager takes, and errors that name the key and the fix."""

import os
import stat
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerting.support import FULL, ROOT, SECRETS, amtool, made
from tests.collector.support import run
from trainvitals.alerting.channels import KNOBS, NEEDED, read
from trainvitals.alerting.writing import template, text, write
from trainvitals.errors import SettingError


def environments() -> Iterator[Any]:
    yield pytest.param({}, id="nothing")
    yield pytest.param(FULL, id="everything")
    for channel, names in NEEDED.items():
        yield pytest.param({name: FULL[name] for name in names}, id=channel)
    for one, other in combinations(NEEDED, 2):
        names = (*NEEDED[one], *NEEDED[other], "QUIET_HOURS")
        yield pytest.param({name: FULL[name] for name in names}, id=f"{one} and {other}")
    for hours in ("00:00-23:59", "08:30-17:00", "23:59-00:00", "22:00-07:00 America/New_York"):
        yield pytest.param({"QUIET_HOURS": hours}, id=hours)
    yield pytest.param(
        {name: FULL[name] for name in NEEDED["email"]} | {"SMTP_TLS": "tls", "SMTP_PORT": "465"}, id="tls"
    )
    yield pytest.param({"SMTP_HOST": "[::1]", "SMTP_FROM": "a@b", "SMTP_TO": "c@d", "SMTP_TLS": "none"}, id="IPv6")
    yield pytest.param(dict.fromkeys(KNOBS, ""), id="all empty")


@pytest.mark.parametrize("environ", list(environments()))
def test_alertmanager_takes_what_is_made(tmp_path: Path, environ: Mapping[str, str]) -> None:
    made(tmp_path, environ)
    told = amtool("check-config", tmp_path / "alertmanager.yml")
    assert told.returncode == 0, told.stdout + told.stderr


WRONG = {
    "SMTP_HOST": "smtp://mail", "SMTP_PORT": "70000", "SMTP_TLS": "ssl", "SMTP_FROM": "nobody",
    "SMTP_TO": "a@b, nobody", "SLACK_WEBHOOK_URL": "hooks.slack.example/secret", "SLACK_CHANNEL": "{{ .Status }}",
    "PAGERDUTY_KEY": "secret", "TELEGRAM_BOT_TOKEN": "secret", "TELEGRAM_CHAT_ID": "@gpus", "SMTP_USER": "{{ a }}",
    "DISCORD_WEBHOOK_URL": "ftp://secret", "PUSHOVER_TOKEN": "secret", "PUSHOVER_USER": "secret{}",
    "WEBHOOK_URL": "https://secret .example", "DEADMAN_URL": "https://secret/{{ . }}", "QUIET_HOURS": "22-7",
    "GRAFANA_URL": "grafana:3000", "PROMETHEUS_URL": "http://prom/#x", "TRAINVITALS_URL": "http://tv/?x=1",
    "COLLECTOR_URL": "collector:8080",
}  # fmt: skip


def test_each_knob_but_a_password_can_be_wrong() -> None:
    assert set(KNOBS) - set(WRONG) == {"SMTP_PASSWORD"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named_with_its_fix_and_no_secret(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingError) as raised:
        write(tmp_path / "out", {**FULL, name: WRONG[name]})
    assert raised.value.key == name
    assert raised.value.fix
    assert "secret" not in str(raised.value)
    assert (WRONG[name] in str(raised.value)) != KNOBS[name].is_secret
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "value"), [
    ("WEBHOOK_URL", "http://hook:port/secret"), ("COLLECTOR_URL", "http://[collector:8080"), ("GRAFANA_URL", "http://a:0"),
    ("TELEGRAM_CHAT_ID", "9" * 26), ("GRAFANA_URL", "https://me:secret@grafana.example"),
])  # fmt: skip
def test_what_alertmanager_or_a_browser_could_not_use(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name) as raised:
        write(tmp_path, {**FULL, name: value})
    assert "secret" not in str(raised.value)


# What Go's url.Parse says no to, each for a reason of its own.
NO_URLS = ("https://hook.example/%zz", "https://hook.example/a%", "https://a|b.example/", "https://a%20b.example/",
           "https://me:pa%ss@hook.example/", "https://me:pa|ss@hook.example/", "https://m\u00e9:x@hook.example/",
           "https://hook.example/#%zz", "https://a^b.example", "https://a`b.example",
           "https://hook.example/\x7f")  # fmt: skip
URLS = ("https://hook.example/a%20b?rate=50%", "https://me:p%25%7Css@hook.example:8443/x", "http://[fd00::7]:9093/x",
        "http://a_b.example", "https://hook.example/a|b", "http://m\u00e9.example/",
        "https://a!b:c@hook.example")  # fmt: skip


@pytest.mark.parametrize("name", ["WEBHOOK_URL", "COLLECTOR_URL", "DEADMAN_URL"])
@pytest.mark.parametrize("url", NO_URLS)
def test_an_address_that_alertmanager_cannot_read_is_refused_without_it(name: str, url: str) -> None:
    with pytest.raises(SettingError, match=r"a % for itself is %25") as raised:
        KNOBS[name].read(url)
    assert url not in str(raised.value)


@pytest.mark.parametrize("url", NO_URLS)
def test_alertmanager_itself_does_not_read_it(tmp_path: Path, url: str) -> None:
    (tmp_path / "own.yml").write_text(yaml.safe_dump(
        {"route": {"receiver": "a"}, "receivers": [{"name": "a", "webhook_configs": [{"url": url}]}]}))  # fmt: skip
    assert amtool("check-config", tmp_path / "own.yml").returncode != 0


@pytest.mark.parametrize("url", ["https://prom.example/%zz", "http://a|b.example"])
def test_so_is_a_link_that_prometheus_cannot_read(url: str) -> None:
    with pytest.raises(SettingError, match="a % as %25"):
        KNOBS["PROMETHEUS_URL"].read(url)


@pytest.mark.parametrize("url", URLS)
def test_an_address_with_signs_that_alertmanager_reads_is_taken(tmp_path: Path, url: str) -> None:
    made(tmp_path, {"WEBHOOK_URL": url, "COLLECTOR_URL": url})
    told = amtool("check-config", tmp_path / "alertmanager.yml")
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize(("name", "value"), [
    ("SMTP_FROM", "me@x>"), ("SMTP_FROM", "<me@x"), ("SMTP_FROM", "Me me@x"), ("SMTP_HOST", "..."),
    ("SMTP_HOST", "mail..example"), ("SMTP_HOST", ".mail"),
])  # fmt: skip
def test_half_an_address_is_none(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name):
        KNOBS[name].read(value)


@pytest.mark.parametrize(("name", "value"), [
    ("SMTP_FROM", "me@x"), ("SMTP_FROM", "<me@x>"), ("SMTP_FROM", "The GPUs <me@x.example>"), ("SMTP_HOST", "mail"),
    ("SMTP_HOST", "mail.example.org."), ("SMTP_HOST", "10.0.0.5"), ("SMTP_HOST", "[::1]"),
])  # fmt: skip
def test_a_whole_one_is_taken(name: str, value: str) -> None:
    assert KNOBS[name].read(value) == value


@pytest.mark.parametrize("hours", ["24:00-07:00", "07:00-07:00", "7-8", "22:00-07:00 Mars/Olympus", "22:00", "a-b"])
def test_quiet_hours_that_are_none(tmp_path: Path, hours: str) -> None:
    with pytest.raises(SettingError, match=r"QUIET_HOURS: .* give a time span"):
        write(tmp_path, {"QUIET_HOURS": hours})


@pytest.mark.parametrize(("given", "missing"), [
    ("SMTP_TO", "SMTP_HOST"), ("SMTP_HOST", "SMTP_FROM"), ("TELEGRAM_CHAT_ID", "TELEGRAM_BOT_TOKEN"),
    ("TELEGRAM_BOT_TOKEN", "TELEGRAM_CHAT_ID"), ("PUSHOVER_USER", "PUSHOVER_TOKEN"),
    ("SLACK_CHANNEL", "SLACK_WEBHOOK_URL"), ("SMTP_PASSWORD", "SMTP_USER"),
])  # fmt: skip
def test_half_of_a_channel_is_no_channel(tmp_path: Path, given: str, missing: str) -> None:
    with pytest.raises(SettingError, match="is set") as raised:
        write(tmp_path, {given: FULL[given]})
    assert raised.value.key == missing
    assert given in raised.value.fix


def test_a_password_over_an_open_connection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="SMTP_TLS: 'none'"):
        write(tmp_path, {**FULL, "SMTP_TLS": "none"})
    write(tmp_path, {**FULL, "SMTP_TLS": "none", "SMTP_HOST": "localhost"})


def test_secrets_lie_in_files_of_their_own_and_nowhere_else(tmp_path: Path) -> None:
    made(tmp_path, FULL)
    written = (tmp_path / "alertmanager.yml").read_text() + (tmp_path / "templates" / "trainvitals.tmpl").read_text()
    assert not [secret for secret in SECRETS if secret in written]
    files = list((tmp_path / "secrets").iterdir())
    kept = " ".join(file.read_text() for file in files)
    assert [secret for secret in SECRETS if secret not in kept] == []
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o400}
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700


def test_what_is_taken_out_of_the_environment_is_gone(tmp_path: Path) -> None:
    made(tmp_path, FULL)
    config = made(tmp_path, {"WEBHOOK_URL": "https://hook.example"})
    assert [file.name for file in (tmp_path / "secrets").iterdir()] == ["webhook"]
    assert sorted(name for receiver in config["receivers"] for name in receiver if name != "name") == [
        "webhook_configs"] * 5  # fmt: skip


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    made(tmp_path, FULL)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    made(tmp_path, FULL)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_wrong_value_leaves_the_old_configuration(tmp_path: Path) -> None:
    write(tmp_path, FULL)
    before = (tmp_path / "alertmanager.yml").read_bytes()
    with pytest.raises(SettingError):
        write(tmp_path, {"SMTP_TLS": "ssl"})
    assert (tmp_path / "alertmanager.yml").read_bytes() == before


def test_the_command_tells_what_it_found_and_no_secret(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("".join(f'{name}="{value}"\n' for name, value in FULL.items()))
    told = run("alertmanager-config", "--env-file", str(file), "--out", str(tmp_path / "out"))
    assert told.returncode == 0, told.stderr
    assert "by email, slack, pagerduty, telegram, discord, pushover, webhook, deadman" in told.stdout
    assert not [secret for secret in SECRETS if secret in told.stdout + told.stderr]


def test_with_nothing_set_the_command_says_where_alerts_are_seen(tmp_path: Path) -> None:
    told = run("alertmanager-config", "--out", str(tmp_path), env=dict.fromkeys(KNOBS, ""))
    assert (told.returncode, "trainvitals alerts" in told.stdout) == (0, True)


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("SMTP_TLS=tls\n")
    told = run("alertmanager-config", "--env-file", str(file), "--out", str(tmp_path), env={"SMTP_TLS": "ssl"})
    assert (told.returncode, "SMTP_TLS: 'ssl'" in told.stderr) == (2, True)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingError, match=r"--out: .* name a folder"):
        write(tmp_path / "file", {})


def test_the_files_for_an_alertmanager_of_ones_own_are_what_the_command_makes() -> None:
    """UPDATE_GOLDEN=1 writes them anew."""
    values, folder = read({}), ROOT / "prometheus" / "alertmanager"
    for path, wanted in ((folder / "alertmanager.yml", text(values, Path("/etc/alertmanager"))),
                         (folder / "templates" / "trainvitals.tmpl", template(values))):  # fmt: skip
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(wanted)
        assert path.read_text() == wanted


def test_each_knob_is_told_of_in_the_docs() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    assert [name for name in KNOBS if f"`{name}`" not in page] == []
