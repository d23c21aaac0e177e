"""What an agent found itself stands beside what Alertmanager told, once, on the page and in the terminal."""

from pathlib import Path
from typing import Any

import pytest

from trainvitals.agent.told import FILE
from trainvitals.alerting.listing import beside
from trainvitals.cli import main
from trainvitals.detect.finding import Finding, Place
from trainvitals.detect.shown import as_alert
from trainvitals.journal.record import encode

BEGAN = 1_753_876_800.0
NAN = Finding("TrainingNonFinite", "page", "the loss is nan at step 812", place=Place("gemma", "0"))
HOT = Finding("GpuTemperatureHigh", "ticket", "the GPU is at 84 °C", place=Place(gpu="3", uuid="GPU-3"))


def told(finding: Finding, source: str, **labels: str) -> dict[str, Any]:
    alert = as_alert(finding, BEGAN, "gpu1")
    return {**alert, "labels": {**alert["labels"], "source": source, **labels}}


def test_what_both_say_is_said_once() -> None:
    own = as_alert(NAN, BEGAN, "gpu1")
    assert beside([own], [told(NAN, "agent"), told(NAN, "prometheus")]) == [own]


def test_another_machine_s_and_another_rank_s_stay() -> None:
    own, elsewhere = as_alert(NAN, BEGAN, "gpu1"), told(NAN, "agent", instance="gpu2")
    other = told(NAN, "prometheus", rank="1")
    assert beside([own], [elsewhere, other]) == [own, elsewhere, other]


def test_the_worst_comes_first() -> None:
    found = beside([as_alert(HOT, BEGAN, "gpu1")], [told(NAN, "prometheus")])
    assert [alert["labels"]["severity"] for alert in found] == ["page", "ticket"]


def test_of_what_is_equally_bad_the_newest_comes_first() -> None:
    found = beside([as_alert(NAN, BEGAN, "gpu1")], [told(NAN._replace(kind="TrainingStalled"), "prometheus")
                                                    | {"starts": "2025-07-30T13:00:00.000Z"}])  # fmt: skip
    assert [alert["name"] for alert in found] == ["TrainingStalled", "TrainingNonFinite"]
    assert [alert["name"] for alert in beside(found, (), {"gemma"})] == ["TrainingStalled", "TrainingNonFinite"]
    other = as_alert(HOT._replace(severity="page"), BEGAN - 60, "gpu1")
    assert beside([*found, other], (), {"gemma"})[0]["name"] == HOT.kind


def test_evidence_is_in_its_text() -> None:
    alert = as_alert(NAN, BEGAN, "gpu1", [HOT])
    assert "With it: GpuTemperatureHigh: the GPU is at 84 °C." in alert["annotations"]["description"]
    assert alert["annotations"]["runbook_url"].endswith("/TrainingNonFinite.md")


def test_the_command_lists_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "gpu" / "gpu1"
    folder.mkdir(parents=True)
    kept = {**NAN._asdict(), "place": list(NAN.place), "opened": BEGAN}
    (folder / FILE).write_bytes(encode({"open": [kept, "no finding", {"kind": 3}]}))
    assert main(["alerts", "--dir", str(tmp_path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "TrainingNonFinite" in line]
    assert line.split()[:6] == ["page", "TrainingNonFinite", "run", "gemma,", "rank", "0,"]
    assert line.endswith("the loss is nan at step 812")
