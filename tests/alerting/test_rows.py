"""What people see of alerts: no two rows alike, and one for all ranks of a run."""

from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from tests.alerting.test_received import alert, app, post, told
from tests.collector.support import run
from tests.collector.web.asking import ask
from trainvitals.alerting.received import parse
from trainvitals.alerting.rows import grouped

__all__ = ["app"]


def where(*alerts: dict[str, Any]) -> list[str]:
    return [row["where"] for row in grouped(parse(told(*alerts)))]


def nan(rank: int, run: str = "gemma", **labels: str) -> dict[str, Any]:
    return alert("TrainingNonFinite", run=run, rank=str(rank), **labels)


def test_what_tells_two_alerts_of_one_name_apart_is_shown(app: Starlette, tmp_path: Path) -> None:
    failing = [alert("AlertmanagerDeliveryFailing", integration=way) for way in ("email", "slack")]
    post(app, told(*failing))
    assert where(*failing) == ["integration email, gpu1", "integration slack, gpu1"]
    listed = run("alerts", "--dir", str(app.state.agent.root)).stdout
    assert "integration email, gpu1" in listed and "integration slack, gpu1" in listed


def test_a_nan_in_eight_ranks_is_one_row_that_names_them_in_the_terminal_and_on_the_page(app: Starlette) -> None:
    post(app, told(*(nan(rank) for rank in range(8))))
    told_on_page = ask(app, "/api/v1/snapshot").json()["alerts"]
    rows = [row["where"] for row in told_on_page["firing"]]
    assert rows == ["run gemma, ranks 0, 1, 2, 3, 4, 5, 6, 7, gpu1"]
    assert told_on_page["firing_count"] == 8
    assert len(ask(app, "/api/v1/alerts").json()["firing"]) == 8
    listed = run("alerts", "--dir", str(app.state.agent.root)).stdout.splitlines()
    assert len(listed) == 2 and rows[0] in listed[1]
    post(app, told(*(nan(rank, status="resolved") for rank in range(8))))
    assert len(ask(app, "/api/v1/snapshot").json()["alerts"]["resolved"]) == 1
    assert len(run("alerts", "--dir", str(app.state.agent.root)).stdout.splitlines()) == 3


def test_many_ranks_are_counted_and_numbers_stand_in_their_order() -> None:
    assert where(*(nan(rank) for rank in range(63, -1, -1))) == [
        "run gemma, ranks 0, 1, 2, 3, 4, 5, 6, 7 and 56 more, gpu1"]  # fmt: skip
    assert where(nan(10), nan(9, instance="gpu2")) == ["run gemma, ranks 9, 10, gpu1, gpu2"]


def test_other_runs_severities_and_what_is_of_no_run_have_rows_of_their_own() -> None:
    assert where(nan(0), nan(1, "llama"), nan(2, severity="ticket")) == [
        "run gemma, rank 0, gpu1", "run llama, rank 1, gpu1", "run gemma, rank 2, gpu1"]  # fmt: skip
    assert where(alert(gpu="0", uuid="GPU-0"), alert(uuid="GPU-1")) == ["GPU 0, gpu1", "GPU-1, gpu1"]


def test_a_row_of_several_ranks_bears_the_labels_that_all_of_them_have() -> None:
    [row] = grouped(parse(told(nan(0, gpu="0"), nan(1, gpu="1"))))
    assert row["labels"].keys().isdisjoint({"rank", "gpu"}) and row["labels"]["run"] == "gemma"
    [alone] = grouped(parse(told(nan(3))))
    assert alone["labels"]["rank"] == "3"


def test_a_row_counts_from_its_first_alert() -> None:
    late, early = nan(0, starts="2026-05-01T12:00:00Z"), nan(1, starts="2026-05-01T11:00:00Z")
    assert [row["starts"] for row in grouped(parse(told(late, early)))] == ["2026-05-01T11:00:00.000Z"]
