"""What can be taken along: each format is loaded and read back, and pictures are pictures."""

import csv
import io
import json
import math
import re
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Download
from pyarrow import parquet

from tests.collector.support import Served, serving, wait_for
from tests.web_page.recorded import BAD, SPIKE, SPIKE_LOSS, STEPS, Journal
from tests.web_page.screen import Screen

Opens = Callable[..., Screen]
PNG = b"\x89PNG\r\n\x1a\n"


def loaded(screen: Screen, name: str, place: int = 0) -> Download:
    menu = screen.page.locator(f"#{screen.ask('document.body.dataset.view')} details.menu", has_text="Export")
    if menu.get_attribute("open") is None:
        menu.locator("summary").click()
    with screen.page.expect_download() as found:
        menu.get_by_text(name, exact=True).nth(place).click()
    return found.value


def text(download: Download) -> str:
    assert download.failure() is None
    return Path(download.path()).read_text(encoding="utf-8")


def rows_of_csv(content: str) -> list[dict[str, Any]]:
    return [{name: float(value) for name, value in row.items() if name in ("step", "loss") and value}
            | {"rank": row.get("rank")} for row in csv.DictReader(io.StringIO(content))]  # fmt: skip


READERS: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "CSV": rows_of_csv,
    "JSON lines": lambda content: [json.loads(line) for line in content.splitlines()],
    "JSON": lambda content: list(json.loads(content)["rows"]),
}


@pytest.mark.parametrize("name", READERS)
def test_a_run_is_read_back_whole(opens: Opens, name: str) -> None:
    screen = opens("?view=training&run=spiky")
    download = loaded(screen, name)
    assert "spiky" in download.suggested_filename
    rows = [row for row in READERS[name](text(download)) if str(row.get("rank", "0")) in ("0", "")]
    losses = {int(row["step"]): float(row["loss"]) for row in rows if row.get("loss") is not None}
    assert len(losses) == STEPS
    assert losses[SPIKE] == SPIKE_LOSS
    assert math.isnan(losses[BAD[0]])


def test_of_a_zoom_what_is_shown_can_be_taken(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky&from=100&to=120")
    rows = rows_of_csv(text(loaded(screen, "CSV", 1)))
    assert {row["step"] for row in rows} == set(range(100, 121))


def test_of_the_machine_too(opens: Opens) -> None:
    screen = opens("?view=system&range=300")
    screen.drawn("use")
    rows = list(csv.DictReader(io.StringIO(text(loaded(screen, "CSV")))))
    assert {row["gpu_index"] for row in rows} == {str(gpu) for gpu in range(8)}
    host = list(csv.DictReader(io.StringIO(text(loaded(screen, "CSV", 1)))))
    assert float(host[-1]["cpu_usage_percent"]) >= 0


def test_of_a_zoom_into_the_machine_what_is_shown_can_be_taken(opens: Opens, journal: Journal) -> None:
    begin, end = round(journal.began) + 100, round(journal.began) + 200
    screen = opens(f"?view=system&from={begin}&to={end}&gpu=3&gpu=5")
    screen.drawn("use")
    rows = list(csv.DictReader(io.StringIO(text(loaded(screen, "CSV")))))
    assert {row["gpu_index"] for row in rows} == {"3", "5"}
    assert {row["gpu_index"]: float(row["utilization_percent"]) for row in rows} == {"3": 92, "5": 90}
    times = [datetime.fromisoformat(row["timestamp"].replace("Z", "+00:00")).timestamp() for row in rows]
    assert begin <= min(times) < begin + 11 and end - 11 < max(times) <= end


def test_parquet_is_read_back(opens: Opens) -> None:
    download = loaded(opens("?view=training&run=spiky&rank=0"), "Parquet")
    assert download.suggested_filename.endswith(".parquet")
    rows = [row for row in parquet.read_table(download.path()).to_pylist() if row["rank"] == 0]
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert rows[SPIKE - 1]["loss"] == SPIKE_LOSS and math.isnan(rows[BAD[0] - 1]["loss"])


@pytest.fixture
def without_pyarrow(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "pyarrow.py").write_text("raise ModuleNotFoundError('pyarrow')")
    journal = Journal(tmp_path / "journal")
    journal.go_on(3)
    with serving(journal.root, "--simulate", "1", env={"PYTHONPATH": str(tmp_path)}) as served:
        yield served
    journal.end()


def test_parquet_says_what_it_needs_where_that_is_not_installed(opens: Opens, without_pyarrow: Served) -> None:
    screen = opens("?view=training", address=without_pyarrow.address)
    screen.drawn("loss")
    menu = screen.page.locator("#training details.menu", has_text="Export")
    menu.locator("summary").click()
    menu.get_by_text("Parquet", exact=True).click()
    screen.see("#training .menu .words", "pip install pyarrow")
    assert all("501" in said for said in screen.said)
    screen.said.clear()


def test_a_chart_is_taken_as_a_picture(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky")
    screen.drawn("loss")
    with screen.page.expect_download() as found:
        screen.press("Loss as PNG")
    content = Path(found.value.path()).read_bytes()
    assert found.value.suggested_filename.startswith("trainvitals-loss-")
    assert content.startswith(PNG)
    width, height = struct.unpack(">II", content[16:24])
    assert width > 800 and height > 300


# How many of a picture's pixels, right of the axis and beneath the title, are not of the card.
INK = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const { width, height } = image;
  const ctx = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
  ctx.drawImage(image, 0, 0);
  const pixels = new Uint32Array(ctx.getImageData(100, 80, width - 150, 80).data.buffer);
  return pixels.filter((pixel) => pixel !== pixels[0]).length;
}"""


def test_every_chart_is_taken_as_it_is_now_seen_or_not(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky", viewport={"width": 700, "height": 400})
    screen.drawn("memory")
    screen.page.evaluate("window.scrollTo(0, 0)")
    screen.drawn("loss")
    assert screen.ask("document.querySelector('#chart-learning-rate .plot').chart.plot === null")
    screen.page.keyboard.press("+")
    screen.page.wait_for_url(re.compile("from="))
    screen.until("document.querySelector('#chart-loss .plot').chart.lines[0]?.x[0] > 500")
    pictures: list[Download] = []
    screen.page.on("download", lambda picture: pictures.extend([picture]))
    screen.page.locator("#training details.menu", has_text="Export").locator("summary").click()
    screen.page.get_by_text("Every chart as PNG").click()
    charts = ("loss", "gradient-norm", "learning-rate", "tokens", "step-time", "split", "memory")
    wait_for(lambda: screen.ask("1") and len(pictures) >= len(charts))
    assert {name for name in charts for one in pictures if f"-{name}-2" in one.suggested_filename} == set(charts)
    for one in pictures:
        inked = screen.page.evaluate(INK, b64encode(Path(one.path()).read_bytes()).decode())
        assert inked > 500, one.suggested_filename
    assert screen.ask("document.querySelector('#chart-memory .plot').chart.plot.scales.x.min > 500")
