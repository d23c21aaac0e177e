"""tests/infra on ports: what is open to others, and a firewall that is not there, are told."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ansible.test_verification import Host
from tests.infra import test_ports as ports
from tests.infra.machine import Machine

BIND = "10.0.0.11"
NFT = {"nftables": [{"metainfo": {}}, {"set": {"name": "ports", "elem": [8080, 9100, 9400]}}]}


def container(service: str, address: str, port: int) -> dict[str, Any]:
    ports = {"80/tcp": [{"HostIp": address, "HostPort": str(port)}], "81/tcp": None}
    return {"Config": {"Labels": {"com.docker.compose.service": service}}, "NetworkSettings": {"Ports": ports}}


def node(*more: dict[str, Any], told: dict[str, Any] | None = None, loaded: bool = True, **answers: str) -> Machine:
    """gpu1, whose exporters Prometheus asks over the network, and what more its engine publishes."""
    usual = [container("collector", BIND, 8080), container("node-exporter", BIND, 9100)]
    host = Host(**{"inspect": json.dumps([*usual, *more]), "nft": json.dumps(NFT), "ss ": "",
                   "grep": f"COMPOSE_PROFILES=node\nTRAINVITALS_BIND={BIND}", **answers})  # fmt: skip
    host.service = lambda name: SimpleNamespace(is_running=loaded, is_enabled=loaded)  # type: ignore[attr-defined]
    return Machine(host, "gpu1", told or {})


def test_as_it_is_deployed_nothing_is_told() -> None:
    machine = node(container("caddy", "0.0.0.0", 443))
    ports.test_ports_are_open_only_where_they_should_be(machine)
    ports.test_the_firewall_closes_what_prometheus_alone_may_ask(machine)


@pytest.mark.parametrize("more", [
    {"more": container("grafana", "0.0.0.0", 3000)}, {"ss ": "LISTEN 0 4096 0.0.0.0:9100 0.0.0.0:*"}])  # fmt: skip
def test_what_is_open_to_all_is_told_also_where_no_process_listens(more: dict[str, Any]) -> None:
    published = [more.pop("more")] if "more" in more else []
    with pytest.raises(pytest.fail.Exception, match=r"listens on 0\.0\.0\.0"):
        ports.test_ports_are_open_only_where_they_should_be(node(*published, **more))


def test_an_engine_that_publishes_nothing_is_told() -> None:
    with pytest.raises(pytest.fail.Exception, match="publishes no port"):
        ports.test_ports_are_open_only_where_they_should_be(node(inspect=json.dumps([])))


@pytest.mark.parametrize(("change", "told"), [
    ({"loaded": False}, "not loaded now and at boot"), ({"nft": "Error: No such file"}, r"\[8080, 9100\] open"),
    ({"told": {"base_firewall_ports": [22]}}, r"\[22\] open")])  # fmt: skip
def test_a_firewall_that_is_not_there_is_told(change: dict[str, Any], told: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=told):
        ports.test_the_firewall_closes_what_prometheus_alone_may_ask(node(**change))


def test_where_the_inventory_wants_none_it_is_not_asked_for() -> None:
    ports.test_the_firewall_closes_what_prometheus_alone_may_ask(node(told={"base_firewall_ports": []}, loaded=False))


def neighbour(status: int) -> Any:
    """gpu2, where curl ends like this."""
    return SimpleNamespace(name="gpu2", run=lambda command: (status, ""))


@pytest.mark.parametrize("status", [7, 28])
def test_another_machine_that_is_refused_or_hears_nothing_is_kept_out(status: int) -> None:
    ports.test_other_machines_do_not_get_through(node(), neighbour(status))


@pytest.mark.parametrize("status", [0, 35])
def test_another_machine_that_gets_through_is_told(status: int) -> None:
    with pytest.raises(pytest.fail.Exception, match="gpu2 gets through"):
        ports.test_other_machines_do_not_get_through(node(), neighbour(status))


def test_whom_the_inventory_lets_in_may_get_through() -> None:
    ports.test_other_machines_do_not_get_through(node(told={"base_firewall_sources": ["10.0.0.0/8"]}), neighbour(0))
