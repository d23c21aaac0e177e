"""The AWS module applied for real, to a cloud on loopback, and destroyed again: what was made, told by boto3."""

import base64
import json
import subprocess
import sys
import time
from typing import NamedTuple

import pytest
import yaml

from tests.ports import free_port
from tests.terraform import support

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: make .venv/.dev")

WANTED = """
gpu_machines   = { a = { machine_type = "g6.xlarge", spot = true }, b = { machine_type = "g5.xlarge", disk_gb = 300 } }
https_cidrs    = ["198.51.100.0/24"]
auto_stop      = { stop_at = "20:00", time_zone = "Europe/Berlin", idle_minutes = 30 }
ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"
labels         = { team = "ml" }
"""
KEYS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}  # gitleaks:allow, they open nothing


class Cloud(NamedTuple):
    folder: object
    env: dict

    def client(self, service):
        named = {key.lower(): value for key, value in KEYS.items()}
        return boto3.client(service, "us-east-1", endpoint_url=self.env["AWS_ENDPOINT_URL"], **named)

    def terraform(self, *words):
        return support.run(self.folder, *words, "-input=false", "-no-color", **self.env)

    def instances(self):
        told = self.client("ec2").describe_instances()["Reservations"]
        alive = [one for each in told for one in each["Instances"] if one["State"]["Name"] != "terminated"]
        return {tags(one)["Name"]: one for one in alive}

    def output(self):
        told = json.loads(support.run(self.folder, "output", "-json", **self.env))
        return {name: one["value"] for name, one in told.items()}


def tags(thing):
    return {tag["Key"]: tag["Value"] for tag in thing["Tags"]}


@pytest.fixture(scope="module")
def server():
    """moto's, in a process of its own, until the last test is done."""
    port = free_port()
    words = [sys.executable, "-m", "tests.terraform.aws_server", str(port)]
    running = subprocess.Popen(words, cwd=support.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    env = {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_MAX_ATTEMPTS": "2"}
    env["AWS_EC2_METADATA_DISABLED"] = "true"
    yield env, running
    running.terminate()
    running.wait(20)


def wait_for(cloud, running):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert running.poll() is None, "the cloud on loopback ended"
        try:
            return cloud.client("ec2").describe_vpcs()
        except boto3.exceptions.botocore.exceptions.EndpointConnectionError:
            time.sleep(0.2)
    pytest.fail("the cloud on loopback does not answer")


@pytest.fixture(scope="module")
def cloud(server, tmp_path_factory):
    env, running = server
    folder = support.copy_of(tmp_path_factory.mktemp("applied"), "aws")
    made = Cloud(folder, env)
    (folder / "terraform.tfvars").write_text(WANTED)
    support.run(folder, "init", "-input=false", f"-plugin-dir={support.plugins('aws')}")
    wait_for(made, running)
    made.terraform("apply", "-auto-approve")
    return made


def test_the_machines_are_there(cloud):
    types = {name: one["InstanceType"] for name, one in cloud.instances().items()}
    wanted = {"trainvitals-a-1": "g6.xlarge", "trainvitals-b-1": "g5.xlarge", "trainvitals-monitoring": "t3.large"}
    assert types == wanted


def test_each_asks_for_a_token_and_answers_no_container(cloud):
    for one in cloud.instances().values():
        options = one["MetadataOptions"]
        assert (options["HttpTokens"], options["HttpPutResponseHopLimit"]) == ("required", 1)


def test_each_disk_is_encrypted_and_as_large_as_wanted(cloud):
    volumes = cloud.client("ec2").describe_volumes()["Volumes"]
    told = {tags(one)["Name"]: (one["Encrypted"], one["VolumeType"], one["Size"]) for one in volumes}
    assert told == {
        "trainvitals-a-1": (True, "gp3", 200),
        "trainvitals-b-1": (True, "gp3", 300),
        "trainvitals-monitoring": (True, "gp3", 50),
    }


def test_only_the_web_s_machine_has_a_public_address(cloud):
    public = {name: one.get("PublicIpAddress") for name, one in cloud.instances().items()}
    assert public["trainvitals-a-1"] is None and public["trainvitals-b-1"] is None
    assert public["trainvitals-monitoring"] == cloud.output()["addresses"]["trainvitals-monitoring"]["public"]


def test_nothing_comes_in_but_the_web_and_what_monitoring_scrapes(cloud):
    ec2 = cloud.client("ec2")
    names = {one["GroupId"]: one["GroupName"] for one in ec2.describe_security_groups()["SecurityGroups"]}
    ours = {group: name for group, name in names.items() if name.startswith("trainvitals")}
    rules = ec2.describe_security_group_rules()["SecurityGroupRules"]
    seen = {incoming(one, ours) for one in rules if one["GroupId"] in ours and not one["IsEgress"]}
    web = [("tcp", 80), ("tcp", 443), ("udp", 443)]
    scraped = [8080, 9100, 9400, 9835]
    assert seen == {("trainvitals-monitoring", kind, port, port, "198.51.100.0/24") for kind, port in web} | {
        ("trainvitals-node", "tcp", port, port, "trainvitals-monitoring") for port in scraped
    }


def incoming(rule, names):
    sender = names.get(rule.get("ReferencedGroupInfo", {}).get("GroupId"), rule.get("CidrIpv4"))
    return names[rule["GroupId"]], rule["IpProtocol"], rule["FromPort"], rule["ToPort"], sender


def test_machines_are_in_the_groups_that_the_rules_are_for(cloud):
    groups = {name: {each["GroupName"] for each in one["SecurityGroups"]} for name, one in cloud.instances().items()}
    gpu = {"trainvitals-machine", "trainvitals-node"}
    assert groups == {
        "trainvitals-a-1": gpu,
        "trainvitals-b-1": gpu,
        "trainvitals-monitoring": {"trainvitals-machine", "trainvitals-monitoring"},
    }


def test_a_spot_machine_stops_when_it_is_taken_back(cloud):
    (request,) = cloud.client("ec2").describe_spot_instance_requests()["SpotInstanceRequests"]
    assert (request["Type"], request["InstanceInterruptionBehavior"]) == ("persistent", "stop")
    assert request["InstanceId"] == cloud.instances()["trainvitals-a-1"]["InstanceId"]


def test_the_schedule_stops_the_gpu_machines_alone(cloud):
    told = cloud.client("scheduler").get_schedule(Name="trainvitals-stop")
    assert told["ScheduleExpression"] == "cron(0 20 * * ? *)" and told["ScheduleExpressionTimezone"] == "Europe/Berlin"
    machines = cloud.instances()
    stopped = {machines[name]["InstanceId"] for name in ("trainvitals-a-1", "trainvitals-b-1")}
    assert set(json.loads(told["Target"]["Input"])["InstanceIds"]) == stopped


def test_roles_may_do_no_more_than_they_must(cloud):
    iam = cloud.client("iam")
    statement = iam.get_role_policy(RoleName="trainvitals-us-east-1-scheduler", PolicyName="stop")["PolicyDocument"][
        "Statement"
    ]
    actions = [each["Action"] for each in statement]
    assert actions == ["ec2:StopInstances"] and "*" not in str(statement[0]["Resource"])
    told = iam.get_role_policy(RoleName="trainvitals-us-east-1-machines", PolicyName="sessions")["PolicyDocument"][
        "Statement"
    ]
    assert not [action for action in told[0]["Action"] if action.startswith(("ssm:Get", "ssm:Send", "s3:"))]


def test_everything_bears_the_labels(cloud):
    for one in cloud.instances().values():
        assert tags(one).items() >= {"app": "trainvitals", "deployment": "trainvitals", "team": "ml"}.items()


def test_machines_know_their_name_and_let_the_key_in(cloud):
    machine = cloud.instances()["trainvitals-b-1"]["InstanceId"]
    told = cloud.client("ec2").describe_instance_attribute(InstanceId=machine, Attribute="userData")
    script = base64.b64decode(told["UserData"]["Value"]).decode()
    assert script.startswith("#cloud-config\n")
    first_boot = yaml.safe_load(script)
    assert first_boot["hostname"] == "trainvitals-b-1"
    assert first_boot["users"][1]["ssh_authorized_keys"] == ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"]


def test_the_inventory_tells_of_what_was_made(cloud):
    output, machines = cloud.output(), cloud.instances()
    inventory = yaml.safe_load(output["inventory"])
    host = inventory["gpu_nodes"]["hosts"]["trainvitals-b-1"]
    assert host["ansible_host"] == machines["trainvitals-b-1"]["InstanceId"]
    assert host["stack_address"] == machines["trainvitals-b-1"]["PrivateIpAddress"]
    assert (host["stack_expected_gpus"], host["stack_idle_stop_minutes"]) == (1, 30)
    assert "AWS-StartSSHSession" in host["ansible_ssh_common_args"]
    assert [*inventory["monitoring"]["hosts"]] == ["trainvitals-monitoring"]


def test_a_second_apply_would_change_nothing(cloud):
    cloud.terraform("plan", "-detailed-exitcode")


def test_another_order_of_zones_moves_nothing(cloud):
    zones = '-var=zones=["us-east-1d", "us-east-1b", "us-east-1a", "us-east-1c"]'
    cloud.terraform("plan", "-detailed-exitcode", zones, "-var=zone=us-east-1a")


def test_destroy_leaves_nothing(cloud):
    cloud.terraform("destroy", "-auto-approve")
    ec2, iam = cloud.client("ec2"), cloud.client("iam")
    left = {
        "instances": cloud.instances(),
        "volumes": ec2.describe_volumes()["Volumes"],
        "addresses": ec2.describe_addresses()["Addresses"],
        "networks": [one for one in ec2.describe_vpcs()["Vpcs"] if not one["IsDefault"]],
        "spot requests": ec2.describe_spot_instance_requests()["SpotInstanceRequests"],
        "roles": [one for one in iam.list_roles()["Roles"] if one["RoleName"].startswith("trainvitals")],
        "schedules": cloud.client("scheduler").list_schedules()["Schedules"],
    }
    assert {what: those for what, those in left.items() if those} == {}
