"""compose.yaml read as it is shipped: what every service is kept from, and that each exception says why."""

import json
import re

import pytest

from tests.compose.files import COMPOSE, GPU, ROOT, SERVICES, blocks
from trainvitals.stack.gate import DOORS

ONE_SHOT = {"journal", "targets", "alertmanager-config", "grafana-password", "caddy-volume"}
PROFILES = {
    "journal": {"node", "server"}, "collector": {"node", "server"}, "node-exporter": {"node"},
    "targets": {"server"}, "prometheus": {"server"}, "alertmanager-config": {"server"}, "alertmanager": {"server"},
    "gate": {"server"},
    "grafana-password": {"server"}, "grafana": {"server"}, "dcgm-exporter": {"dcgm"},
    "dcgm-exporter-profiling": {"dcgm-profiling"}, "nvidia-smi-exporter": {"nvidia-smi"},
    "caddy": {"public"}, "caddy-volume": {"public"}, "demo": {"demo"},
}  # fmt: skip
ROOT_USERS = {"journal", "alertmanager-config", "dcgm-exporter-profiling"}
CAPABILITIES = {
    "alertmanager-config": ["DAC_OVERRIDE", "SETUID"],
    "dcgm-exporter-profiling": ["SYS_ADMIN"],
    "caddy": ["NET_BIND_SERVICE"],
}
WITHOUT_HEALTH_CHECK = {"dcgm-exporter", "dcgm-exporter-profiling", "nvidia-smi-exporter"}
# What a service may have only with its reason beside it.
EXCEPTIONS = re.compile(r'^    (user: "0:|cap_add:|healthcheck: \{disable|(pid|uts|network_mode|ipc): host|ports:)')
every_service = pytest.mark.parametrize("name", SERVICES)


def test_each_service_runs_by_its_profiles() -> None:
    assert {name: set(service["profiles"]) for name, service in SERVICES.items()} == PROFILES


@every_service
def test_a_service_may_do_no_more_than_it_must(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == CAPABILITIES.get(name, [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")
    user = service["user"].partition(":-")[2].rstrip("}") or service["user"]
    assert re.fullmatch(r"\d+:\d+", user)
    assert user.startswith("0:") == (name in ROOT_USERS)


@every_service
def test_a_service_cannot_take_the_machine_for_itself(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert 0 < service["pids_limit"] <= 512
    assert service["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}


@every_service
def test_a_service_has_a_health_check_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    check = service.get("healthcheck")
    if name in ONE_SHOT:
        assert check == {"disable": True}
    elif name in WITHOUT_HEALTH_CHECK:
        # One that is disabled fails docker compose up --wait where the service goes on.
        assert check is None
    else:
        assert check["test"][0] == "CMD"
        assert {"interval", "timeout", "retries", "start_period"} <= check.keys()
    assert service["restart"] == ("no" if name in ONE_SHOT else "unless-stopped")
    assert (service.get("network_mode") == "none") == (name in ONE_SHOT)


@every_service
def test_of_the_host_a_service_writes_the_journal_alone(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        if isinstance(volume, dict):
            assert volume["type"] == "volume" or volume["read_only"] is True
            continue
        source = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", volume).split(":")
        assert "docker.sock" not in volume
        is_of_host = source[0].startswith(("/", "."))
        assert not is_of_host or source[-1] == "ro" or source[0] == "/var/lib/trainvitals", volume


@every_service
def test_a_port_is_published_on_loopback_unless_env_says_otherwise(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        bind = "${PUBLIC_BIND:-0.0.0.0}:" if name == "caddy" else "${TRAINVITALS_BIND:-127.0.0.1}:"
        assert port.startswith(bind)


def test_in_a_container_no_token_is_made_for_what_loopback_alone_reaches() -> None:
    environ = SERVICES["collector"]["environment"]
    assert environ["TRAINVITALS_TOKEN"] == "none"
    assert environ["TRAINVITALS_TOKEN_FILE"] == "${TRAINVITALS_TOKEN_FILE:-}"
    assert "./web:/etc/trainvitals:ro" in SERVICES["collector"]["volumes"]
    assert SERVICES["demo"]["command"][-2:] == ["--token", "none"]


def test_prometheus_and_alertmanager_are_reached_by_the_gate_alone() -> None:
    assert [name for name in ("prometheus", "alertmanager") if "ports" in SERVICES[name]] == []
    assert SERVICES["gate"]["ports"] == [
        "${TRAINVITALS_BIND:-127.0.0.1}:${PROMETHEUS_PORT:-9090}:9090",
        "${TRAINVITALS_BIND:-127.0.0.1}:${ALERTMANAGER_PORT:-9093}:9093",
    ]
    assert DOORS == ("9090:prometheus:9090", "9093:alertmanager:9093")
    assert SERVICES["gate"]["environment"].keys() == {"TRAINVITALS_ALLOWED_HOSTS", "PROMETHEUS_URL", "ALERTMANAGER_URL"}


def test_prometheus_lets_no_page_of_another_site_read() -> None:
    (pattern,) = [word.partition("=")[2] for word in SERVICES["prometheus"]["command"] if "cors" in word]
    for origin in ("null", "http://localhost:9090", "https://evil.example", "", "."):
        assert not re.fullmatch(pattern, origin)


def test_each_exception_has_its_reason_beside_it() -> None:
    found = 0
    for name, lines in blocks():
        for number, line in enumerate(lines):
            if EXCEPTIONS.match(line) and ("ports" not in line or name == "caddy"):
                found += 1
                assert _comment_before(lines, number).startswith("# Exception: "), f"{name}: {line.strip()}"
    assert found >= 10
    assert not re.search(r"network_mode: host|ipc: host|privileged: true|userns_mode", COMPOSE)


def _comment_before(lines: list[str], number: int) -> str:
    comment = ""
    while number and lines[number - 1].strip().startswith("#"):
        number -= 1
        comment = lines[number].strip()
    return comment


def test_every_image_is_pinned_where_renovate_sees_it() -> None:
    (manager,) = json.loads((ROOT / "renovate.json").read_text())["customManagers"]
    pattern = re.compile(manager["matchStrings"][0].replace("(?<", "(?P<"))
    seen = {found["depName"]: found["currentValue"] for found in pattern.finditer(COMPOSE)}
    images = {service["image"] for service in SERVICES.values()} - {"trainvitals/collector:local"}
    assert {f"{name}:{tag}" for name, tag in seen.items()} == images
    assert all(re.match(r"v?\d+\.\d+\.\d+", tag) for tag in seen.values())
    (base,) = pattern.finditer((ROOT / "collector" / "Dockerfile").read_text())
    assert (base["depName"], base["currentValue"]) == ("python", "3.13-slim-trixie")
    for file in ("compose/compose.yaml", "collector/Dockerfile"):
        assert any(re.search(part[1:-1], file) for part in manager["managerFilePatterns"])


def test_the_gpus_go_to_what_reads_them() -> None:
    given = set(re.findall(r"^  ([a-z-]+):", GPU.partition("\nservices:\n")[2], re.MULTILINE))
    assert given == {"collector", "dcgm-exporter", "dcgm-exporter-profiling", "nvidia-smi-exporter"}
    assert given <= SERVICES.keys()


def test_the_world_is_not_told_grafanas_own_metrics() -> None:
    """Whatever reorders directives would have to be looked at again."""
    text = (ROOT / "compose" / "Caddyfile").read_text()
    (site,) = re.findall(r"^\{\$PUBLIC_NAME\} \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    said = [line.strip() for line in site.splitlines() if not line.strip().startswith("#")]
    assert "respond /metrics* 404" in said
    assert [line for line in said if line.startswith("reverse_proxy")] == ["reverse_proxy grafana:3000"]
    assert not re.search(r"^\s*(order|route|handle|handle_path|rewrite|uri)\b", text, re.MULTILINE)
