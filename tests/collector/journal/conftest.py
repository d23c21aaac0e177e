"""A busy machine makes any write slow: here only the tests of slow storage call one so."""

import pytest

from trainvitals.journal import append


@pytest.fixture(autouse=True)
def quick_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "SLOW_WRITE_SECONDS", 60.0)
