"""The dashboards on a site of several machines: what they ask is answered, and for each machine alike."""

import pytest

from tests.grafana.support import UIDS, Asked, board, choices, events, queries
from tests.rehearsal.deployment import Deployment
from tests.stack.support import wait_for

NODES = {"gpu1", "gpu2"}
EVERY = {*NODES, "mon"}


def instances(deployed: Deployment, asked: list[Asked]) -> set[str]:
    """Of which machines the answers tell."""
    return {one["metric"].get("instance", "") for each in asked for one in deployed.prometheus(each.expr)} - {""}


def answered(deployed: Deployment, uid: str, **chosen: str) -> set[str]:
    return {each.panel for each in queries(board(uid), chosen) if deployed.prometheus(each.expr)}


@pytest.mark.parametrize("uid", UIDS)
def test_no_query_is_refused(deployed: Deployment, uid: str) -> None:
    for each in queries(board(uid)) + events(board(uid)) + choices(board(uid)):
        deployed.prometheus(each.expr)


@pytest.mark.parametrize(("uid", "wanted"), [("trainvitals-fleet", NODES), ("trainvitals-monitoring", EVERY)])
def test_all_machines_are_told_of(deployed: Deployment, uid: str, wanted: set[str]) -> None:
    wait_for(lambda: instances(deployed, queries(board(uid))) >= wanted, 60,
             tell=lambda: instances(deployed, queries(board(uid))))  # fmt: skip


def test_each_machine_with_gpus_can_be_chosen_and_tells_the_same(deployed: Deployment) -> None:
    wait_for(lambda: instances(deployed, choices(board("trainvitals-gpu"))) >= NODES, 60)
    # What looks back over minutes is there a scrape sooner on the one than on the other.
    wait_for(lambda: not _apart(deployed), 60, tell=lambda: _apart(deployed))
    assert len(answered(deployed, "trainvitals-gpu", instance="gpu1")) > 10


def _apart(deployed: Deployment) -> set[str]:
    """Panels that one of the two has and the other has not."""
    one, other = (answered(deployed, "trainvitals-gpu", instance=node) for node in sorted(NODES))
    return one ^ other
