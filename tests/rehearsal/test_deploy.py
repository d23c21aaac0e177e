"""From fresh machines to a watched site, and what a second run does to it."""

import re
from collections.abc import Callable

from tests.rehearsal.deployment import HOME, Deployment

# What it is to take on a machine that does nothing else, and by what a slow one is told from one that hangs.
FIRST_WANTED, SECOND_WANTED = 300, 60
FIRST_SECONDS, SECOND_SECONDS = 900, 300
Record = Callable[[str, object], None]


def test_a_look_changes_nothing_on_fresh_machines(fresh: Deployment) -> None:
    played = fresh.play("site.yml", "--check", "--diff", "--limit", "mon", check=False)
    assert not any(played.failed.values()), played.text[-6000:]
    assert fresh.site.ended("mon", f"test -e {HOME} || test -e /etc/trainvitals")[0] == 1


def test_one_command_deploys_fresh_machines_and_verifies_them(deployed: Deployment, record_property: Record) -> None:
    assert deployed.first
    record_property("from fresh machines to verified", measured(deployed.first.seconds, FIRST_WANTED))
    assert deployed.first.seconds < FIRST_SECONDS
    screen = deployed.first.text.partition("deploy: 4/4 Done")
    assert re.search(r"\d+ passed", screen[0])
    assert " skipped" not in screen[0]
    assert "scripts/stack password" in screen[2]
    assert "make tunnel" in screen[2]


def measured(seconds: float, wanted: int) -> str:
    return f"{seconds:.0f} s, {wanted} s are wanted"


def test_a_second_run_changes_nothing_and_is_quick(deployed: Deployment, record_property: Record) -> None:
    played = deployed.play("site.yml")
    assert played.changed == {"gpu1": 0, "gpu2": 0, "mon": 0, "localhost": 0}, played.text[-8000:]
    record_property("a second run", measured(played.seconds, SECOND_WANTED))
    assert played.seconds < SECOND_SECONDS


def test_a_run_for_one_node_changes_nothing_there(deployed: Deployment) -> None:
    """What it must know of the monitoring machine is asked of that."""
    played = deployed.play("site.yml", "--limit", "gpu1")
    assert played.changed["gpu1"] == 0, played.text[-8000:]


def test_whom_to_tell_stays_until_it_is_given_as_empty(deployed: Deployment) -> None:
    """The run is from a shell that knows of no channel, and on one machine alone."""
    channel, line = deployed.environ.pop("WEBHOOK_URL"), "grep ^WEBHOOK_URL= " + f"{HOME}/compose/.env"
    try:
        played = deployed.play("site.yml", "--limit", "mon")
        assert played.changed["mon"] == 0, played.text[-8000:]
        assert channel in deployed.site.run("mon", line)
        deployed.environ["WEBHOOK_URL"] = ""
        assert deployed.play("site.yml", "--limit", "mon").changed["mon"] > 0
        assert deployed.site.run("mon", line).strip() == "WEBHOOK_URL="
        assert deployed.play("site.yml", "--limit", "mon").changed["mon"] == 0
    finally:
        deployed.environ["WEBHOOK_URL"] = channel
    deployed.play("site.yml", "--limit", "mon")
    assert channel in deployed.site.run("mon", line)


def test_a_look_tells_what_would_change_and_changes_nothing(deployed: Deployment) -> None:
    played = deployed.play("site.yml", "--check", "--diff", stack_env={"NODE_EXPORTER_PORT": 9101})
    assert played.changed["mon"] > 0
    assert re.search(r'^\+- targets: \["[\d.]+:9101"\]', played.text, re.MULTILINE)
    assert "9101" not in deployed.site.run("gpu1", f"cat {HOME}/compose/.env")


def test_no_secret_is_told_or_shown(deployed: Deployment) -> None:
    secrets = deployed.clone / "ansible" / ".secrets"
    (site,) = secrets.iterdir()
    assert site.stat().st_mode & 0o777 == 0o700
    values = [(site / "password").read_text(), deployed.environ["WEBHOOK_URL"]]
    keys = [path.read_text().splitlines()[1] for path in site.glob("*.key")]
    assert deployed.first
    told = deployed.first.text + deployed.play("site.yml", "--diff", "-vvv", "--limit", "mon").text
    for host in ("gpu1", "mon"):
        told += deployed.site.run(host, "docker ps --all --quiet | xargs docker inspect; ps -eww -o args")
    assert len(keys) == 3
    assert [value for value in [*values, *keys] if value in told] == []


def test_a_node_answers_prometheus_alone(deployed: Deployment) -> None:
    """Another machine's word does not get through the firewall, and Prometheus' own is encrypted."""
    address = deployed.site.addresses["gpu1"]
    for port in (8080, 9100, 9400):
        assert deployed.site.ended("gpu2", f"curl -sk --max-time 3 https://{address}:{port}/metrics")[0] in (7, 28)
        code = "curl -sk --max-time 5 -o /dev/null -w '%{http_code}'"
        # How the stand-in of DCGM's exporter ends a connection curl minds.
        assert deployed.site.run("mon", f"{code} https://{address}:{port}/metrics", check=False) == "401"
        assert deployed.site.run("mon", f"{code} http://{address}:{port}/metrics", check=False) != "200"


def test_what_the_inventory_says_of_a_machine_arrives(deployed: Deployment) -> None:
    (price,) = deployed.prometheus('node_price_dollars_per_hour{instance="gpu1"}')
    assert price["value"][1] == "2.5"
    counts = {one["metric"]["instance"]: one["value"][1] for one in deployed.prometheus("gpu_count > 0")}
    assert counts == {"gpu1": "2", "gpu2": "1"}
    (expected,) = deployed.prometheus('gpu_expected_count{instance="gpu2"}')
    assert expected["value"][1] == "1"


def test_a_run_that_was_killed_is_simply_repeated(deployed: Deployment) -> None:
    """As if it had been cut short while files were brought, and after .env was written."""
    site = deployed.site
    release = deployed.release("gpu2")
    site.run("gpu2", f"cd {HOME} && mkdir -p releases/{release}.unfinished/compose && echo half >releases/{release}"
                     f".unfinished/compose/compose.yaml && rm current healthy && echo X=1"
                     f" >releases/{release}/compose/.env.new && docker rm --force trainvitals-collector-1")  # fmt: skip
    deployed.play("site.yml")
    assert deployed.release("gpu2") == release
    assert (
        site.run("gpu2", f"ls -A {HOME}/releases {HOME}/releases/*/compose | grep -E 'unfinished|env.new'", check=False)
        == ""
    )
    assert deployed.play("site.yml").changed["gpu2"] == 0


def test_a_knob_that_cannot_be_used_is_named_and_changes_nothing(deployed: Deployment) -> None:
    before = deployed.site.run("mon", f"cat {HOME}/compose/.env")
    played = deployed.play(
        "site.yml", "--limit", "mon", check=False, stack_env={"PROMETHEUS_RETENTION_TIME": "a month"}
    )
    assert "mon: " in played.text
    assert "PROMETHEUS_RETENTION_TIME: 'a month' cannot be used: give a duration" in " ".join(played.text.split())
    assert deployed.site.run("mon", f"cat {HOME}/compose/.env") == before
