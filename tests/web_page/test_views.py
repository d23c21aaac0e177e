"""Each view over a real agent: what it shows, and what one can do with it."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.collector.support import Served
from tests.web_page.recorded import BAD, HOSTILE, LONG, SPIKE, SPIKE_LOSS, STEPS, Journal
from tests.web_page.screen import PLOT, SHOWN, Screen

Opens = Callable[..., Screen]


def test_the_overview_says_at_a_glance_what_runs_and_whether_it_is_well(opens: Opens, journal: Journal) -> None:
    screen = opens()
    screen.see("#verdict-words", "lives: step")
    expect(screen.page.locator("#gpu-tiles > li")).to_have_count(8)
    screen.see("#gpu-tiles > li", re.compile(r"GPU 0\s*Simulated H100"))
    screen.see("#gpu-tiles > li", re.compile(r"Heat\s*\d+ / 87 °C"))
    screen.see("#run-cards", re.compile(rf"lives.*step {journal.step} of 1,000", re.DOTALL))
    screen.see("#ended", "spiky")
    assert screen.page.title().startswith(("✓", "▲", "✖"))
    screen.picture("overview")


def test_a_new_step_is_on_the_page_without_being_asked_for(opens: Opens, journal: Journal) -> None:
    screen = opens()
    journal.go_on(7)
    screen.see("#run-cards", f"step {journal.step} of 1,000")
    screen.see("#verdict-words", f"step {journal.step} of 1,000")


def test_charts_of_a_run_keep_the_spike_and_tell_of_the_gap(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky&smooth=0")
    for chart in ("loss", "gradient-norm", "learning-rate", "tokens", "step-time", "split", "memory"):
        screen.drawn(chart)
    words = screen.page.locator("#chart-loss .plot").get_attribute("aria-label") or ""
    assert "values that are no numbers" in words
    highest = screen.ask("Math.max(...document.querySelector('#chart-loss .plot').chart.lines[0].high)")
    assert highest == SPIKE_LOSS
    screen.picture("training")


def test_a_zoom_refines_what_is_seen_and_stands_in_the_address(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky")
    screen.drawn("loss")
    screen.drag("loss", 0.45, 0.55)
    screen.page.wait_for_url(re.compile("from=.*to="))
    screen.until("document.querySelector('#chart-loss .plot')?.chart.lines[0]?.high === null")
    low, high = screen.ask(f"({SHOWN})('loss')")
    assert SPIKE - 200 < low < SPIKE < high < SPIKE + 200
    # All charts of the view have moved.
    assert screen.ask(f"({SHOWN})('gradient-norm')") == [low, high]
    again = opens(screen.page.url.removeprefix(f"{screen.address}/"))
    again.drawn("loss")
    assert again.ask(f"({SHOWN})('loss')") == [low, high]
    screen.press("Show all (0)")
    screen.until(f"({SHOWN})('loss')[1] >= {STEPS - 10}")
    screen.page.go_back()
    screen.until(f"({SHOWN})('loss')[0] === {low}")


def test_buttons_and_keys_zoom_and_pan(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky&from=1000&to=2000")
    screen.drawn("loss")
    screen.press("Zoom in (+)")
    screen.until(f"({SHOWN})('loss').join() === '1250,1750'")
    screen.page.keyboard.press("]")
    screen.until(f"({SHOWN})('loss').join() === '1375,1875'")
    screen.page.keyboard.press("-")
    screen.until(f"({SHOWN})('loss').join() === '1125,2125'")
    screen.page.keyboard.press("0")
    screen.until(f"({SHOWN})('loss')[1] >= {STEPS - 10}")


@pytest.mark.parametrize(("axis", "low", "high"), [("step", 1, STEPS), ("elapsed", 0, STEPS), ("tokens", 0, 4e8)])
def test_runs_are_laid_over_each_other_by_the_axis_that_is_chosen(opens: Opens, axis: str, low: int, high: int) -> None:
    screen = opens(f"?view=training&run=spiky&run=calm&x={axis}")
    screen.drawn("loss")
    expect(screen.page.locator("#chart-loss .legend li")).to_have_count(2)
    shown = screen.ask(f"({SHOWN})('loss')")
    assert shown[0] >= low and 0.01 * high < shown[1] <= 1.3 * high
    lengths = screen.ask("document.querySelector('#chart-loss .plot').chart.lines.map((line) => line.x.length)")
    assert lengths[1] == 200 < lengths[0]


def test_a_run_without_that_axis_says_so_and_the_others_are_shown(opens: Opens) -> None:
    screen = opens(f"?view=training&run=spiky&run={LONG}&x=tokens")
    screen.see("#training .banner", f"{LONG}: x: 'tokens' cannot be used")
    screen.drawn("loss")
    expect(screen.page.locator("#chart-loss .legend li")).to_have_count(1)
    assert all("400 (Bad Request)" in said for said in screen.said)
    screen.said.clear()


def test_the_slowest_rank_is_named_and_can_be_laid_over_another(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky")
    screen.see(".ranks .slowest", re.compile("rank 1"))
    expect(screen.page.locator(".ranks tbody tr")).to_have_count(2)
    screen.page.get_by_label("Show rank 1 in the charts").check()
    screen.page.wait_for_url(re.compile("rank=0%2C1"))
    expect(screen.page.locator("#chart-loss .legend li")).to_have_count(2)
    screen.see("#chart-loss .legend", "spiky, rank 1")


def test_a_metric_of_ones_own_is_chosen_from_a_list(opens: Opens) -> None:
    screen = opens("?view=training&run=spiky")
    screen.page.get_by_text("More metrics").click()
    screen.page.get_by_label("eval/accuracy").check()
    screen.drawn("field-eval-2f-accuracy")
    assert "field=eval%2Faccuracy" in screen.page.url


def test_a_chart_has_a_table_for_who_does_not_see_it(opens: Opens) -> None:
    screen = opens(f"?view=training&run=spiky&from={BAD[0] - 2}&to={BAD[0] + 3}&smooth=0")
    screen.drawn("loss")
    screen.press("Loss as a table")
    rows = screen.page.locator("#chart-loss tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == [f"step {step:,}" for step in range(BAD[0] - 2, BAD[0] + 4)]
    assert [row.split("\t")[1] == "NaN" for row in rows] == [False, False, True, True, True, True]


def test_the_machine_is_shown_over_time_under_one_cursor(opens: Opens) -> None:
    screen = opens("?view=system&range=300")
    for chart in ("use", "memory", "heat", "power", "cpu", "host-memory"):
        screen.drawn(chart)
    expect(screen.page.locator(".chips button")).to_have_count(8)
    screen.page.locator("#chart-use .u-over").hover()
    assert screen.ask(f"['heat', 'cpu'].map((id) => {PLOT}.cursor.left > 0)") == [True, True]
    screen.picture("system")
    screen.page.locator(".chips").get_by_text("GPU 3").click()
    screen.page.wait_for_url(re.compile("gpu=3"))
    screen.until("document.querySelector('#chart-use .plot')?.chart.lines.length === 1")


@pytest.mark.parametrize(("chart", "words"), [
    ("disk-busy", "20 %"), ("disk-read", "200 MB/s"), ("disk-written", "3.0 MB/s"), ("network-in", "400 kB/s"),
    ("network-out", "50.0 kB/s")])  # fmt: skip
def test_what_disks_and_networks_carry_is_among_it(opens: Opens, chart: str, words: str) -> None:
    screen = opens("?view=system&range=3600")
    screen.drawn(chart)
    told = f"document.querySelector('#chart-{chart} .plot').chart"
    first = f"{told}.lines[0].mean.find((value) => value !== null && value !== undefined)"
    assert screen.ask(f"{told}.spec.words({first})") == words


@pytest.mark.parametrize("seconds", [300, 3600, 2_592_000])
def test_it_looks_back_five_minutes_or_thirty_days(opens: Opens, seconds: int) -> None:
    screen = opens("?view=system")
    screen.press({300: "5 min", 3600: "1 h", 2_592_000: "30 d"}[seconds])
    screen.until(f"((x) => x[1] - x[0] === {seconds})(({SHOWN})('use'))")
    screen.drawn("use")


def test_what_is_over_is_listed_and_leads_to_its_charts(opens: Opens) -> None:
    screen = opens("?view=alerts")
    rows = screen.page.locator(".past tbody tr")
    expect(rows.get_by_text("NaN last night")).to_have_count(1)
    expect(rows.get_by_text("GpuTemperatureHigh")).to_have_count(1)
    screen.page.get_by_label("Severity").select_option("page")
    expect(rows.get_by_text("GpuTemperatureHigh")).to_have_count(0)
    screen.page.get_by_label("Severity").select_option("")
    screen.page.get_by_label("Filter past findings").fill("gpu 3")
    expect(rows).to_have_count(1)
    screen.see(".past tbody", re.compile(r"GpuTemperatureHigh.*GPU 3 is at 84 °C.*10 min", re.DOTALL))
    rows.get_by_role("link", name="Show in the charts").click()
    screen.drawn("heat")
    assert "view=system" in screen.page.url and "gpu=3" in screen.page.url


def test_a_past_one_opens_to_all_that_was_known_of_it(opens: Opens, agent: Served) -> None:
    screen = opens("?view=alerts")
    row = screen.page.locator(".past tbody tr", has_text="GpuTemperatureHigh")
    expect(row.get_by_text("Look at the fans")).to_be_hidden()
    row.locator("summary").click()
    for words in ("What to do first: Look at the fans", "value 84, threshold 80", "TrainingSlower: run spiky: slower",
                  re.compile("Acknowledged .* by ada: “ordered”")):  # fmt: skip
        expect(row).to_contain_text(words)
    screen.picture("past")
    assert screen.barriers() == []
    past = json.loads(agent.get("/api/v1/findings?state=past"))["findings"]
    name = next(one["id"] for one in past if one["what"] == "NaN last night")
    led = opens(f"?view=alerts&finding={name}").page.locator(".past tr.meant")
    expect(led).to_contain_text("NaN last night")
    expect(led.get_by_text("found by the agent")).to_be_visible()


def test_a_name_that_is_markup_is_text(opens: Opens) -> None:
    screen = opens()
    screen.see("#ended", HOSTILE)
    screen.page.locator("#ended").get_by_text(HOSTILE).click()
    screen.drawn("loss")
    screen.see(".picker", HOSTILE)
    assert "owned" not in screen.page.title()
    assert screen.page.locator("main img, main script").count() == 0


def test_keys_lead_through_the_views_and_are_listed(opens: Opens) -> None:
    screen = opens()
    for key, name in (("2", "training"), ("3", "system"), ("4", "alerts"), ("1", "overview")):
        screen.page.keyboard.press(key)
        screen.page.wait_for_url(re.compile(f"view={name}"))
        expect(screen.page.locator(f"#{name}")).to_be_visible()
        assert screen.ask("document.activeElement.id") == "main"
    screen.page.keyboard.press("?")
    expect(screen.page.locator("#help-dialog")).to_be_visible()
    screen.see("#help-keys", "Charts: zoom in")
    screen.page.get_by_label("Listen to these keys").uncheck()
    screen.page.keyboard.press("Escape")
    screen.page.keyboard.press("2")
    expect(screen.page.locator("#overview")).to_be_visible()
