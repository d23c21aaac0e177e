"""Terraform in one cloud's folder: planned, asked about, applied in the first zone that has room.

made = Terraform(CLOUDS["gcp"]); made.init(); made.apply(); made.outputs()["zone"]  ->  "us-central1-b"

A zone that has no GPU free is left for the next one as long as nothing lives on its machines: until the first
deployment is through. The choice is kept in zone.auto.tfvars.json, which Terraform reads by itself.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy import say
from deploy.cloud import Cloud
from deploy.errors import DeployError

INIT_SECONDS, PLAN_SECONDS, APPLY_SECONDS = 600, 900, 3600
_KEPT_LINES = 400


class Terraform:
    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._zone_file = cloud.folder / "zone.auto.tfvars.json"
        self._own = cloud.folder / ".deploy"
        self._unsettled = self._own / "unsettled"
        self._plan = self._own / "plan"

    def init(self) -> None:
        done = self._quiet("init", "-input=false", "-no-color", seconds=INIT_SECONDS)
        self._require(done, "terraform init failed: is the network there, and the provider's version in versions.tf?")
        self._own.mkdir(mode=0o700, exist_ok=True)
        if not self.machines():
            self._unsettled.touch()

    def machines(self) -> list[str]:
        return [name for name in self.everything() if name.partition(".")[0] == self.cloud.machine]

    def everything(self) -> list[str]:
        """What there is by the state, by Terraform's names."""
        listed = self._quiet("state", "list", seconds=PLAN_SECONDS).stdout.split()
        return [name for name in listed if not name.startswith("data.")]

    def plan(self) -> dict[str, Any]:
        """What would be made, as Terraform's own JSON; the text of it is shown."""
        self._write_plan()
        shown = self._quiet("show", "-json", str(self._plan), seconds=PLAN_SECONDS)
        self._require(shown, "terraform show failed")
        found: dict[str, Any] = json.loads(shown.stdout)
        return found

    def apply(self) -> None:
        """What was planned; then in the next zone, and the next, where one is full."""
        try:
            for zone in self._zones_left():
                status, told = self._followed("apply", str(self._plan), seconds=APPLY_SECONDS)
                if not (status and self.cloud.is_full(told)):
                    return self._judge(status, told, "apply")
                self._go_on_to(zone, told)
        finally:
            self._plan.unlink(missing_ok=True)

    def settled(self) -> None:
        """From now on machines hold data: they stay in their zone."""
        self._unsettled.unlink(missing_ok=True)

    def destroy(self) -> None:
        self._judge(*self._followed("destroy", "-auto-approve", seconds=APPLY_SECONDS), "destroy")
        self._zone_file.unlink(missing_ok=True)

    def outputs(self) -> dict[str, Any]:
        done = self._quiet("output", "-json", seconds=PLAN_SECONDS)
        self._require(done, "terraform output failed")
        return {name: each["value"] for name, each in json.loads(done.stdout).items()}

    def zones(self) -> list[str]:
        """As the settings have them, in order."""
        done = subprocess.run(["terraform", "console"], input="jsonencode(var.zones)\n", cwd=self.cloud.folder,
                              check=False, capture_output=True, text=True, timeout=PLAN_SECONDS)  # fmt: skip
        self._require(done, "terraform could not read the zones of terraform.tfvars")
        found: list[str] = json.loads(json.loads(done.stdout))
        return found

    def _zones_left(self) -> Iterator[str | None]:
        """The one to go on to at each failure; None when there is none."""
        zones = self.zones()
        current = zones[0]
        with contextlib.suppress(FileNotFoundError):
            current = json.loads(self._zone_file.read_text())["zone"]
        tried = {current}
        while True:
            left = [zone for zone in zones if zone not in tried] if self._unsettled.exists() else []
            yield left[0] if left else None
            tried.update(left[:1])

    def _go_on_to(self, zone: str | None, told: str) -> None:
        if zone is None:
            raise DeployError(self._why_it_stays(told))
        say.line(f"That zone has no such machine free now: going on to {zone}.")
        self._zone_file.write_text(json.dumps({"zone": zone}) + "\n")
        self._write_plan()

    def _why_it_stays(self, told: str) -> str:
        if self._unsettled.exists():
            return "no zone of `zones` has such a machine free now: add zones, take another machine_type, or try later"
        found = next((line.strip() for line in told.splitlines() if self.cloud.is_full(line)), "")
        return (f"the zone is full ({found}), and the machines that are there stay in it: try later, or another "
                "machine_type")  # fmt: skip

    def _judge(self, status: int, told: str, action: str) -> None:
        if not status:
            return
        fix = f"log in: {self.cloud.log_in}" if _is_about_login(told) else "mend what it says above, and run this again"
        raise DeployError(f"terraform {action} in terraform/{self.cloud.name} failed: {fix}")

    def _require(self, done: "subprocess.CompletedProcess[str]", why: str) -> None:
        if done.returncode:
            raise DeployError(f"{why}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")

    def _quiet(self, *words: str, seconds: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["terraform", *words], cwd=self.cloud.folder, check=False, capture_output=True, text=True,
                              timeout=seconds, stdin=subprocess.DEVNULL)  # fmt: skip

    def _write_plan(self) -> None:
        self._judge(*self._followed("plan", f"-out={self._plan}", seconds=PLAN_SECONDS), "plan")

    def _followed(self, action: str, *words: str, seconds: float) -> tuple[int, str]:
        """Flags go before the file of a plan."""
        asked = ["terraform", action, "-input=false", "-no-color", "-compact-warnings", *words]
        return followed(asked, self.cloud.folder, seconds)


def followed(words: list[str], folder: Path, seconds: float) -> tuple[int, str]:
    """Shown as it comes, and the end of it kept. A program that takes longer is ended."""
    kept: list[str] = []
    bounded = ["timeout", "--kill-after=30", str(int(seconds)), *words]
    with subprocess.Popen(bounded, cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:  # fmt: skip
        assert process.stdout
        for text in process.stdout:
            print(text, end="", flush=True)
            kept = [*kept[1 - _KEPT_LINES :], text]
    return process.returncode, "".join(kept)


def _is_about_login(told: str) -> bool:
    words = ("could not find default credentials", "No valid credential sources", "ExpiredToken", "invalid_grant",
             "Reauthentication", "UnauthorizedOperation")  # fmt: skip
    return any(word in told for word in words)
