"""What befalls a site that runs: a machine dies, one comes and one goes, releases good and bad, a backup put back."""

import tarfile
import time

from tests.alerting.support import Recorder
from tests.rehearsal.conftest import MACHINES
from tests.rehearsal.deployment import HOME, Deployment
from tests.rehearsal.left import left
from tests.rehearsal.machines import Machine
from tests.stack.support import wait_for

ARRIVAL_SECONDS = 90
# The engine's settings stay with it, as does where it looks for GPUs; upgrades that come by themselves go on, and are
# kept from the driver.
STAYS = {"/etc/docker", "/etc/docker/daemon.json", "/etc/cdi"}
HOLD = "/etc/apt/apt.conf.d/52trainvitals"
DOCKER_LEFT = "docker ps -aq; docker volume ls -q; docker images -aq; docker network ls -q --filter type=custom"
JOURNAL = "/var/lib/trainvitals/runs/kept/run.json"


def told(receiver: Recorder, name: str, status: str, instance: str) -> bool:
    return any(
        alert["status"] == status and alert["labels"].get("instance") == instance
        for post in receiver.to("/hook")
        for alert in post.json()["alerts"]
        if alert["labels"]["alertname"] == name
    )


def test_a_machine_that_dies_is_told_of_and_comes_back_by_itself(deployed: Deployment, receiver: Recorder) -> None:
    deployed.site.stop("gpu2")
    wait_for(lambda: told(receiver, "HostDown", "firing", "gpu2"), ARRIVAL_SECONDS, 1,
             lambda: (receiver.alerts(), deployed.alertmanager("alerts")))  # fmt: skip
    deployed.site.start("gpu2")
    wait_for(lambda: told(receiver, "HostDown", "resolved", "gpu2"), 2 * ARRIVAL_SECONDS, 1,
             lambda: (deployed.prometheus("up == 0"), deployed.site.run("gpu2", "docker ps -a")))  # fmt: skip


def test_a_gpu_s_fault_arrives_across_machines(deployed: Deployment, receiver: Recorder) -> None:
    """Hot GPU of gpu1, rules and messages of mon."""
    deployed.site.scenarios["gpu1"].set(0, "temperature", 97)
    wait_for(lambda: any(told(receiver, name, "firing", "gpu1") for name in ("GpuTemperatureHigh", "GpuThermalMargin")),
             ARRIVAL_SECONDS, 1, receiver.alerts)  # fmt: skip
    deployed.site.scenarios["gpu1"].set(0, "temperature", 45)


def test_a_machine_is_added_and_removed(deployed: Deployment) -> None:
    site = deployed.site
    site.add({"gpu3": Machine("bookworm", gpus=1, engine=True)})
    began = site.run("mon", "docker inspect --format '{{.State.StartedAt}}' trainvitals-prometheus-1")
    deployed.play("site.yml")
    wait_for(
        lambda: deployed.instances() == {"gpu1", "gpu2", "gpu3", "mon"},
        90,
        tell=lambda: deployed.instances("trainvitals", ""),
    )
    wait_for(lambda: deployed.prometheus('target:expected:info{job="dcgm", instance="gpu3"}'), 60)

    removed = deployed.play("remove.yml", "--limit", "gpu3", check=False)
    assert "Nothing was removed" in removed.text
    deployed.play("remove.yml", "--limit", "gpu3", stack_remove_confirmed=True)
    site.remove("gpu3")
    deployed.play("site.yml")
    wait_for(lambda: deployed.instances(state="") == {"gpu1", "gpu2", "mon"}, 90)
    wait_for(lambda: not deployed.prometheus('target:expected:info{instance="gpu3"}'), 60)
    # Neither wanted Prometheus to be started anew.
    assert site.run("mon", "docker inspect --format '{{.State.StartedAt}}' trainvitals-prometheus-1") == began


def test_a_new_release_is_brought_one_machine_after_the_other(deployed: Deployment) -> None:
    before = deployed.release("mon")
    rules = deployed.clone / "prometheus" / "rules" / "own.yml"
    rules.write_text('groups: [{name: own, rules: [{record: own, expr: "vector(7)"}]}]\n')
    played = deployed.play("upgrade.yml")
    assert before not in {deployed.release(host) for host in MACHINES}
    assert played.text.index("gpu1]") < played.text.rindex("gpu2]") < played.text.rindex("mon]")
    wait_for(lambda: [one["value"][1] for one in deployed.prometheus("own")] == ["7"], 60)
    assert deployed.play("upgrade.yml").changed == {"gpu1": 0, "gpu2": 0, "mon": 0}


def test_a_rule_that_cannot_be_read_stops_before_anything_is_replaced(deployed: Deployment) -> None:
    before = deployed.release("mon")
    rules = deployed.clone / "prometheus" / "rules" / "own.yml"
    good = rules.read_text()
    rules.write_text(good.replace("vector(7)", "vector(7"))
    played = deployed.play("upgrade.yml", "--limit", "mon", check=False)
    rules.write_text(good)
    assert played.failed["mon"] == 1
    assert "own.yml" in played.text
    assert "unclosed left parenthesis" in played.text
    assert deployed.release("mon") == before
    deployed.play("upgrade.yml")


def test_a_release_that_does_not_come_up_is_taken_back(deployed: Deployment) -> None:
    before = deployed.release("gpu1")
    composition = deployed.clone / "compose" / "compose.yaml"
    good = composition.read_text()
    composition.write_text(good.replace("--collector.vmstat\n", "--collector.vmstat\n      - --no.such.word\n"))
    played = deployed.play("upgrade.yml", check=False, stack_health_seconds=40)
    composition.write_text(good)
    assert [host for host, count in played.failed.items() if count] == ["gpu1"], played.text[-4000:]
    assert "no.such.word" in played.text
    assert f"The release before, {before}, runs again" in " ".join(played.text.split())
    # The others were never asked.
    assert {deployed.release(host) for host in MACHINES} == {before}
    wait_for(lambda: deployed.instances("node") == set(MACHINES), 60)
    deployed.play("upgrade.yml")


def test_a_knob_by_which_it_does_not_come_up_is_taken_back(deployed: Deployment) -> None:
    """An address that is no machine's own, which nobody can know before."""
    before = deployed.site.run("gpu1", f"cat {HOME}/compose/.env")
    played = deployed.play("site.yml", "--limit", "gpu1", check=False, stack_health_seconds=40,
                           stack_env={"TRAINVITALS_BIND": "192.0.2.1"})  # fmt: skip
    assert played.failed["gpu1"] == 1, played.text[-4000:]
    assert "The knobs of before count, and it runs again" in " ".join(played.text.split())
    assert deployed.site.run("gpu1", f"cat {HOME}/compose/.env") == before
    wait_for(lambda: "gpu1" in deployed.instances(), 60)
    assert deployed.play("site.yml", "--limit", "gpu1").changed["gpu1"] == 0


def test_what_was_kept_comes_back_after_all_is_gone(deployed: Deployment) -> None:
    site = deployed.site
    deployed.grafana("--request PUT --data hello")
    silence = deployed.alertmanager("silences", {
        "matchers": [{"name": "alertname", "value": "Never", "isRegex": False}], "createdBy": "me", "comment": "kept",
        "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2100-01-01T00:00:00Z"})["silenceID"]  # fmt: skip
    site.run("gpu1", f"mkdir -p $(dirname {JOURNAL}) && echo '{{}}' >{JOURNAL}")
    oldest = time.time() - 60
    wait_for(lambda: deployed.prometheus("count_over_time(up[10m]) > 3"), 60)
    deployed.play("backup.yml")
    archives = sorted((deployed.clone / "ansible" / ".backups").glob("*/*.tar.gz"))
    assert {path.name.partition("-")[0] for path in archives} == set(MACHINES)
    assert {path.stat().st_mode & 0o777 for path in archives} == {0o600}
    with tarfile.open(archives[-1]) as tar:
        assert {"volumes/prometheus-data", "volumes/grafana-password"} <= set(tar.getnames())

    deployed.play("remove.yml", stack_remove_confirmed=True, stack_remove_journal=True)
    for host in MACHINES:
        stays = STAYS | ({HOLD} if MACHINES[host].gpus else set())
        assert set(left(site, host, deployed.before[host])) <= stays, host
        assert site.run(host, DOCKER_LEFT) == "", host
        assert "trainvitals" not in site.run(host, "nft list tables; systemctl list-unit-files"), host
    assert "Server" in site.run("gpu1", "docker version")

    deployed.play("site.yml")
    assert deployed.alertmanager("silences") == []
    assert deployed.grafana() == ""
    asked = deployed.play("restore.yml", check=False)
    assert "Nothing was restored" in asked.text
    assert f"mon by {archives[-1].name}" in " ".join(asked.text.split())
    assert deployed.grafana() == ""
    deployed.play("restore.yml", stack_restore_confirmed=True)
    assert deployed.grafana() == "hello"
    assert silence in [one["id"] for one in deployed.alertmanager("silences")]
    assert site.ended("gpu1", f"test -e {JOURNAL}")[0] == 0
    age = time.time() - oldest
    assert wait_for(
        lambda: deployed.prometheus(f'count_over_time(up{{job="node"}}[{int(age)}s] offset {int(age)}s)'), 30
    )
    done = deployed.verified()
    assert done.returncode == 0, done.stdout[-6000:]
    assert site.run("mon", f"ls {HOME}/healthy/compose/.env")
