"""Rules as the engine asks them: a finding of theirs opens, closes, and goes on over a change of the file."""

import pytest

pytest.importorskip("yaml", reason="yaml is not installed")

from tests.detect.rules.test_file import Clock
from trainvitals.detect.engine import Engine
from trainvitals.detect.rules.file import RulesFile
from trainvitals.journal.record import timestamp_at

TEXT = """
- {name: Hot loss, when: loss > 2 * target, for: 3 steps, severity: page, message: "Loss is {loss:.1f}"}
- {name: Hot card, when: temperature_celsius > 60, message: "GPU {gpu} has {temperature_celsius} C"}
- {name: Both, when: loss > 2 and gpu.temperature_celsius > 60}
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "alerts.yml").write_text(TEXT)
    clock = Clock()
    file = RulesFile(tmp_path / "alerts.yml", clock=clock)
    file.clock = clock
    return file


def step(engine, number, loss):
    when = 1_750_000_000.0 + number
    record = {"timestamp": timestamp_at(when), "step": number, "loss": loss, "target": 1.0}
    engine.training("gemma", 0, [record])
    engine.gpu(when, "3", "GPU-3", {"temperature_celsius": 70.0})
    return [(change.state, change.finding.kind) for change in engine.tick(when)]


def test_findings_of_rules_open_and_close_as_any(file):
    engine = Engine(rules=file)
    file.watch_gpus(engine.book.gpus)
    engine.info("gemma", {}, {0: ["GPU-3"]})
    assert step(engine, 1, 3.0) == [("open", "Hot card")]
    assert step(engine, 2, 3.0) == [("open", "Both")]
    assert step(engine, 3, 3.0) == [("open", "Hot loss")]
    file.path.write_text(TEXT.replace("Hot card", "Warm card"))
    file.clock.now += 2
    assert step(engine, 4, 3.0) == [("open", "Warm card")]
    told = [step(engine, number, 1.0) for number in range(5, 80)]
    closed = [kind for changes in told for state, kind in changes if state == "close"]
    assert {"Hot loss", "Both", "Hot card"} <= set(closed) and "Warm card" not in closed


def test_a_run_that_is_forgotten_is_forgotten_by_its_rules(file):
    engine = Engine(rules=file)
    step(engine, 1, 3.0)
    step(engine, 2, 3.0)
    engine.forget("gemma")
    assert ("open", "Hot loss") not in step(engine, 3, 3.0)
