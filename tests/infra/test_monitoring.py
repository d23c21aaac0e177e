"""The monitoring machine: everything is scraped, the rules are loaded, Grafana sees Prometheus, an alert arrives."""

import re
from typing import Any

import pytest

from tests.infra.machine import Machine, patiently

pytestmark = pytest.mark.group("monitoring")
DATA_SOURCE = "/api/datasources/uid/trainvitals-prometheus/health"


def test_prometheus_has_a_configuration_that_it_could_read(machine: Machine) -> None:
    (last,) = machine.prometheus("prometheus_config_last_reload_successful") or [{"value": [0, "0"]}]
    machine.demand(
        last["value"][1] == "1",
        "Prometheus could not read its configuration",
        "the log says why",
        container="prometheus",
    )


def test_every_target_is_up(machine: Machine) -> None:
    machine.demand(active(machine), "Prometheus asks no target", "deploy again", container="targets")
    down = patiently(lambda: unwell(machine), lambda found: not found)
    machine.demand(
        not down,
        "these targets do not answer Prometheus:\n        " + "\n        ".join(down),
        "on those machines: docker ps; from here: may it reach them? (firewall, stack_address)",
    )


def active(machine: Machine) -> list[dict[str, Any]]:
    """Targets as Prometheus asks them now: a query would find those of some minutes ago."""
    told = machine.fetched("/api/v1/targets?state=active")
    return list(told["activeTargets"])


def unwell(machine: Machine) -> list[str]:
    return [
        f"{one['labels']['job']} of {one['labels']['instance']}: {one['lastError'] or 'not asked yet'}"
        for one in active(machine)
        if one["health"] != "up"
    ]


def test_every_machine_of_the_inventory_is_a_target(machine: Machine) -> None:
    runner = machine.host.backend.ansible_runner
    wanted = {name.split(".")[0] for group in ("gpu_nodes", "monitoring") for name in runner.get_hosts(group)}
    for job in ("trainvitals", "node"):
        found = {one["labels"]["instance"] for one in active(machine) if one["labels"]["job"] == job}
        machine.demand(
            found == wanted,
            f"the job {job} has {sorted(found)}, the inventory {sorted(wanted)}",
            "deploy without --limit: all targets are written at once",
        )


def test_what_should_be_there_is_expected(machine: Machine) -> None:
    expected = patiently(lambda: machine.prometheus("target:expected:info"), bool)
    machine.demand(expected, "Prometheus expects no target", "deploy again", container="targets")
    query = "target:expected:info unless on (job, instance) up"
    missing = patiently(lambda: machine.prometheus(query), lambda found: not found)
    told = ", ".join(f"{one['metric']['job']} of {one['metric']['instance']}" for one in missing)
    machine.demand(not missing, f"expected and not scraped: {told}", "deploy again", container="targets")


def test_the_rules_are_loaded_and_can_be_evaluated(machine: Machine) -> None:
    shipped = len(machine.answer(f"ls {machine.home}/prometheus/rules/*.yml").split())
    groups = machine.fetched("/api/v1/rules")["groups"]
    files = {group["file"] for group in groups}
    machine.demand(
        len(files) >= shipped,
        f"{len(files)} files of rules are loaded, {shipped} are there",
        "deploy again",
        container="prometheus",
    )
    broken = [
        f"{rule['name']}: {rule['lastError']}" for group in groups for rule in group["rules"] if rule["health"] == "err"
    ]
    machine.demand(not broken, f"rules that cannot be evaluated: {broken}", "docs/runbooks/PrometheusRuleFailures.md")


def test_grafana_s_data_source_answers(machine: Machine) -> None:
    """By its password, which no command line and no output shows."""
    port = machine.knobs["GRAFANA_PORT"]
    password = f"$({machine.home}/scripts/stack password)"
    status, told = machine.run(
        f'printf \'user = "admin:%s"\\n\' "{password}" | '
        f"curl --config - --silent --show-error --max-time 30 http://localhost:{port}{DATA_SOURCE}",
        seconds=120,
    )
    machine.demand(
        status == 0 and re.search(r'"status": *"OK"', told),
        f"Grafana's data source says: {told[-300:]}",
        "docker logs trainvitals-grafana-1; prometheus must run too",
        container="grafana",
    )


def test_an_alert_arrives_by_every_channel(machine: Machine) -> None:
    status, told = machine.run(f"{machine.home}/scripts/stack alert-test", seconds=180)
    machine.demand(
        status == 0,
        f"a test alert did not arrive by every channel:\n{told}",
        "look at the channel's knobs: stack_env, the vault or the environment that the deployment had",
        container="alertmanager",
    )
    machine.demand(
        re.search(r"^collector +delivered", told, re.MULTILINE),
        f"not even by the collector's page:\n{told}",
        "docker logs trainvitals-alertmanager-1",
        container="alertmanager",
    )
