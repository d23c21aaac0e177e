"""Scrapes compared byte for byte with those kept in tests/golden.

`UPDATE_GOLDEN=1 make test` writes them anew; read the difference before you commit it.
"""

import gzip
import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from trainvitals import exporter
from trainvitals.agent.run_state import RunState
from trainvitals.catalog import BY_NAME, METRICS, SERIES
from trainvitals.model import Histogram, Reading, Snapshot, Value

GOLDEN = Path(__file__).parents[1] / "golden"
NOW = 1753878896.789
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
HOST = [Reading("host", (), {"cpu_usage_percent": 12.5, "memory_total_bytes": 2.0**34}, NOW)]


def gpu(number: int, **values: Value) -> list[Reading]:
    labels = (("gpu", str(number)), ("uuid", f"GPU-{number:04d}"))
    about = (*labels, ("name", "NVIDIA H100"), ("pci_bus_id", "00000000:01:00.0"), ("driver_version", "580.95.05"),
             ("cuda_version", "13.0"), ("vbios_version", ""))  # fmt: skip
    read: dict[str, Value] = {
        "utilization_percent": 97.0, "temperature_celsius": 61.0 + number, "power_draw_watts": 612.345,
        "clock_hertz_sm": 1.755e9, "throttle_active": ("sw_power_cap",), "energy_joules_total": 5001408.026,
        "ecc_volatile_errors_total_corrected": 0.0, "pcie_throughput_bytes_per_second_receive": 2.1e9}  # fmt: skip
    known = Reading("gpu_info", about, {"info": 1.0}, NOW)
    return [Reading("gpu", labels, read | values, NOW), known]


def node(gpus: int, expected: int) -> list[Reading]:
    return [*HOST, Reading("host", (), {"gpu_count": float(gpus), "gpu_expected_count": float(expected)}, NOW),
            Reading("source", (("source", "nvml"),), {"up": 1.0, "errors_total": 0.0}, NOW)]  # fmt: skip


def runs() -> list[Reading]:
    good = RunState("gemma-qlora", status="running")
    bad = RunState('evil" {\\}\n<script>', status="killed")
    good.info = {"name": "gemma-qlora", "framework": "plain", "world_size": 2, "planned_steps": 20000}
    step = {
        "timestamp": "2025-07-30T12:34:56.000Z",
        "mine": 0.5,
        "step_duration_seconds": 0.31,
        "data_wait_seconds": 0.1,
    }
    for rank in (0, 1):
        good.rank(rank).take([{**step, "step": number, "loss": 2.0 / number} for number in (1, 2)])
    bad.rank(0).take([{"timestamp": "2025-07-30T12:34:56.000Z", "step": 1, "loss": math.nan}])
    return [*good.readings(NOW), *bad.readings(NOW)]


CASES: dict[str, list[Reading]] = {
    "healthy": [*gpu(0), *gpu(1), *node(2, 2)],
    "no-gpu": node(0, 0),
    "lost-gpu": [*gpu(0), *node(1, 2),
                 Reading("xid", (("gpu", "1"), ("uuid", "GPU-0001"), ("xid", "79")),
                         {"errors_total": 1.0, "last_timestamp_seconds": NOW}, NOW)],
    "two-runs": [*gpu(0), *node(1, 1), *runs()],
}  # fmt: skip


def snapshot(case: str) -> Snapshot:
    return Snapshot(NOW, tuple(CASES[case]))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("accept", "suffix"), [("", "txt"), (OPENMETRICS, "openmetrics")])
def test_golden_scrapes(case: str, accept: str, suffix: str) -> None:
    text, _ = exporter.render(snapshot(case), accept)
    path = GOLDEN / f"{case}.{suffix}"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(text)
    assert path.read_bytes() == text


@pytest.mark.parametrize("case", CASES)
def test_both_formats_are_read_by_the_clients_own_parsers(case: str) -> None:
    text, _ = exporter.render(snapshot(case))
    openmetrics, _ = exporter.render(snapshot(case), OPENMETRICS)
    plain = {(s.name, tuple(sorted(s.labels.items()))) for f in parse_text(text.decode()) for s in f.samples}
    other = {
        (s.name, tuple(sorted(s.labels.items()))) for f in parse_openmetrics(openmetrics.decode()) for s in f.samples
    }
    assert plain == other
    assert plain


@pytest.mark.parametrize("case", CASES)
def test_promtool_finds_nothing_to_say(case: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    text, _ = exporter.render(snapshot(case))
    said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    allowed = (
        "non-histogram and non-summary metrics should not have",
        "use base unit",
        "should not contain abbreviated",
    )
    complaints = [line for line in said.stderr.decode().splitlines() if not any(part in line for part in allowed)]
    assert not complaints


def test_families_are_fresh_each_time_and_in_the_tables_order() -> None:
    first, second = exporter.families(snapshot("healthy")), exporter.families(snapshot("healthy"))
    assert [id(family) for family in first] != [id(family) for family in second]
    places = [list(BY_NAME).index(family.name + ("_total" if family.type == "counter" else "")) for family in first]
    assert places == sorted(places)


def test_the_cases_hold_nothing_that_the_table_does_not() -> None:
    for reading in (reading for case in CASES.values() for reading in case):
        assert set(reading.values) <= set(SERIES[reading.scope]), reading


def test_every_row_of_the_catalogue_can_be_exported() -> None:
    readings = [Reading(scope, tuple((label, "x") for label in _labels(scope)), {field: _any_value(field, scope)}, NOW)
                for scope, fields in SERIES.items() for field in fields]  # fmt: skip
    exported = {family.name for family in exporter.families(Snapshot(NOW, tuple(readings)))}
    assert exported == {
        metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name for metric in METRICS
    }


def _labels(scope: str) -> tuple[str, ...]:
    series = next(iter(SERIES[scope].values()))
    return series.metric.labels[: len(series.metric.labels) - bool(series.metric.split)]


def _any_value(field: str, scope: str) -> Value:
    kind = SERIES[scope][field].metric.kind
    return {"states": (), "histogram": Histogram((1.0,), (0, 0), 0.0)}.get(kind, 1.0)


def test_unknown_is_absent_and_fields_outside_the_table_are_left_out() -> None:
    text, _ = exporter.render(
        Snapshot(NOW, (Reading("gpu", (("gpu", "0"), ("uuid", "u")), {"memory_percent": 5.0}, NOW),))
    )
    assert text == b""


def test_a_scrape_compresses_well() -> None:
    text, _ = exporter.render(snapshot("two-runs"))
    assert len(gzip.compress(text, 1)) < len(text) / 3


ODD = ["9.9.9", "1.0.0.0", "x", "", "1.", "\u0661.0.0", "-1", "1e400", *(f"1.0.{number}" for number in range(1, 400))]


def test_odd_accept_headers_neither_raise_nor_are_remembered() -> None:
    exporter.render(snapshot("healthy"))
    exporter.render(snapshot("healthy"), OPENMETRICS)
    before = len(exporter._texts)
    kinds = ("application/openmetrics-text; version=", "text/plain;version=", "*/*;q=")
    odd = [kind + version + ";escaping=x" for kind in kinds for version in ODD]
    assert len(odd) > 1000
    assert {exporter.render(snapshot("healthy"), accept)[1] for accept in odd} == {
        exporter.render(snapshot("healthy"))[1]
    }
    assert len(exporter._texts) == before


@pytest.mark.parametrize(
    "accept",
    ["application/openmetrics-text", "APPLICATION/OpenMetrics-Text;Version=1.0.0;charset=utf-8",
     "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
     "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"],
)  # fmt: skip
def test_who_takes_openmetrics_gets_it(accept: str) -> None:
    assert exporter.render(snapshot("healthy"), accept) == exporter.render(snapshot("healthy"), OPENMETRICS)
    assert exporter.render(snapshot("healthy"), accept)[1].startswith("application/openmetrics-text; version=1.0.0")
