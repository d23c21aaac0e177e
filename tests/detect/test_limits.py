"""The table of numbers: each is used, each can be set, and what cannot be is named."""

import re
from pathlib import Path

import pytest

from tests.detect.support import BEGAN, judged, kinds, lines
from trainvitals.detect import advice, limits_page
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Change
from trainvitals.detect.limits import NAMES, Limits, limits
from trainvitals.errors import SettingError

DETECT = Path(advice.__file__).parent
RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"


def test_every_number_is_used() -> None:
    code = "\n".join(path.read_text() for path in DETECT.glob("*.py") if path.name != "limits.py")
    assert [name for name in NAMES if not re.search(rf"\.{name}\b", code)] == []


def test_the_page_lists_each_number_with_what_it_is_for() -> None:
    page = (RUNBOOKS.parent / "thresholds.md").read_text()
    assert page == limits_page.markdown(), "docs/thresholds.md differs from limits.py: run `make docs`"
    assert [name for name in NAMES if page.count(f"`{name}`") != 1] == []
    assert not re.search(r"\|\s*\|$", page, re.MULTILINE)


def test_a_number_of_ones_own_counts() -> None:
    records = lines(60, gradient_norm=lambda step: 4.0)
    assert judged(records) == []
    assert kinds(judged(records, Engine(limits({"gradient_norm": 3})))) == {"TrainingGradientNormHigh"}


def test_steps_stay_whole_numbers() -> None:
    assert limits({"straggler_steps": 12.0, "straggler": 2}) == Limits(straggler_steps=12, straggler=2.0)


@pytest.mark.parametrize(("given", "said"), [
    ({"stragler": 2}, "the nearest one is straggler"),
    ({"straggler": "2"}, "give a number of 0 or more"),
    ({"straggler": True}, "give a number of 0 or more"),
    ({"straggler": -1}, "give a number of 0 or more"),
    ({"straggler": float("nan")}, "give a number of 0 or more"),
    ({3: 1}, "there is no such number"),
])  # fmt: skip
def test_what_cannot_be_is_named(given: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError) as raised:
        limits(given)
    assert said in str(raised.value)
    assert str(next(iter(given))) in str(raised.value)


def test_a_run_brings_thresholds_of_its_own() -> None:
    engine, records = Engine(), lines(60, gradient_norm=lambda step: 4.0)
    engine.info("gemma", {"config": {"alert_thresholds": {"gradient_norm": 3}}}, {})
    engine.info("llama", {"config": {"alert_thresholds": {"gradient_norm": "many"}}}, {})
    assert kinds(judged(records, engine)) == {"TrainingGradientNormHigh"}
    assert judged(records, engine, "llama") == []


def temperatures(engine: Engine, celsius: float, uuid: str = "GPU-3", since: int = 0) -> set[str]:
    found: list[Change] = []
    for second in range(since, since + 200, 5):
        values = {"temperature_celsius": celsius, "ecc_volatile_errors_total_uncorrected": 5}
        engine.gpu(BEGAN + second, "3", uuid, values)
        engine.host(BEGAN + second, {"memory_used_bytes": 80.0, "memory_total_bytes": 100.0})
        found += engine.tick(BEGAN + second)
    return kinds(one for one in found if one.state == "open")


def demanding(given: dict[str, float]) -> Engine:
    engine = Engine(Limits(host_memory_seconds=60.0))
    temperatures(engine, 60.0, since=-400)
    engine.info("gemma", {"config": {"alert_thresholds": given}}, {0: ["GPU-3"]})
    return engine


def test_those_of_gpus_and_host_count_for_the_run_s_own_gpus_beside_the_machine_s() -> None:
    assert temperatures(demanding({"gpu_temperature": 75, "host_memory": 0.7}), 77.0) == {
        "GpuTemperatureHigh", "HostMemoryHigh"}  # fmt: skip
    assert temperatures(demanding({"gpu_temperature": 75}), 77.0, "GPU-4") == set()
    assert temperatures(demanding({"gpu_temperature": 999}), 85.0) == {"GpuTemperatureHigh"}


def test_a_run_s_numbers_go_with_it_and_the_machine_s_memory_stays() -> None:
    engine = demanding({"gpu_temperature": 75})
    engine.gpu(BEGAN, "3", "GPU-3", {"ecc_volatile_errors_total_uncorrected": 6})
    assert kinds(engine.news()) == {"GpuEccUncorrectable"}
    engine.ended("gemma", "finished", BEGAN)
    assert temperatures(engine, 77.0) == set()
    engine.begin("gemma", BEGAN + 200)
    assert temperatures(engine, 77.0, since=200) == {"GpuTemperatureHigh"}
    engine.forget("gemma")
    assert temperatures(engine, 77.0, since=1000) == set()


def test_what_idleness_costs_is_the_machine_s_price_by_a_run_s_numbers_too() -> None:
    engine, found = Engine(), list[Change]()
    engine.info("gemma", {"config": {"alert_thresholds": {"gpu_idle_seconds": 600}}}, {0: ["GPU-3"]})
    for second in range(0, 700, 10):
        for uuid in ("GPU-3", "GPU-4"):
            engine.gpu(BEGAN + second, uuid[-1], uuid, {"utilization_percent": 1.0, "memory_used_mb": 40_000.0})
        engine.host(BEGAN + second, {"node_price_dollars_per_hour": 12.0})
        found += engine.tick(BEGAN + second)
    assert [one.finding.what.rpartition(", ")[2] for one in found] == ["6.00 an hour"]


def test_each_kind_says_what_to_do_first_and_has_a_page() -> None:
    index = (RUNBOOKS / "README.md").read_text()
    of_agents = set(re.findall(r"\| \[(\w+)\]\(\w+\.md\) \| [^|]+ \| agent", index))
    assert of_agents == advice.ADVICE.keys()
    assert all((RUNBOOKS / f"{kind}.md").exists() for kind in advice.ADVICE)
    assert all(text[0].isupper() or text[0] == "`" for text in advice.ADVICE.values())
    assert all(text.endswith(".") for text in advice.ADVICE.values())
