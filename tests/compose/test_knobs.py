""".env.example, compose.yaml and the table of knobs say the same."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.files import COMPOSE, EXAMPLE, GPU, ROOT, SERVICES, variables
from trainvitals import config, notify
from trainvitals.alerting import channels
from trainvitals.alerting.writing import LINKS
from trainvitals.config import read_env_lines
from trainvitals.stack.check_env import problems
from trainvitals.stack.knobs import KNOBS, PROFILES, text_of

COMPOSES_OWN = {"COMPOSE_PROFILES", "COMPOSE_FILE"}


def test_the_example_has_every_knob_with_its_default() -> None:
    here = {"TRAINVITALS_NOTIFY": "alertmanager=http://alertmanager:9093"}
    assert read_env_lines(EXAMPLE) == {name: text_of(knob) for name, knob in KNOBS.items()} | here


def test_the_example_can_be_used_as_it_is() -> None:
    assert problems(EXAMPLE) == []


def test_the_agent_alone_takes_the_same_file() -> None:
    settings = config.load({"env_file": str(EXAMPLE)}, {})
    assert (settings["interval"], settings["runs_cap"], settings["dir"]) == (1.0, 2**31, Path("/var/lib/trainvitals"))


def test_the_collector_tells_the_alertmanager_that_runs_beside_it() -> None:
    settings = config.load({"env_file": str(EXAMPLE)}, {})
    assert [channel.shown for channel in notify.channels(settings["notify"], {})] == ["alertmanager alertmanager"]
    service = SERVICES["collector"]["environment"]
    assert service["TRAINVITALS_NOTIFY"] == "${TRAINVITALS_NOTIFY:-}"
    # What Alertmanager sends by the collector would send once more.
    assert not service.keys() & channels.KNOBS.keys()


def test_every_knob_has_a_comment_of_its_own() -> None:
    comments = list(_comments(EXAMPLE.read_text()))
    assert [name for name, comment in comments if len(comment) < 8] == []
    told = [comment for _, comment in comments]
    assert len(set(told)) == len(told)


def _comments(text: str) -> Iterator[tuple[str, str]]:
    comment = ""
    for line in text.splitlines():
        if line.startswith("#"):
            comment = "" if line.startswith("# ---") else f"{comment} {line.lstrip('# ')}"
        elif "=" in line:
            yield line.partition("=")[0], comment.strip()
            comment = ""
        else:
            assert not line, line
            comment = ""


def test_the_composition_uses_every_knob_but_a_channel_s_and_no_other_variable() -> None:
    of_channels = channels.KNOBS.keys() - set(LINKS)
    assert {name for name, _ in variables(COMPOSE + GPU)} == KNOBS.keys() - {"COMPOSE_FILE"} - of_channels


def test_no_secret_stands_in_a_container_s_configuration() -> None:
    secrets = {name for name, knob in KNOBS.items() if knob.is_secret}
    assert len(secrets) >= 8
    assert not secrets & {name for name, _ in variables(COMPOSE + GPU)}
    assert not [name for name, service in SERVICES.items() if "env_file" in service]


@pytest.mark.parametrize(("name", "default"), sorted(set(variables(COMPOSE + GPU))))
def test_a_default_in_the_composition_is_the_knob_s(name: str, default: str) -> None:
    if name == "COMPOSE_PROFILES":
        assert default == ""
    elif default.startswith("http://localhost:"):
        assert re.fullmatch(rf"http://localhost:\$\{{{name.removesuffix('_URL')}_PORT:-\d+\}}", default)
    else:
        assert default == text_of(KNOBS[name])


def test_no_secret_has_a_default() -> None:
    secrets = [knob for knob in KNOBS.values() if knob.is_secret or "PASSWORD" in knob.name]
    assert {knob.name for knob in secrets if text_of(knob)} == {"COLLECTOR_URL"}
    assert len(secrets) >= 8


def test_what_alertmanager_needs_is_handed_to_its_configuration() -> None:
    service = SERVICES["alertmanager-config"]
    assert service["environment"].keys() == set(LINKS)
    mounted = service["volumes"][0]
    assert (mounted["source"], mounted["target"]) == (".env", f"{service['working_dir']}{service['command'][0]}")
    assert service["volumes"][1].endswith(f":{service['command'][2]}")


def test_what_the_environment_cannot_say_stands_beneath_one_heading_alone() -> None:
    """scripts/stack reads the names there."""
    beneath = EXAMPLE.read_text().partition("# --- Alerts")[2]
    assert set(re.findall(r"^(\w+)=", beneath, re.MULTILINE)) == channels.KNOBS.keys() - set(LINKS)


def test_the_page_on_the_stack_names_every_service() -> None:
    page = (ROOT / "docs" / "stack.md").read_text()
    assert [name for name in SERVICES if f"| {name} |" not in page and f"`{name}`" not in page] == []


def test_of_the_demo_s_pages_what_is_published_is_promised() -> None:
    assert [port.rpartition(":")[2] for port in SERVICES["demo"]["ports"]] == ["8080"]
    comment = dict(_comments(EXAMPLE.read_text()))["DEMO_PORT"]
    assert comment.startswith("The page of the demo's first node.")


def test_what_is_to_be_removed_by_hand_is_removed_whatever_profile_started_it() -> None:
    page = (ROOT / "docs" / "stack.md").read_text()
    assert page.count("down --volumes") == page.count("docker compose --profile '*' down --volumes") == 1


def test_nothing_recommends_a_signal_after_which_the_engine_starts_nothing_again() -> None:
    texts = (COMPOSE, (ROOT / "docs" / "stack.md").read_text(), (ROOT / "scripts" / "stack").read_text())
    assert [found for text in texts for found in re.findall(r"compose kill -.*", text)] == []


def test_alertmanager_finds_this_machine_and_writes_what_it_knows_soon() -> None:
    service = SERVICES["alertmanager"]
    assert service["extra_hosts"] == ["host.docker.internal:host-gateway"]
    assert "--data.maintenance-interval=15s" in service["command"]


def test_the_profiles_are_those_of_the_composition() -> None:
    assert {profile for service in SERVICES.values() for profile in service["profiles"]} == set(PROFILES)
    assert all(profile in EXAMPLE.read_text() for profile in PROFILES)
