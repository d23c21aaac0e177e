"""The dashboards in the Grafana that GRAFANA_URL names: loaded, read back, looked at in Chromium, and taken out again.

GRAFANA_TOKEN, or GRAFANA_USER and GRAFANA_PASSWORD, say who may. Pictures go to .cache/grafana-pictures.
"""

import base64
import copy
import json
import os
import shutil
import urllib.request

import pytest

from tests.grafana.support import ROOT, UIDS, board, panels

PICTURES = ROOT / ".cache/grafana-pictures"
PIXELS_PER_ROW = 38
WRONG = ("Panel plugin not found", "An unexpected error happened", "Failed to load dashboard", "Query error")
pytestmark = pytest.mark.skipif(not os.environ.get("GRAFANA_URL"), reason="no Grafana here: GRAFANA_URL names none")


def address() -> str:
    return os.environ["GRAFANA_URL"].rstrip("/")


def headers() -> dict[str, str]:
    if token := os.environ.get("GRAFANA_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    user, password = os.environ.get("GRAFANA_USER"), os.environ.get("GRAFANA_PASSWORD")
    assert user and password, "GRAFANA_URL is set: set GRAFANA_TOKEN too, or GRAFANA_USER and GRAFANA_PASSWORD"
    known = f"{user}:{password}"
    return {"Authorization": "Basic " + base64.b64encode(known.encode()).decode()}


def ask(method: str, path: str, body: object = None) -> dict:
    told = headers() | {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address() + path, data=data, headers=told, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.fixture(params=UIDS)
def loaded(request):
    """A copy under a uid of its own: a provisioned dashboard cannot be written, and nobody's is to be overwritten."""
    dashboard = copy.deepcopy(board(request.param))
    dashboard |= {"uid": f"{request.param}-test", "title": f"{dashboard['title']} (test)"}
    ask("POST", "/api/dashboards/db", {"dashboard": dashboard, "overwrite": True, "message": "a test"})
    yield dashboard
    ask("DELETE", f"/api/dashboards/uid/{dashboard['uid']}")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no pictures")
    with playwright.sync_playwright() as started:
        one = started.chromium.launch(executable_path=shutil.which("chromium"))
        yield one
        one.close()


def test_grafana_keeps_what_it_is_given(loaded):
    kept = ask("GET", f"/api/dashboards/uid/{loaded['uid']}")["dashboard"]
    assert [panel["title"] for panel in panels(kept)] == [panel["title"] for panel in panels(loaded)]
    assert [panel.get("targets") for panel in panels(kept)] == [panel.get("targets") for panel in panels(loaded)]


def test_chromium_shows_it_without_an_error(loaded, browser):
    PICTURES.mkdir(parents=True, exist_ok=True)
    # As high as the dashboard: Grafana asks for a panel's data when it comes into view.
    height = 200 + PIXELS_PER_ROW * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in loaded["panels"])
    page = browser.new_page(extra_http_headers=headers(), viewport={"width": 1600, "height": height})
    crashes: list[str] = []
    page.on("pageerror", lambda error: crashes.append(str(error)))
    page.goto(f"{address()}/d/{loaded['uid']}?kiosk&from=now-1h&to=now", wait_until="networkidle")
    page.get_by_text(panels(loaded)[0]["title"], exact=True).first.wait_for(timeout=30_000)
    page.screenshot(path=PICTURES / f"{loaded['uid']}.png", full_page=True)
    said = page.inner_text("body")
    page.close()
    assert [words for words in WRONG if words in said] == []
    assert crashes == []
