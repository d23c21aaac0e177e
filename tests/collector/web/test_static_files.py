"""The page's files as they are sent: packed for whoever takes that, kept by whoever has them, and few bytes in all."""

import gzip
import json
import re
from pathlib import Path

import pytest
from starlette.applications import Starlette

from tests.collector.web.asking import LOCAL, ask
from trainvitals.web import answers
from trainvitals.web.app import STATIC

PACKED = {**LOCAL, "accept-encoding": "gzip, deflate, br"}
SCRIPT = "/static/js/main.js"
MAX_BYTES = 120_000


@pytest.mark.parametrize("path", ["/", SCRIPT, "/static/css/base.css", "/static/icons/well.svg"])
def test_files_are_packed_for_whoever_takes_that(app: Starlette, path: str) -> None:
    packed, plain = ask(app, path, PACKED), ask(app, path)
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body)
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-type"] == plain.headers["content-type"]
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert packed.headers["cache-control"] == "no-cache"
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize("headers", [LOCAL, PACKED])
def test_who_has_a_file_is_not_sent_it_again(app: Starlette, headers: dict[str, str]) -> None:
    first = ask(app, SCRIPT, headers)
    again = ask(app, SCRIPT, {**headers, "if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert ask(app, SCRIPT, {**headers, "if-none-match": '"another"'}).status == 200


def test_packed_and_plain_are_two_answers(app: Starlette) -> None:
    assert ask(app, SCRIPT, PACKED).headers["etag"] != ask(app, SCRIPT).headers["etag"]


def test_what_is_changed_on_disk_is_sent_anew(app: Starlette, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainvitals.web.static_files import PackedFiles

    files = PackedFiles(directory=tmp_path)
    told = []
    for text in ("let a = 1;", "let a = 22;"):
        (tmp_path / "a.js").write_text(text)
        told.append(gzip.decompress(ask(files, "/a.js", PACKED).body).decode())
    assert told == ["let a = 1;", "let a = 22;"]


@pytest.mark.parametrize(("least", "encoding"), [(10, "gzip"), (10**6, None)])
def test_long_answers_of_the_api_are_packed_too(
    app: Starlette, monkeypatch: pytest.MonkeyPatch, least: int, encoding: str | None
) -> None:
    monkeypatch.setattr(answers, "PACKED_BYTES", least)
    path = "/api/v1/node?from=1000000000&to=1000003600"
    packed, plain = ask(app, path, PACKED), ask(app, path)
    assert (packed.headers.get("content-encoding"), plain.headers.get("content-encoding")) == (encoding, None)
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert packed.headers["cache-control"] == "no-store"
    assert json.loads(gzip.decompress(packed.body) if encoding else packed.body) == plain.json()


@pytest.mark.parametrize("path", ["findings?state=open", "findings", "alerts", "silences", "snapshot", "runs"])
def test_whatever_the_page_asks_for_is_packed(app: Starlette, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(answers, "PACKED_BYTES", 10)
    assert ask(app, f"/api/v1/{path}", PACKED).headers.get("content-encoding") == "gzip"


def imported(name: str, found: set[str]) -> set[str]:
    if name not in found:
        found.add(name)
        for other in re.findall(r'from "\./(\w+)\.js"', (STATIC / "js" / f"{name}.js").read_text()):
            imported(other, found)
    return found


def test_what_is_asked_for_early_is_what_each_view_is_made_of() -> None:
    script = (STATIC / "js/early.js").read_text()
    listed = {name: set(names.split()) for name, names in re.findall(r'(\w+):\s+"([\w ]+)"', script)}
    first = imported("main", set())
    views = re.findall(r'import\("\./(\w+)\.js"\)', (STATIC / "js/main.js").read_text())
    assert listed == {"all": first, **{view: imported(view, set()) - first for view in views}}


def test_all_of_the_page_is_few_bytes() -> None:
    """Whatever a first load may ask for: every file, packed."""
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in STATIC.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < MAX_BYTES, sizes
