"""What is written about it is true: headings as the rules have them, docs/notify.md as the code has it."""

import re
from pathlib import Path

import pytest
import yaml

from tests.notify.support import HOST, opened, updated
from trainvitals.alerting.channels import NEEDED
from trainvitals.config import SETTINGS
from trainvitals.detect.advice import ADVICE
from trainvitals.detect.finding import Place
from trainvitals.notify import channels, limits, settings, summaries
from trainvitals.notify.message import Item, Message
from trainvitals.notify.webhook import content

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "notify.md").read_text(encoding="utf-8")


def rules() -> dict[str, set[str]]:
    """The headings of each name."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "prometheus" / "rules").glob("*.yml"):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    words = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"<\1>", rule["annotations"]["summary"])
                    found.setdefault(rule["alert"], set()).add(words)
    return found


@pytest.mark.parametrize("kind", ADVICE)
def test_a_finding_has_the_heading_of_its_rule(kind: str) -> None:
    heading = summaries.summary(kind, Place(run="<run>"), "<instance>")
    assert heading in rules().get(kind, {heading})
    assert kind in summaries.SUMMARIES and "of your own" not in heading


def test_no_heading_is_of_a_kind_that_there_is_not() -> None:
    assert summaries.SUMMARIES.keys() == ADVICE.keys()


def test_the_page_names_every_form_and_setting() -> None:
    names = [setting.variable for setting in SETTINGS.values() if setting.name in ("notify", "heartbeat_url")]
    for name in (*names, *settings._SECRETS, *(f"{name}_FILE" for name in settings._SECRETS), "QUIET_HOURS",
                 *(knob for way in ("email", "slack", "webhook") for knob in NEEDED[way])):  # fmt: skip
        assert f"`{name}`" in PAGE, name
    for form in ("alertmanager=", "email", "slack", "webhook", "webhook=", "apprise", "apprise=", "pages:"):
        assert f"`{form}" in PAGE, form


def test_every_example_of_the_page_is_understood() -> None:
    environ = {"SMTP_HOST": "mail.example", "SMTP_FROM": "a@b.example", "SMTP_TO": "a@b.example",
               "SLACK_WEBHOOK_URL": "https://hooks.slack.example/x", "WEBHOOK_URL": "https://hook.example/x",
               "APPRISE_URL": "ntfy://ntfy.sh/x"}  # fmt: skip
    found = re.findall(r"TRAINVITALS_NOTIFY=(\S+)|--notify (\S+)", PAGE)
    assert len(found) >= 3
    for variable, flag in found:
        assert channels((variable or flag).strip("'\"`"), environ)


def test_the_page_lists_every_field_of_the_webhook() -> None:
    one = updated(opened().finding._replace(threshold=1.0, step=3), evidence=(opened().finding,))
    items = (Item(one, "open", "page", more=1), Item(one._replace(state="close"), "resolved", "page"))
    told = content(Message(items, HOST, is_trial=True))
    fields = set(told) | {name for finding in told["findings"] for name in finding}
    assert not [name for name in fields if f'"{name}"' not in PAGE and f"`{name}`" not in PAGE]


def test_the_page_s_numbers_are_those_of_the_table() -> None:
    for kind, pace in limits.PACES.items():
        if kind != "alertmanager":
            assert f"| {kind} | {pace.gather_seconds:g} s | {pace.apart_seconds:g} s | {pace.burst} |" in PAGE
    for words in (f"{limits.QUEUE_ENTRIES:,} entries", f"{limits.QUEUE_BYTES // 2**20} MiB",
                  f"{limits.ATTEMPT_SECONDS:g} s", f"{limits.REFUSALS} times", f"{limits.KEPT_SECONDS / 86400:g} days",
                  f"{limits.ALERT_LASTS_SECONDS / 60:g} minutes", f"{limits.FIRES_SECONDS:g} s",
                  f"a page ends there {limits.LINGERS_SECONDS['page']:g} s later than here",
                  f"a ticket {limits.LINGERS_SECONDS['ticket']:g} s"):  # fmt: skip
        assert words in PAGE, words
