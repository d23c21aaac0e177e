"""What nobody would read of terraform.tfvars is told before anything is planned: with its name, and the one meant."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deploy import settings
from deploy.cloud import CLOUDS, Cloud
from deploy.errors import DeployError
from deploy.machines import _summary
from tests.terraform import support

KEY = 'ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"'


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Cloud]:
    support.program()

    def write(name: str, text: str) -> Cloud:
        folder = support.copy_of(tmp_path, name)
        example = (folder / "terraform.tfvars.example").read_text()
        (folder / "terraform.tfvars").write_text(f"{example}\n{KEY}\n{text}\n")
        return replace(CLOUDS[name], folder=folder, private_programs={})

    return write


@pytest.mark.parametrize("cloud", support.CLOUDS)
@pytest.mark.parametrize(("text", "wanted"), [
    ('autostop = { stop_at = "20:00" }', "autostop is not known: did you mean auto_stop?"),
    ('auto_stop = { stopat = "20:00" }', "auto_stop.stopat is not known: did you mean stop_at?"),
    ("auto_stop = { idle_minute = 60 }", "auto_stop.idle_minute is not known: did you mean idle_minutes?"),
    ("monitoring = { disk = 60 }", "monitoring.disk is not known: did you mean disk_gb?"),
    ("xyzzy = 1", "xyzzy is not known: there are "),
    ('auto_stop = { stop_at = "25:00" }', "auto_stop: stop_at '25:00' is no time of the day. Write 20:00, or leave it"),
    ('name = "My-Site"', "name: 'My-Site' does not fit. Take 3 to 20 of a-z"),
])  # fmt: skip
def test_a_typo_is_told_with_what_was_meant(written: Callable[..., Cloud], cloud: str, text: str, wanted: str) -> None:
    with pytest.raises(DeployError) as told:
        settings.check(written(cloud, text))
    assert wanted in str(told.value)
    assert len(str(told.value).splitlines()) <= 3


def test_a_typo_within_a_machine_is_told(written: Callable[..., Cloud]) -> None:
    cloud = written("aws", "")
    file = cloud.settings
    file.write_text(file.read_text().replace('machine_type = "g6.xlarge"', 'machine_type = "g6.xlarge", sport = true'))
    with pytest.raises(DeployError, match=r"gpu_machines.gpu.sport is not known: did you mean spot\?"):
        settings.check(cloud)


@pytest.mark.parametrize(("cloud", "type_", "wanted"), [
    ("aws", "g6.xlrge", "gpu_machines: gpu has 'g6.xlrge', a machine_type not known to run here. A newer one: give its "
     "price in prices. Did you mean g6.xlarge or "),
    ("aws", "t3.large", "gpu_machines: gpu has 't3.large', a machine_type without GPU. Take g4dn."),
    ("gcp", "g-standard-4", "gpu_machines: gpu has 'g-standard-4', a machine_type without GPU. Take g2-"),
    ("gcp", "g2-standard-5", "gpu_machines: gpu has 'g2-standard-5', a machine_type not known to run here."),
    ("gcp", "g2-typo-4", "gpu has 'g2-typo-4', a machine_type not known to run here."),
    ("gcp", "g-standard-4", "Did you mean g2-standard-4"),
])  # fmt: skip
def test_a_machine_type_that_is_none_is_told_with_its_kind_and_those_near_it(
    written: Callable[..., Cloud], cloud: str, type_: str, wanted: str
) -> None:
    told = written(cloud, "")
    text = told.settings.read_text()
    told.settings.write_text(
        re.sub(r'(?m)^  gpu += .*machine_type = "[^"]+"', f'  gpu = {{ machine_type = "{type_}"', text)
    )
    with pytest.raises(DeployError) as error:
        settings.check(told)
    assert wanted in str(error.value) and str(error.value).count("gpu_machines:") == 1


@pytest.mark.parametrize("cloud", support.CLOUDS)
@pytest.mark.parametrize(("text", "wanted"), [
    ("prices = { some = 1.0 }", 'prices: element "some": object required. Write prices = { "'),
    ("prices = { some = 1.0 }", "{ on_demand = 0.71, spot = 0.28 } }, dollars an hour"),
    ('auto_stop = "20:00"', 'auto_stop: object required. Write auto_stop = { stop_at = "20:00", idle_minutes = 60 }'),
    ('node_to_node = "perhaps"', "node_to_node: a bool is required"),
    ('access = "public"\nssh_cidrs = "203.0.113.7/32"', 'string required. Write ssh_cidrs = ["203.0.113.7/32"]'),
    ('https_cidrs = "0.0.0.0/0"', 'string required. Write https_cidrs = ["203.0.113.0/24"]'),
    ('https_cidrs = ["203.0.113.7/24"]', "203.0.113.7/24 begins within 203.0.113.0/24. Write that range, or /32 for"),
])  # fmt: skip
def test_a_value_of_another_form_is_told_with_the_form(
    written: Callable[..., Cloud], cloud: str, text: str, wanted: str
) -> None:
    with pytest.raises(DeployError) as told:
        settings.check(written(cloud, text))
    assert wanted in str(told.value)


@pytest.mark.parametrize(("cloud", "zone"), [("gcp", "us-central1-a"), ("aws", "us-east-1a")])
def test_a_zone_that_is_no_list_is_told_with_one_of_that_cloud(
    written: Callable[..., Cloud], cloud: str, zone: str
) -> None:
    told = written(cloud, "")
    text = re.sub(r"(?m)^zones .*\n", "", told.settings.read_text())
    told.settings.write_text(f'{text}\nzones = "{zone}"\n')
    with pytest.raises(DeployError, match=rf'zones: .*Write zones = \["{zone}"\]'):
        settings.check(told)


@pytest.mark.parametrize("cloud", support.CLOUDS)
@pytest.mark.parametrize("name", ["auto_stop", "labels", "prices", "https_cidrs"])
def test_null_is_let_through_as_the_default(written: Callable[..., Cloud], cloud: str, name: str) -> None:
    assert settings.check(written(cloud, f"{name} = null"))[name] is not None


@pytest.mark.parametrize(("cloud", "type_"), [("gcp", "t2a-standard-2"), ("aws", "t4g.large"), ("aws", "c6gn.xlarge")])
def test_a_processor_that_there_is_no_image_for_is_refused(
    written: Callable[..., Cloud], cloud: str, type_: str
) -> None:
    with pytest.raises(DeployError, match=f"monitoring: {type_} has an ARM processor"):
        settings.check(written(cloud, f'monitoring = {{ machine_type = "{type_}" }}'))


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_the_example_is_let_through(written: Callable[..., Cloud], cloud: str) -> None:
    settings.check(written(cloud, 'labels = { team = "ml" }\nauto_stop = { stop_at = "20:00", idle_minutes = 60 }'))


def test_a_file_that_is_none_is_left_to_the_plan_that_names_the_line(written: Callable[..., Cloud]) -> None:
    settings.check(written("aws", "zones = ["))


def test_a_key_s_file_may_be_told_from_the_folder(written: Callable[..., Cloud]) -> None:
    cloud = written("aws", "")
    cloud.settings.write_text(cloud.settings.read_text().replace(KEY, 'ssh_public_key = "mine.pub"'))
    with pytest.raises(DeployError, match="neither a public key nor the file of one"):
        settings.check(cloud)
    (cloud.folder / "mine.pub").write_text(KEY.split('"')[1])
    settings.check(cloud)


def test_a_program_that_private_access_goes_by_is_asked_for_first(written: Callable[..., Cloud]) -> None:
    cloud = replace(written("aws", ""), private_programs={"no-such-plugin": "https://example.com"})
    with pytest.raises(DeployError, match=r"no-such-plugin is not installed: https://example.com"):
        settings.check(cloud)
    with cloud.settings.open("a") as file:
        file.write('access = "public"\nssh_cidrs = ["203.0.113.7/32"]\n')
    settings.check(cloud)


@pytest.mark.parametrize(("auto_stop", "wanted"), [
    ({}, "GPU machines never stop by themselves (auto_stop)"),
    ({"stop_at": "20:00", "time_zone": "Europe/Berlin"}, "GPU machines stop daily at 20:00 Europe/Berlin"),
    ({"idle_minutes": 60}, "GPU machines stop when idle for 60 minutes"),
    ({"stop_at": "20:00", "idle_minutes": 5}, "GPU machines stop daily at 20:00 UTC and when idle for 5 minutes"),
])  # fmt: skip
def test_the_plan_says_when_machines_stop_and_which_are_spot(auto_stop: dict[str, object], wanted: str) -> None:
    after = {"instance_type": "g6.xlarge", "instance_market_options": [{"market_type": "spot"}]}
    change = {"type": "aws_instance", "address": "it", "change": {"actions": ["create"], "after": after}}
    planned = {"resource_changes": [change], "variables": {"auto_stop": {"value": auto_stop}}}
    told = [*_summary(planned, CLOUDS["aws"])]
    assert "+ it g6.xlarge, spot" in told and wanted in told
