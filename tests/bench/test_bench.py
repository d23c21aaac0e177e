"""The benchmarks' own workings: arithmetic, the page, and a monitor that is started, asked and ended. No timing."""

from pathlib import Path

import pytest

from bench import append, browser, report, tail
from bench.imports import heavy_imports
from bench.plain_exporter import gauges
from bench.rows import Row, Section, median, quantile, shown
from bench.stage import Stage


def test_quantiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (quantile(values, 0.5), quantile(values, 0.99), quantile([7.0], 0.99)) == (50, 99, 7)
    assert median([3.0, 1.0, 2.0]) == 2
    assert median([1.0, 2.0]) == 1.5


@pytest.mark.parametrize(("value", "unit", "text"), [
    (0.00334, "ms", "3.34 ms"), (164e-3, "ms", "164 ms"), (2.44e-6, "µs", "2.44 µs"), (38 * 2**20, "MiB", "38.0 MiB"),
    (702805, "", "702,805"),
])  # fmt: skip
def test_a_figure_is_shown_in_its_unit(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_a_row_tells_ratio_and_verdict() -> None:
    row = Row("scrape", 1.0, 4.0, "other", "s", "≤ 1/4", True, "3 each")
    assert row.cells() == ["scrape", "0.25", "1.00 s", "4.00 s (other)", "≤ 1/4", "met", "3 each"]
    assert Row("alone", 1.0, met=False).cells()[1:6] == ["-", "1.00", "-", "", "**missed**"]


def test_the_page_names_neither_folder_nor_host() -> None:
    page = report.page([Section("One", [Row("scrape", 1.0)], ["a note"])], quick=True, load=2.0, seconds=200)
    assert "| scrape |" in page
    assert "a note" in page
    assert "too few samples" in page
    assert str(Path.cwd()) not in page


def test_the_other_exporter_has_as_many_series_as_asked() -> None:
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry()
    gauges(registry, 21)
    assert sum(len(family.samples) for family in registry.collect()) == 21


def test_a_monitor_is_started_asked_and_ended() -> None:
    with Stage(quick=True) as stage:
        plain = stage.plain(16)
        assert plain.memory()["Rss"] > plain.cpu_seconds() >= 0
        assert heavy_imports(stage) == []
    assert not Path(f"/proc/{plain.pid}").exists()


def test_appending_is_timed_and_read_back(tmp_path: Path) -> None:
    appender = append.Appender(tmp_path, "ours.jsonl")
    timings = append._blocks({"ours": appender.append}, range(1))
    appender.close()
    assert len(timings["ours"]) == append.BLOCK
    assert tail._cpu_of_tail(tmp_path / "ours.jsonl", append.BLOCK) >= 0


def test_the_pages_rows_say_what_is_too_much() -> None:
    loads = [browser.Load(100_000, 0.2), browser.Load(130_000, 0.3), browser.Load(90_000, 0.4)]
    opened = [browser.Load(119_000, seconds) for seconds in (0.5, 1.5, 0.6)]
    frames = [1 / 60] * 9 + [0.2]
    rows = browser._rows(browser.Measured(loads, opened, [0.1], frames, 20_000, 1_000_000, 100))
    told = [(row.ours, row.met) for row in rows]
    assert told == [(130, False), (119, True), (20, None), (0.3, None), (0.1, None), (0.6, True), (1 / 60, True),
                    (0.2, None)]  # fmt: skip
    assert [row.what for row in rows[4:6]] == ["the list of 101 runs, p50", "click to a run of 1,000,000 steps, p50"]
