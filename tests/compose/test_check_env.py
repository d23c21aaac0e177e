"""A .env that cannot be used is told by name, value and fix, before anything starts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compose.files import EXAMPLE
from trainvitals.alerting import channels
from trainvitals.stack.check_env import problems
from trainvitals.stack.knobs import KNOBS, WEB_FILES

WRONG = {
    "COMPOSE_PROFILES": ("nodes", "node;server", ","), "COMPOSE_FILE": ("docker-compose.yml", "compose.yaml:x"),
    "GPU_DRIVER": ("amd",), "GPU_DEVICES": ("all gpus",), "TRAINVITALS_BIND": (
        "localhost", "10.0.0.256", "::1", "[127.0.0.1]", "[fe80::1%eth0]", "[::1"),
    "TRAINVITALS_PORT": ("0", "80a", "08080", "٨٠٨٠"), "PROMETHEUS_PORT": ("90900", "-1"),
    "ALERTMANAGER_PORT": ("x", "+9"),
    "GRAFANA_PORT": ("3.5",), "NODE_EXPORTER_PORT": ("65536",), "DCGM_PORT": ("0",), "NVIDIA_SMI_PORT": ("0",),
    "DEMO_PORT": ("0", "8_0"), "TRAINVITALS_HOSTNAME": ("gpu1.example.org", "a b", "gpu٣"),
    "TRAINVITALS_DIR": ("./here", "/data:ro", "/", "//", "/etc", "/var/lib", "/usr/share/../bin", "/home/"),
    "TRAINVITALS_USER": ("root", "1000", "99999999999:1", "1:2147483648", "٣:٣", "0:0"),
    "TRAINVITALS_INTERVAL": ("0", "fast"), "TRAINVITALS_EXPECTED_GPUS": ("-1",),
    "TRAINVITALS_NODE_PRICE": ("3 dollars",), "TRAINVITALS_PER_CORE": ("maybe",), "TRAINVITALS_RUNS_CAP": ("2",),
    "TRAINVITALS_NODE_CAP": ("much",), "TRAINVITALS_WEB_CONFIG": ("web.yml", "/etc/passwd"),
    "TRAINVITALS_NOTIFY": (
        "email", "alertmanager", "alertmanager=gpu1:9093", "http://alertmanager:9093", "webhook=https://hook.example/x",
        "alertmanager=http://alertmanager:9093,slack"),
    "EXPORTERS_WEB_CONFIG": ("web.yml", "/etc/passwd"), "TRAINVITALS_TOKEN_FILE": ("hush", "/etc/trainvitals/../x"),
    "PROMETHEUS_RETENTION_TIME": (
        "30", "a month", "1h2d", "30d30d", "99999999y", "99999999999y", "٣d", "9" * 400 + "ms", "5m",
        "47h", "0d"),
    "PROMETHEUS_RETENTION_SIZE": ("20", "20 GB", "9EB", "99999999999999EB", "99999999TB", "٢GB", "1MB", "0GB", "999MB"),
    "GRAFANA_DOMAIN": ("http://gpu1", "gpu1:3000"), "GRAFANA_COOKIE_SECURE": ("perhaps",),
    "PUBLIC_NAME": ("https://gpu1.example.org",), "PUBLIC_BIND": ("world", "::"), "ALERTMANAGER_URL": ("gpu1:9093",),
}  # fmt: skip
# Alertmanager's have tests of their own; this one takes any text.
FREE = {"TRAINVITALS_ALLOWED_HOSTS"}
MAIL = "SMTP_HOST=mail.example.org\nSMTP_FROM=a@b.c\nSMTP_TO=a@b.c\n"
TOGETHER = [
    ("COMPOSE_PROFILES=node,dcgm,dcgm-profiling", "COMPOSE_PROFILES", "choose dcgm or dcgm-profiling"),
    ("COMPOSE_PROFILES=node,server,public", "PUBLIC_NAME", "needs the name"),
    ("GRAFANA_URL=https://gpu1.example.org", "GRAFANA_DOMAIN", "gpu1.example.org"),
    ("GRAFANA_URL=http://gpu1:3000\nGRAFANA_DOMAIN=gpu1", "GRAFANA_COOKIE_SECURE", "say false here"),
    (
        "COMPOSE_PROFILES=node\nTRAINVITALS_NOTIFY=alertmanager=http://alertmanager:9093",
        "TRAINVITALS_NOTIFY",
        "leave it empty",
    ),
    ("TRAINVITALS_NOTIFY=alertmanager=http://127.0.0.1:9093", "TRAINVITALS_NOTIFY", "say alertmanager:9093"),
    (
        "TRAINVITALS_NOTIFY=alertmanager=http://mon:9093/,alertmanager=http://localhost",
        "TRAINVITALS_NOTIFY",
        "say alertmanager:9093",
    ),
    ("GRAFANA_PORT=9090", "GRAFANA_PORT", "PROMETHEUS_PORT has that port"),
    (
        "COMPOSE_PROFILES=server,public\nPUBLIC_NAME=gpu1.example.org\nTRAINVITALS_PORT=443",
        "TRAINVITALS_PORT",
        "the profile public has that port: choose another",
    ),
    ("COMPOSE_PROFILES=server,public\nPUBLIC_NAME=gpu1.example.org\nGRAFANA_PORT=80", "GRAFANA_PORT", "choose another"),
    ("SMTP_HOST=localhost\nSMTP_FROM=a@b.c\nSMTP_TO=a@b.c", "SMTP_HOST", "this machine is host.docker.internal"),
    ("WEBHOOK_URL=http://me:hush@127.0.0.1:9000/x", "WEBHOOK_URL", "this machine is host.docker.internal"),
    ("DEADMAN_URL=http://[::1]/x", "DEADMAN_URL", "this machine is host.docker.internal"),
    ("SLACK_WEBHOOK_URL=http://LOCALHOST:1/x", "SLACK_WEBHOOK_URL", "this machine is host.docker.internal"),
    ("DISCORD_WEBHOOK_URL=http://127.1.2.3/x", "DISCORD_WEBHOOK_URL", "this machine is host.docker.internal"),
    ("COLLECTOR_URL=http://localhost:8080", "COLLECTOR_URL", "the collector is collector:8080"),
    ("GRAFANA_URL=http://[gpu1", "GRAFANA_URL", "give an address as a browser takes it"),
    ("SMTP_HOST=mail.example.org", "SMTP_FROM", "SMTP_HOST is set"),
    ("SMTP_PORT=smtp", "SMTP_PORT", "whole number"),
    (f"{MAIL}SMTP_PORT=465", "SMTP_TLS", "choose tls, which is what port 465 is for"),
    (f"{MAIL}SMTP_TLS=tls", "SMTP_TLS", "choose starttls, which is what port 587 is for"),
    ("GRAFANA_DOMAIN=gpubox", "GRAFANA_URL", "give it too, such as https://gpubox"),
    ("TRAINVITALS_BIND=0.0.0.0", "TRAINVITALS_BIND", "name a TRAINVITALS_TOKEN_FILE, as /etc/trainvitals/token, or a"),
    ("TRAINVITALS_BIND=10.0.0.5\nEXPORTERS_WEB_CONFIG=/etc/trainvitals/web.yml", "TRAINVITALS_BIND", "or a TRAINV"),
    ("TRAINVITALS_BIND=[::]", "TRAINVITALS_BIND", "others would see the collector's page"),
]


def told(folder: Path, text: str) -> list[str]:
    path = folder / ".env"
    path.write_text(text)
    return problems(path)


def checked(path: Path) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "trainvitals.stack", "check-env", str(path)]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)


def test_every_knob_of_the_stack_is_tried_with_what_it_cannot_be() -> None:
    assert WRONG.keys() | FREE == KNOBS.keys() - channels.KNOBS.keys()


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_value_is_told_with_its_name_and_the_fix(name: str, value: str, tmp_path: Path) -> None:
    (problem,) = told(tmp_path, f"{name}={value}\n")
    assert f".env: {name}: {value!r} cannot be used: " in problem
    assert problem.rpartition(": ")[2]


@pytest.mark.parametrize(("text", "name", "fix"), TOGETHER)
def test_so_is_one_that_does_not_go_with_the_others(text: str, name: str, fix: str, tmp_path: Path) -> None:
    (problem,) = told(tmp_path, text)
    assert f".env: {name}: " in problem
    assert fix in problem
    assert "hush" not in problem


def test_what_goes_together_is_taken(tmp_path: Path) -> None:
    public = "COMPOSE_PROFILES=server,public\nPUBLIC_NAME=gpu.example.org\n"
    assert told(tmp_path, f"{public}GRAFANA_DOMAIN=gpu.example.org\nGRAFANA_URL=https://gpu.example.org\n") == []
    assert told(tmp_path, f"{MAIL}SMTP_PORT=465\nSMTP_TLS=tls") == told(tmp_path, f"{MAIL}SMTP_PORT=25") == []
    assert told(tmp_path, "GRAFANA_URL=http://gpu1:3000\nGRAFANA_DOMAIN=gpu1\nGRAFANA_COOKIE_SECURE=false") == []
    for lock in ("TOKEN_FILE=/etc/trainvitals/token", "WEB_CONFIG=/etc/trainvitals/web.yml"):
        assert told(tmp_path, f"TRAINVITALS_BIND=10.0.0.5\nTRAINVITALS_{lock}") == []
    assert told(tmp_path, "COMPOSE_PROJECT_NAME=mine\nDOCKER_HOST=unix:///run/docker.sock\n\n# GRAFANA_PROT=1\n") == []


@pytest.mark.parametrize("line", [
    "TRAINVITALS_DIR=/data/trainvitals", "TRAINVITALS_DIR=/scratch", "PROMETHEUS_RETENTION_TIME=1y2w3d4h5m6s7ms",
    "PROMETHEUS_RETENTION_TIME=100y", "PROMETHEUS_RETENTION_SIZE=2TB", "PROMETHEUS_RETENTION_SIZE=1000MB",
    "DEMO_PORT=8079", "GRAFANA_PORT=443", "TRAINVITALS_BIND=127.0.0.2", "TRAINVITALS_NOTIFY=alertmanager=http://alertmanager:9093",
    "COMPOSE_PROFILES=node\nTRAINVITALS_NOTIFY=alertmanager=http://10.0.0.10:9093",
    "TRAINVITALS_BIND=[::1]", "PUBLIC_BIND=[::]", "TRAINVITALS_USER=2147483647:0", "TRAINVITALS_RAY_ADDRESS=",
    "WEBHOOK_URL=http://host.docker.internal:9000/x", "WEBHOOK_URL=http://localhost.example.org"])  # fmt: skip
def test_what_only_looks_like_what_cannot_be_is_taken(line: str, tmp_path: Path) -> None:
    assert told(tmp_path, line) == []


def test_a_file_that_compose_does_not_have_is_told_where_its_folder_is_seen(tmp_path: Path) -> None:
    lines = "COMPOSE_FILE=compose.yaml:more.yml:/etc/mine.yml\n" + "".join(
        f"{name}=/etc/trainvitals/web.yml\n" for name in WEB_FILES
    )
    assert told(tmp_path, lines) == []
    (tmp_path / "compose.yaml").touch()
    (tmp_path / "web").mkdir()
    one, *others = told(tmp_path, lines)
    assert "COMPOSE_FILE" in one
    assert one.endswith("there is no compose/more.yml")
    assert [name in other for name, other in zip(WEB_FILES, others, strict=True)] == [True] * 3
    assert all("there is no compose/web/web.yml" in other for other in others)
    for name in ("more.yml", "web/web.yml"):
        (tmp_path / name).touch()
    assert told(tmp_path, lines) == []


TLS = "tls_server_config: {cert_file: a.crt, key_file: a.key}\n"
USERS = f"basic_auth_users: {{prometheus: $2y$10${'a' * 53}}}\n"
BY_CERTIFICATE = "tls_server_config: {client_ca_file: ca.crt, client_auth_type: RequireAndVerifyClientCert}\n"
ASKED_FOR = BY_CERTIFICATE.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven")
HEADERS = "http_server_config: {headers: {Strict-Transport-Security: max-age=1}}\n"
LOCK = "TRAINVITALS_WEB_CONFIG=/etc/trainvitals/web.yml\n"
OPEN = f"{LOCK}COMPOSE_PROFILES=node\nTRAINVITALS_BIND=0.0.0.0\n"


def told_with(folder: Path, web: str, text: str) -> list[str]:
    """Where compose/ is seen, with its web/web.yml."""
    (folder / "compose.yaml").touch()
    (folder / "web").mkdir()
    (folder / "web" / "web.yml").write_text(web)
    (folder / "web" / "token").touch()
    return told(folder, text)


@pytest.mark.parametrize("web", ["", TLS, ASKED_FOR, HEADERS, f"{TLS}basic_auth_users: {{}}\n"])
def test_a_web_configuration_that_keeps_nobody_out_is_no_lock(web: str, tmp_path: Path) -> None:
    (problem,) = told_with(tmp_path, web, OPEN)
    assert "TRAINVITALS_BIND: '0.0.0.0' cannot be used: " in problem
    assert "with basic_auth_users" in problem
    assert told(tmp_path, f"{OPEN}TRAINVITALS_TOKEN_FILE=/etc/trainvitals/token\n") == []


@pytest.mark.parametrize("web", [USERS, TLS + USERS, BY_CERTIFICATE])
def test_one_that_asks_for_a_password_or_a_certificate_is(web: str, tmp_path: Path) -> None:
    assert told_with(tmp_path, web, OPEN) == []


@pytest.mark.parametrize(("web", "url", "fix"), [
    (TLS, "", "give https://, a name that is in its certificate"),
    (TLS + USERS, "", "give https://, USER:PASSWORD@, one of its users, and a name that is in its certificate"),
    (TLS + USERS, "http://prometheus:hush@collector:8080", "give https://, USER:PASSWORD@"),
    (TLS + USERS, "https://gpu1.example.org:8080", "give https://, USER:PASSWORD@"),
    (USERS, "", "give http://, USER:PASSWORD@, one of its users, and collector:8080"),
    (USERS, "https://prometheus:hush@collector:8080", "give http://, USER:PASSWORD@"),
    (HEADERS, "https://collector:8080", "give http://, collector:8080"),
    (BY_CERTIFICATE, "https://gpu1.example.org:8080", "by basic_auth_users")])  # fmt: skip
def test_alertmanager_must_call_the_collector_as_that_answers(web: str, url: str, fix: str, tmp_path: Path) -> None:
    line = f"COLLECTOR_URL={url}\n" if url else ""
    (problem,) = told_with(tmp_path, web, LOCK + line)
    assert fix in problem
    assert "hush" not in problem
    assert told(tmp_path, f"{LOCK}{line}COMPOSE_PROFILES=node\n") == []


@pytest.mark.parametrize(("web", "url"), [
    (USERS, "http://prometheus:hush@collector:8080"), (HEADERS, "http://collector:8080"),
    (TLS, "https://gpu1.example.org:8080"),
    (TLS + USERS, "https://prometheus:hush@gpu1.example.org:8080")])  # fmt: skip
def test_and_where_it_does_nothing_is_said(web: str, url: str, tmp_path: Path) -> None:
    assert told_with(tmp_path, web, f"{LOCK}COLLECTOR_URL={url}\n") == []


def test_a_web_configuration_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (problem,) = told_with(tmp_path, "basic_auth_users: [", OPEN)
    assert "web/web.yml" in problem and "mend its YAML" in problem


def test_the_configuration_of_an_alertmanager_of_one_s_own_may_name_this_machine() -> None:
    assert channels.read({"WEBHOOK_URL": "http://127.0.0.1:9000/x"})["WEBHOOK_URL"] == "http://127.0.0.1:9000/x"


@pytest.mark.parametrize("address", ["auto", "localhost:6379", "10.0.0.5:6379"])
def test_a_ray_cluster_that_no_container_can_join_is_told_with_where_it_is_watched(
    address: str, tmp_path: Path
) -> None:
    (problem,) = told(tmp_path, f"TRAINVITALS_RAY_ADDRESS={address}\n")
    assert f"TRAINVITALS_RAY_ADDRESS: {address!r} cannot be used: " in problem
    assert "on the cluster's head node run `trainvitals serve --ray-address`" in problem


@pytest.mark.parametrize(("mode", "line", "is_told"), [
    (0o644, "PAGERDUTY_KEY=hush4hush4hush4hush4", True), (0o604, "WEBHOOK_URL=http://a:hush@b", True),
    (0o600, "PAGERDUTY_KEY=hush4hush4hush4hush4", False), (0o644, "PAGERDUTY_KEY=", False),
    (0o644, "SMTP_TO=hush@b.c\nSMTP_HOST=m\nSMTP_FROM=a@b.c", False),
    (0o644, "COLLECTOR_URL=http://collector:8080", False)])  # fmt: skip
def test_secrets_that_anybody_may_read_are_told_but_stop_nothing(
    mode: int, line: str, is_told: bool, tmp_path: Path
) -> None:
    path = tmp_path / ".env"
    path.write_text(line)
    path.chmod(mode)
    answer = checked(path)
    assert answer.returncode == 0
    assert (f"may read {line.partition('=')[0]}: chmod 600 {path}" in answer.stderr) == is_told
    assert bool(answer.stderr) == is_told
    assert "hush" not in answer.stderr


def test_a_name_that_is_no_knob_is_told_with_the_nearest(tmp_path: Path) -> None:
    (problem,) = told(tmp_path, "GRAFANA_PROT=3000\n")
    assert problem.endswith("GRAFANA_PROT is no knob: the nearest one is GRAFANA_PORT")


@pytest.mark.parametrize(("line", "is_taken"), [
    ("SMTP_PASSWORD=a$b", False), ('SMTP_PASSWORD="a${b}"', False), ("SMTP_PASSWORD='a$b'", True),
    ("SMTP_PASSWORD=a$$b", False), ("SMTP_PASSWORD=ab # not $this", True), ('SMTP_PASSWORD="a#b$HOME"', False),
    ("SMTP_PASSWORD=a#b$c", False), ("SMTP_PASSWORD='a#b$c' # $", True), ('SMTP_PASSWORD="ab" # $', True),
    (r'SMTP_PASSWORD="a\nb"', False), (r"SMTP_PASSWORD=a\nb", True), (r"SMTP_PASSWORD='a\n$b'", True),
    (r"SMTP_PASSWORD='ab\'", False), (r'SMTP_PASSWORD="a\$b\\"', True), (r'SMTP_PASSWORD="a\\$b"', False),
    ("export SMTP_PASSWORD = a$", False), ("SMTP_PASSWORD=a#b", True), ("SMTP_PASSWORD=a\t# b", False),
    ("SLACK_CHANNEL=#gpus\nSMTP_PASSWORD=ab", False), ("# SMTP_PASSWORD=a$b\nSMTP_PASSWORD=ab", True)])  # fmt: skip
def test_what_compose_reads_otherwise_is_told_without_the_secret(line: str, is_taken: bool, tmp_path: Path) -> None:
    found = told(tmp_path, f"SMTP_HOST=m\nSMTP_FROM=a@b.c\nSMTP_TO=a@b.c\nSMTP_USER=me\n{line}\n")
    assert (found == []) == is_taken
    assert is_taken or ("double quotes, with" if line.endswith("\\'") else "single quotes") in found[0]
    assert not re.search("a[$#]|gpus", "".join(found))


def test_all_that_is_wrong_is_told_at_once_and_no_secret_with_it(tmp_path: Path) -> None:
    found = told(tmp_path, "GRAFANA_PORT=x\nPROMETHEUS_PORT=y\nPAGERDUTY_KEY=hush hush\n")
    assert len(found) == 3
    assert "hush" not in "".join(found)


def test_what_the_environment_says_goes_before_the_file_and_is_checked_too(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TRAINVITALS_DIR=/data/runs\nGRAFANA_PORT=3000\n")
    (problem,) = problems(tmp_path / ".env", {"TRAINVITALS_DIR": "/srv", "HOME": "/srv"})
    assert problem.startswith("the environment: TRAINVITALS_DIR: '/srv' cannot be used")
    (problem,) = problems(tmp_path / ".env", {"PROMETHEUS_PORT": "3000"})
    assert "GRAFANA_PORT: '3000' cannot be used: PROMETHEUS_PORT has that port" in problem
    assert problems(tmp_path / ".env", {"TRAINVITALS_DIR": "/data/others", "PROMETHEUS_PORT": ""}) == []


@pytest.mark.parametrize(("line", "fix"), [
    ("COMPOSE_PROJECT_NAME=Mine", "give small letters"), ("TRAINVITALS_ALLOWED_HOSTS=http://x", "give names alone"),
    ("TRAINVITALS_INTERVAL=400", "give seconds from 0.1 to 120")])  # fmt: skip
def test_what_compose_or_prometheus_could_not_do_with_is_refused(line: str, fix: str, tmp_path: Path) -> None:
    (problem,) = told(tmp_path, f"{line}\n")
    assert line.partition("=")[0] in problem and fix in problem


def test_the_command_says_it_and_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GRAFANA_PORT=x\n")
    for path, status in ((tmp_path / ".env", 2), (tmp_path / "none", 2), (EXAMPLE, 0)):
        answer = checked(path)
        assert answer.returncode == status
        assert bool(answer.stderr) == bool(status)
        assert "Traceback" not in answer.stderr
