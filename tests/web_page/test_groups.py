"""Findings as people count them: several ranks of a run, or several GPUs, are one."""

import json
from typing import Any

from tests.web_page.modules import evaluate

BAD = {"kind": "TrainingNonFinite", "severity": "page", "source": "agent", "run": "a", "what": "the loss is NaN",
       "opened": "2025-07-30T12:00:00.000Z", "acknowledged": None, "silenced": None}  # fmt: skip


def grouped(*findings: dict[str, Any]) -> Any:
    return evaluate({"groups": "finding_groups.js"}, f"groups.grouped({json.dumps(findings)})")


def where(*findings: dict[str, Any]) -> Any:
    modules = {"groups": "finding_groups.js", "findings": "findings.js"}
    return evaluate(modules, f"groups.grouped({json.dumps(findings)}).map(findings.where)")


def test_what_befalls_all_ranks_at_once_is_one_finding() -> None:
    ranks = [{**BAD, "id": str(rank), "rank": str(rank)} for rank in (10, 2, 0)]
    [group] = grouped(*ranks)
    assert (group["ranks"], [one["id"] for one in group["members"]]) == (["0", "2", "10"], ["10", "2", "0"])
    assert where(*ranks) == ["run a, ranks 0, 2, 10"]
    assert where(*ranks[:1]) == ["run a, rank 10"]


def test_of_sixty_four_some_are_named() -> None:
    ranks = [{**BAD, "id": str(rank), "rank": str(rank)} for rank in range(64)]
    assert where(*ranks) == ["run a, ranks 0, 1, 2, 3, 4, 5, 6, 7 and 56 more"]


def test_another_run_another_hour_and_what_has_no_rank_stay_apart() -> None:
    late = {"opened": "2025-07-30T13:00:00.000Z"}
    found = grouped({**BAD, "rank": "0"}, {**BAD, "rank": "0", "run": "b"}, {**BAD, "rank": "1", **late}, BAD, BAD)
    assert len(found) == 5


def test_a_group_is_known_when_all_of_it_is_and_says_what_differs() -> None:
    known = {"at": "2025-07-30T12:01:00.000Z", "by": "anna"}
    two = [
        {**BAD, "gpu": "1", "what": "GPU 1 is hot", "acknowledged": known},
        {**BAD, "gpu": "2", "what": "GPU 2 is hot"},
    ]
    [group] = grouped(*two)
    assert group["acknowledged"] is None
    assert [one["what"] for one in group["evidence"]] == ["GPU 2 is hot"]
    [group] = grouped(two[0], {**two[1], "acknowledged": known})
    assert group["acknowledged"] == known
