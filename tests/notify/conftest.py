"""A receiver, and an environment without settings of somebody's own."""

import os
from collections.abc import Iterator

import pytest

from tests.notify.support import QUICK, Hands, Hook, hook
from trainvitals.notify import courier, limits


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("TRAINVITALS_", "SMTP_", "SLACK_", "WEBHOOK_", "QUIET_", "APPRISE_")
    for name in [name for name in os.environ if name.startswith(ours) or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[Hook]:
    with hook() as found:
        yield found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits between messages and after failures."""
    for kind in limits.PACES:
        monkeypatch.setitem(limits.PACES, kind, QUICK)
    monkeypatch.setattr(courier, "BACKOFF_SECONDS", 0.05)
    monkeypatch.setattr(courier, "MAX_BACKOFF_SECONDS", 0.2)


@pytest.fixture
def hands() -> Hands:
    return Hands()
