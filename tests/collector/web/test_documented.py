"""Every call of the API is documented, and so is each key of an answer."""

import re
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route

from tests.collector.agent.written import FIRST, NOON, run_folder, steps
from tests.collector.journal.helpers import add
from tests.collector.web.asking import ask
from trainvitals.agent.history import HISTORY_FIELDS, HOST_FIELDS
from trainvitals.agent.service import Agent
from trainvitals.journal import index
from trainvitals.journal.record import timestamp_at
from trainvitals.web.app import make_app

DOCS = Path(__file__).parents[3] / "docs"
SCREENS = (DOCS / "screens.md").read_text()


def test_every_call_is_in_the_docs(app: Starlette) -> None:
    told = "".join(path.read_text() for path in DOCS.glob("*.md"))
    calls = [route.path for route in app.routes if isinstance(route, Route) and route.path.startswith("/api/")]
    assert len(calls) > 8
    for call in calls:
        words = re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), call)
        assert re.search(rf"{re.escape(words)}\b", told), f"{words} is documented nowhere"


def keys(answer: Any) -> set[str]:
    if isinstance(answer, list):
        return set().union(*map(keys, answer))
    return set().union(answer.keys(), *map(keys, answer.values())) if isinstance(answer, dict) else set()


def test_every_key_of_what_is_told_of_a_run_is_in_the_docs(tmp_path: Path) -> None:
    folder = run_folder(
        tmp_path, told={"start": timestamp_at(NOON), "status": "finished", "resumed": [timestamp_at(NOON)]}
    )
    for rank in (0, 1):
        add(folder / FIRST.replace(".jsonl", f".rank{rank}.jsonl"), steps(1, 10, step_duration_seconds=0.5 + rank))
    app = make_app(Agent([], tmp_path, host="here"))
    for path in ("", "/gemma/series", "/gemma/events", "/gemma/ranks"):
        for key in keys(ask(app, f"/api/v1/runs{path}").json()):
            assert re.search(rf"\b{key}\b", SCREENS), f"{key} of /api/v1/runs{path} is not documented"


def test_the_fields_that_are_kept_in_memory_and_those_of_the_index_are_in_the_docs() -> None:
    for name in (*HISTORY_FIELDS, *HOST_FIELDS):
        assert f"`{name}`" in SCREENS
    journal = (DOCS / "journal.md").read_text()
    for name in index.Block._fields:
        assert f"`{name}`" in journal
    for name in HOST_FIELDS:
        assert name in journal or not name.endswith(("per_second", "busy_ratio"))
