"""What a run tells of itself holds no password, wherever it came in."""

from contextlib import suppress
from pathlib import Path

import trainvitals as tv
from tests.run.support import run_folders, run_json


def test_addresses_in_tags_and_errors_are_told_without_their_passwords(tmp_path: Path) -> None:
    address = "postgres://me:hush-hush@host/db"
    run = tv.start("x", dir=tmp_path, tags=[address])
    run.describe({"a": 1})
    assert run_json(*run_folders(tmp_path))["tags"] == ["postgres://(hidden)@host/db"]
    run.describe(tags=[address, "b"])
    with suppress(ConnectionError), run:
        raise ConnectionError(f"no answer from {address}")
    told = "".join(path.read_text() for path in tmp_path.rglob("*.json*"))
    assert "no answer from postgres://(hidden)@host/db" in told and "hush-hush" not in told
