"""A clone, and a cloud on loopback that `make deploy CLOUD=aws` in it meets: moto, and before it a gate.

The gate refuses machines in zones that are full as AWS does, and can keep whoever asks for one waiting.
"""

import http.client
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.deploy import clones
from tests.ports import free_port
from tests.terraform import support

KEYS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}  # gitleaks:allow, they open nothing
SECONDS = 300
SETTINGS = """
zones          = ["us-east-1a", "us-east-1b"]
gpu_machines   = { gpu = { machine_type = "g6.xlarge" } }
monitoring     = null
ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"
"""
REFUSAL = """<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>InsufficientInstanceCapacity</Code><Message>We currently do not have sufficient g6.xlarge
 capacity in the Availability Zone you requested.</Message></Error></Errors><RequestID>none</RequestID></Response>"""
QUOTA = {"Quota": {"QuotaName": "Running On-Demand G and VT instances", "Value": 64.0}}
# What `aws ec2 describe-instances` answers, in little.
INSTANCES = """
import sys, boto3
told = [each.removeprefix("Name=").split(",Values=") for each in sys.argv if each.startswith("Name=")]
wanted = [{"Name": name, "Values": values.split(",")} for name, values in told]
for each in boto3.client("ec2", "us-east-1").describe_instances(Filters=wanted)["Reservations"]:
    print(*(one["InstanceId"] for one in each["Instances"]), sep="\\n")
"""
# Systems Manager gets through to nobody.
AWS = f"""#!/bin/sh
case "$1" in
  service-quotas) echo '{json.dumps(QUOTA)}';;
  ec2) exec {sys.executable} -c '{INSTANCES}' "$@";;
  *) echo 'TargetNotConnected' >&2; exit 255;;
esac
"""


class Gate(ThreadingHTTPServer):
    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.behind = port
        self.full: set[str] = set()
        self.refused: list[str] = []
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        # Whether who was kept waiting is refused then.
        self.refuses = True
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def zone(self, subnet: str) -> str:
        (found,) = client(self.behind, "ec2").describe_subnets(SubnetIds=[subnet])["Subnets"]
        return str(found["AvailabilityZone"])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever is interrupted goes without a word."""


class Passing(BaseHTTPRequestHandler):
    server: Gate

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = {key: values[0] for key, values in parse_qs(body.decode("latin-1")).items()}
        if asked.get("Action") == "RunInstances" and not self._may(asked):
            return self._answer(500, "text/xml", REFUSAL.encode())
        passed = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=SECONDS)
        passed.request(self.command, self.path, body, dict(self.headers))
        told = passed.getresponse()
        return self._answer(told.status, told.getheader("Content-Type") or "", told.read())

    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815

    def _may(self, asked: dict[str, str]) -> bool:
        self.server.asked.set()
        held = self.server.refuses and not self.server.go_on.is_set()
        self.server.go_on.wait(SECONDS)
        zone = self.server.zone(asked.get("SubnetId") or asked["NetworkInterface.1.SubnetId"])
        if held or zone in self.server.full:
            self.server.refused.append(zone)
            return False
        return True

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


def client(port: int, service: str) -> Any:
    import boto3

    named = {key.lower(): value for key, value in KEYS.items()}
    return boto3.client(service, "us-east-1", endpoint_url=f"http://127.0.0.1:{port}", **named)


@dataclass(frozen=True)
class Told:
    status: int
    text: str
    log: str
    # What there is afterwards: by the state the types, in the cloud machines, with their zones, and networks.
    state: set[str]
    machines: dict[str, str]
    networks: list[str]


@dataclass
class Clone:
    folder: Path
    gate: Gate
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def terraform(self) -> Path:
        return self.folder / "terraform" / "aws"

    @property
    def log(self) -> Path:
        return self.folder / ".cache" / "deploy" / "aws.log"

    def make(self, action: str, *, answer: str = "yes", interrupted: int = 0, **environ: str) -> Told:
        """As typed in a terminal: with somebody to ask, and Ctrl-C, or another signal, for all that runs there."""
        ours, theirs = pty.openpty()
        os.write(ours, f"{answer}\n".encode())
        words = clones.make(action, "CLOUD=aws")
        with (self.folder / "told").open("w+") as file:
            running = subprocess.Popen(words, cwd=self.folder, env=self.environ | environ, stdin=theirs, stdout=file,
                                       stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
            try:
                if interrupted:
                    assert self.gate.asked.wait(SECONDS), "no machine was asked for"
                    os.killpg(running.pid, interrupted)
                status = running.wait(SECONDS)
            finally:
                _end(running)
                os.close(ours)
                os.close(theirs)
            file.seek(0)
            return Told(status, file.read(), self.log.read_text(), self.state(), *self._held())

    def state(self) -> set[str]:
        path = self.terraform / "terraform.tfstate"
        told = json.loads(path.read_text()) if path.exists() else {"resources": []}
        return {one["type"] for one in told["resources"] if one["mode"] == "managed" and one["instances"]}

    def _held(self) -> tuple[dict[str, str], list[str]]:
        ec2 = client(self.gate.behind, "ec2")
        told = [one for each in ec2.describe_instances()["Reservations"] for one in each["Instances"]]
        machines = {one["InstanceId"]: one["Placement"]["AvailabilityZone"]
                    for one in told if one["State"]["Name"] != "terminated"}  # fmt: skip
        return machines, sorted(one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"] if not one["IsDefault"])


def _end(running: "subprocess.Popen[bytes]") -> None:
    """What hangs is no reason to leave it behind."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGINT)
        running.wait(SECONDS)


def clone(folder: Path, gate: Gate, settings: str = SETTINGS) -> Clone:
    """With programs that reach no cloud."""
    module = clones.bare(folder)
    (module / "terraform.tfvars").write_text(settings)
    # Asking eight times for what is sold out takes most of a minute.
    versions = (module / "versions.tf").read_text()
    assert "max_retries = 8" in versions
    (module / "versions.tf").write_text(versions.replace("max_retries = 8", "max_retries = 2"))
    programs = folder / "programs"
    programs.mkdir()
    for name, script in (("aws", AWS), ("session-manager-plugin", "#!/bin/sh\n")):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    environ = support.environment(
        **KEYS,
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{gate.server_port}",
        AWS_MAX_ATTEMPTS="2",
        AWS_EC2_METADATA_DISABLED="true",
        TF_CLI_ARGS_init=f"-plugin-dir={support.plugins('aws')}",
        PATH=f"{programs}:{os.environ['PATH']}",
        HOME=str(folder),
        REACH_SECONDS="3",
    )
    return Clone(folder, gate, environ)


@contextmanager
def serving() -> Iterator[Gate]:
    """The cloud and its gate, where there are Terraform and its plugin."""
    support.program()
    support.plugins("aws")
    port = free_port()
    words = [sys.executable, "-m", "tests.terraform.aws_server", str(port)]
    running = subprocess.Popen(words, cwd=support.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _answering(port, running)
        gate = Gate(port)
        yield gate
        gate.shutdown()
    finally:
        running.terminate()
        running.wait(20)


def _answering(port: int, running: "subprocess.Popen[bytes]") -> None:
    """Returns when moto answers."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert running.poll() is None, "the cloud on loopback ended"
        try:
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            asked.request("GET", "/moto-api/")
            return asked.getresponse().close()
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the cloud on loopback does not answer")
