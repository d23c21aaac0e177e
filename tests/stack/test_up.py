"""The stack comes up from nothing, is as hard as it says, and keeps what it holds."""

import json
import os

import docker
import pytest

from tests.compose.files import SERVICES
from tests.stack.support import PROJECT, Stack, asked, containers, wait_for, write_env

HEALTHY_SECONDS = 90
PAST = """
import json, sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=10)
except urllib.error.HTTPError as error:
    answer = error
print(json.dumps([answer.status, answer.read().decode()]))
"""


def test_it_is_healthy_soon_and_a_second_up_changes_nothing(stack: Stack, client: docker.DockerClient) -> None:
    assert stack.up() < HEALTHY_SECONDS
    before = {name: one.id for name, one in containers(client).items()}
    always = {"alertmanager", "collector", "demo", "gate", "node-exporter", "prometheus"}
    assert set(before) == always | ({"grafana"} - stack.left_out)
    stack.up()
    assert {name: one.id for name, one in containers(client).items()} == before


# What no run here has, and why.
NO_GPU = "there is no NVIDIA GPU for it"
ELSEWHERE = {
    "grafana": "its image is not here",
    "caddy": "it wants a name in the DNS, and ports of the whole machine",
    **dict.fromkeys(("dcgm-exporter", "dcgm-exporter-profiling", "nvidia-smi-exporter"), NO_GPU),
}


@pytest.mark.parametrize("service", [name for name, told in SERVICES.items() if told.get("restart") != "no"])
def test_each_service_is_healthy_or_named_as_left_out(stack: Stack, client: docker.DockerClient, service: str) -> None:
    if service not in stack.services():
        pytest.skip(f"left out of this run: {ELSEWHERE[service]}")
    stack.up()
    assert containers(client)[service].attrs["State"]["Health"]["Status"] == "healthy"


def test_all_targets_that_run_are_up(stack: Stack) -> None:
    stack.up()
    jobs = {"alertmanager", "node", "prometheus", "trainvitals"} | ({"grafana"} - stack.left_out)
    wait_for(lambda: {one["metric"]["job"] for one in stack.prometheus("up == 1")} == jobs, 60)
    down = {one["metric"]["job"] for one in stack.prometheus("up == 0")}
    assert down <= {"grafana"}


def test_every_container_is_hardened_and_listens_on_loopback_alone(stack: Stack, client: docker.DockerClient) -> None:
    stack.up()
    for name, one in containers(client).items():
        host, config = one.attrs["HostConfig"], one.attrs["Config"]
        assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["CapAdd"], name
        assert "no-new-privileges:true" in host["SecurityOpt"], name
        assert host["Memory"] > 0 and host["PidsLimit"] > 0 and not host["Privileged"], name
        assert config["User"].split(":")[0] not in ("", "0", "root"), name
        assert config["Healthcheck"]["Test"][0] in ("CMD", "CMD-SHELL"), name
        assert host["LogConfig"]["Config"]["max-size"] and host["LogConfig"]["Config"]["max-file"], name
        assert not any("docker.sock" in mount["Source"] for mount in one.attrs["Mounts"]), name
        bound = [place["HostIp"] for places in (host["PortBindings"] or {}).values() for place in places]
        assert set(bound) <= {"127.0.0.1"}, name
        assert not (bound and name in ("prometheus", "alertmanager")), name


@pytest.mark.parametrize(("knob", "past", "api"), [
    ("PROMETHEUS_PORT", "http://prometheus:9090", "/api/v1/query?query=up"),
    ("ALERTMANAGER_PORT", "http://alertmanager:9093", "/api/v2/silences")])  # fmt: skip
def test_the_gate_answers_as_what_is_behind_it_and_refuses_other_sites(
    stack: Stack, knob: str, past: str, api: str
) -> None:
    stack.up()
    url = stack.url(knob)
    # The distribution's programs have no page, or one that says so.
    for path in ("/", "/query", "/-/ready"):
        status, _, text = asked(url + path)
        assert json.loads(stack.compose("exec", "-T", "collector", "python", "-c", PAST, past + path)) == [status, text]
    assert asked(f"{url}/-/ready")[0] == asked(url + api, Origin=url)[0] == 200
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        for method in ("GET", "POST", "OPTIONS", "DELETE"):
            status, headers, text = asked(url + api, method, **foreign)
            assert (status, text.count("\n")) == (403, 1), (method, foreign)
            assert not [name for name in headers if name.lower().startswith("access-control")]


def test_no_secret_stands_where_docker_shows_it(stack: Stack, client: docker.DockerClient) -> None:
    env = stack.folder / "compose" / ".env"
    stack.knobs["PAGERDUTY_KEY"] = "hush4hush4hush4hush4"
    write_env(stack)
    env.chmod(0o600)
    os.chown(env, 1000, 1000)
    stack.up()
    every = client.containers.list(all=True, filters={"label": f"com.docker.compose.project={PROJECT}"})
    assert [one.name for one in every if "hush" in str(one.attrs)] == []
    assert "hush" not in stack.compose("config")
    assert "hush" in stack.compose("exec", "-T", "alertmanager", "cat", "/etc/alertmanager/secrets/pagerduty")
    del stack.knobs["PAGERDUTY_KEY"]
    write_env(stack)


def test_down_and_up_keep_data_and_silences(stack: Stack) -> None:
    stack.up()
    wait_for(lambda: stack.prometheus("count_over_time(up[10m]) > 3"), 60)
    made = stack.silence("Never")
    oldest = float(stack.prometheus("min(prometheus_tsdb_lowest_timestamp_seconds) or vector(0)")[0]["value"][1])
    count = float(stack.prometheus('count_over_time(up{job="prometheus"}[1h])')[0]["value"][1])
    stack.down()
    stack.up()
    assert made in stack.silences()
    again = 'count_over_time(up{job="prometheus"}[1h])'
    assert wait_for(lambda: float(stack.prometheus(again)[0]["value"][1]) >= count, 30), oldest
