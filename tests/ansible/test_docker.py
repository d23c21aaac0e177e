"""An engine that is there is kept, with its settings and its containers; where there is none, one is installed."""

import json

from tests.ansible.support import Told, applied, told_by
from tests.rehearsal.machines import Site

SETTINGS = "cat /etc/docker/daemon.json"


def test_an_engine_that_is_new_enough_is_kept(site: Site, converged: Told) -> None:
    assert "no packages found" in site.run("gpu1", "dpkg-query -W docker-ce docker.io", check=False)
    assert site.run("gpu1", "docker info --format '{{.ServerVersion}}'").startswith("28.")


def test_the_distributions_engine_is_installed_where_asked_for(site: Site, converged: Told) -> None:
    assert "docker-compose" in site.run("mon", "dpkg-query -W docker.io docker-compose docker-buildx")
    assert site.run("mon", "docker compose version --short")
    assert site.run("mon", "systemctl is-enabled docker").strip() == "enabled"


def test_settings_are_merged_with_those_that_are_there(site: Site, converged: Told) -> None:
    assert json.loads(site.run("gpu1", SETTINGS)) == {
        "features": {"cdi": True}, "labels": ["kept=yes"], "live-restore": True, "log-driver": "local"}  # fmt: skip
    assert json.loads(site.run("mon", SETTINGS)) == {
        "features": {"cdi": True}, "live-restore": True, "log-driver": "json-file",
        "log-opts": {"max-file": "3", "max-size": "10m"}}  # fmt: skip
    assert site.run("gpu1", "docker info --format '{{.LiveRestoreEnabled}}'").strip() == "true"


def test_containers_run_on_through_a_restart(serving: Site) -> None:
    asked = "docker inspect --format '{{.State.StartedAt}}' at9100; systemctl show --property=MainPID --value docker"
    started, engine = serving.run("gpu1", asked).split()
    options = {"docker_daemon_options": {"log-level": "warn"}}
    told = applied(serving, "docker", limit="gpu1", **options)
    assert told.changed()["gpu1"] > 0
    again, another = serving.run("gpu1", asked).split()
    assert started == again
    assert engine != another
    assert applied(serving, "docker", limit="gpu1", docker_daemon_options={"log-level": "warn"}).changed() == {
        "gpu1": 0
    }


def test_settings_that_it_does_not_start_with_are_taken_back(serving: Site) -> None:
    """They are valid by themselves; a flag of the unit says the same."""
    before = serving.run("gpu1", f"{SETTINGS}; docker inspect --format '{{{{.State.StartedAt}}}}' at9100")
    told = told_by(serving, "docker", limit="gpu1", docker_daemon_options={"hosts": ["unix:///run/another.sock"]})
    assert told.recaps["gpu1"].failed == 1
    assert "gpu1: Docker did not start with new settings (hosts)" in " ".join(told.text.split()), told.text
    after = serving.run("gpu1", f"{SETTINGS}; docker inspect --format '{{{{.State.StartedAt}}}}' at9100")
    assert json.loads(after.rpartition("}")[0] + "}") == json.loads(before.rpartition("}")[0] + "}")
    assert after.splitlines()[-1] == before.splitlines()[-1]


def test_settings_that_the_engine_refuses_are_not_written(site: Site, converged: Told) -> None:
    before = site.run("gpu1", SETTINGS)
    told = told_by(site, "docker", limit="gpu1", docker_daemon_options={"nonsense": True})
    assert told.recaps["gpu1"].failed == 1
    assert "nonsense" in told.text
    assert site.run("gpu1", SETTINGS) == before
