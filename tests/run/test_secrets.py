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


def test_no_secret_of_a_configuration_is_kept_by_whatever_usual_name(tmp_path: Path) -> None:
    secrets = {"openai_key": "hush", "db_pass": "hush", "pass": "hush", "sshkey": "hush", "cookie": "hush"}
    texts = {"command": "train --api-key hush --lr 3", "body": '{"password": "hush", "n": 1}'}
    kept = {"forward_pass": "kept-1", "tokens": 5, "key": "kept-2", "words": "note: kept-3"}
    tv.start("x", dir=tmp_path, config={**secrets, **texts, **kept}).finish()
    told = run_json(*run_folders(tmp_path))["config"]
    assert told == {**dict.fromkeys(secrets, "(hidden)"), **kept, "command": "train --api-key (hidden) --lr 3",
                    "body": '{"password": (hidden), "n": 1}'}  # fmt: skip
