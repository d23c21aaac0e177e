"""Both clouds are used alike, the READMEs say what is there, and the outputs keep to what Ansible reads."""

import functools
import json
import re

import pytest
import yaml

from tests.terraform import support

ONLY_GOOGLE = {"project"}
OUTPUTS = {"inventory", "addresses", "tunnel_command", "price_per_hour", "since", "zone", "monitoring"}
HOST = {"ansible_host", "ansible_user", "ansible_ssh_common_args", "ansible_ssh_private_key_file"} | {
    "stack_address",
    "stack_node_price",
    "stack_expected_gpus",
    "stack_idle_stop_minutes",
}
# What a newcomer's file holds must do with a key given beside it.
KEY = {"TF_VAR_ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"}


def blocks(cloud, kind):
    text = "".join(path.read_text() for path in sorted((support.TERRAFORM / cloud).glob("*.tf")))
    return dict(re.findall(rf'^{kind} "(\w+)" {{\n(.*?)^}}', text, re.MULTILINE | re.DOTALL))


def argument(body, name):
    """As it is written, over several lines where it opens a bracket."""
    found = re.search(rf"^  {name}\s+= (.*?)\n(?=  \w|\n|$)", body, re.MULTILINE | re.DOTALL)
    return re.sub(r"\s+", " ", found[1]) if found else None


def shape(body):
    """Its type, but for the defaults in it."""
    return re.sub(r"optional\((\w+), [^()]*\)", r"optional(\1)", argument(body, "type"))


def test_both_clouds_have_the_same_variables():
    google, amazon = blocks("gcp", "variable"), blocks("aws", "variable")
    assert google.keys() - amazon.keys() == ONLY_GOOGLE and amazon.keys() <= google.keys()
    for name, body in amazon.items():
        assert shape(body) == shape(google[name]), name


def test_both_clouds_have_the_same_outputs():
    assert blocks("gcp", "output").keys() == blocks("aws", "output").keys() == OUTPUTS


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_there_are_few_variables_each_typed_described_and_checked(cloud):
    variables = blocks(cloud, "variable")
    assert len(variables) <= 15
    for name, body in variables.items():
        # Of a bool its type is check enough.
        is_checked = "validation {" in body or argument(body, "type") == "bool"
        assert argument(body, "type") and argument(body, "description") and is_checked, name


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_each_validation_is_tried(cloud):
    tried = (support.TERRAFORM / cloud / "tests" / "refused.tftest.hcl").read_text()
    for name, body in blocks(cloud, "variable").items():
        assert tried.count(f"[var.{name}]") >= body.count("validation {"), f"{cloud}: {name}"


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_the_readme_lists_the_variables(cloud):
    readme = (support.TERRAFORM / cloud / "README.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (.*) \|$", readme, re.MULTILINE))
    told = {
        name: argument(body, "description").strip('"').replace('\\"', '"')
        for name, body in blocks(cloud, "variable").items()
    }
    assert listed == told


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_the_readme_tells_the_defaults(cloud):
    readme = (support.TERRAFORM / cloud / "README.md").read_text()
    for name, body in blocks(cloud, "variable").items():
        default = argument(body, "default")
        assert f"| `{name}` | {f'`{default}`' if default else 'none: set it'} |" in readme


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_the_readme_lists_the_outputs(cloud):
    readme = (support.TERRAFORM / cloud / "README.md").read_text()
    listed = re.search(r"^Outputs: (.*?)\n\n", readme, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed[1])) == OUTPUTS


def kinds(cloud):
    table = json.loads((support.TERRAFORM / cloud / "prices.json").read_text())
    return table, {name: one["quota"] for name, one in table["machine_types"].items() if "quota" in one}


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_each_type_has_what_the_quota_is_counted_in(cloud):
    table, quotas = kinds(cloud)
    assert set(quotas.values()) <= table["quota"].keys()
    assert all(table["machine_types"][name][table["quota_unit"]] > 0 for name in quotas)
    assert all({"on_demand", "spot"} == one.keys() for one in table["quota"].values())


def test_a_type_that_the_table_lacks_has_a_quota_by_its_name():
    table, quotas = kinds("aws")
    by_name = table["quota_by_name"]
    assert set(by_name.values()) <= table["quota"].keys()
    for name, quota in quotas.items():
        if quota != "standard":
            assert next(by_name[begins] for begins in by_name if name.startswith(begins)) == quota, name


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_prices_are_dated_and_spot_is_the_cheaper(cloud):
    table, _ = kinds(cloud)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", table["as_of"]) and table["source"].startswith("https://") and table["note"]
    for name, one in table["machine_types"].items():
        assert 0 <= one.get("spot", 0) < one.get("on_demand", 999), name


@pytest.fixture(scope="module")
def outputs(mocked):
    """Of a first run with what the example file says, by terraform test."""

    def of(cloud, wanted=""):
        where, env = mocked(cloud)
        head = (where / "tests" / "defaults.tftest.hcl").read_text().partition("\nvariables {")[0]
        example = (where / "terraform.tfvars.example").read_text()
        key = f'ssh_public_key = "{KEY["TF_VAR_ssh_public_key"]}"'
        test = f'{head}\nrun "example" {{\n  variables {{\n{example}\n{key}\n{wanted}\n}}\n}}\n'
        (where / "tests" / "written.tftest.hcl").write_text(test)
        told = support.told(support.run(where, "test", "-json", "-verbose", "-filter=tests/written.tftest.hcl", **env))
        (state,) = [one["test_state"] for one in told if one["type"] == "test_state"]
        return {name: one["value"] for name, one in (state.get("values") or state)["outputs"].items()}

    return functools.cache(of)


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_the_example_file_gives_an_inventory_that_ansible_takes(outputs, cloud):
    told = outputs(cloud)
    inventory = yaml.safe_load(told["inventory"])
    assert inventory.keys() == {"gpu_nodes", "monitoring"} and told.keys() == OUTPUTS
    hosts = inventory["gpu_nodes"]["hosts"] | inventory["monitoring"]["hosts"]
    assert hosts.keys() == told["addresses"].keys() == told["price_per_hour"]["machines"].keys()
    for name, host in hosts.items():
        assert host.keys() <= HOST and host["ansible_host"] and host["stack_address"], name
        assert "-o StrictHostKeyChecking=accept-new" in host["ansible_ssh_common_args"]
        assert "." not in name


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_a_machine_in_both_groups_is_told_of_once(outputs, cloud):
    inventory = yaml.safe_load(outputs(cloud, "monitoring = null")["inventory"])
    assert inventory["monitoring"]["hosts"] == {"trainvitals-gpu-1": {}}
    assert inventory["gpu_nodes"]["hosts"]["trainvitals-gpu-1"]["stack_expected_gpus"] == 1


@pytest.mark.parametrize("cloud", support.CLOUDS)
def test_the_tunnel_brings_the_pages_here_and_no_further(outputs, cloud):
    command = outputs(cloud)["tunnel_command"]
    assert re.findall(r"-L (\S+)", command) == [f"{port}:127.0.0.1:{port}" for port in (3000, 9090, 9093, 8080)]
