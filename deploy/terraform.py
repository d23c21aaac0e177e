"""Terraform in one cloud's folder: planned, asked about, applied in the first zone that has room.

made = Terraform(CLOUDS["gcp"]); made.init(); made.plan(); made.apply(may); made.outputs()["zone"]  ->  "us-central1-b"

A zone that has no GPU free is left for the next one until the first deployment is through: then machines stay. The zone
is kept in zone.auto.tfvars.json, which Terraform reads by itself.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from deploy import say
from deploy.cloud import Cloud
from deploy.errors import DeployError
from deploy.run import Hear, ask, follow

if TYPE_CHECKING:
    import subprocess

# Raises where the plan that goes on to that zone is not to be.
May = Callable[[str, dict[str, Any]], object]
INIT_SECONDS, PLAN_SECONDS, APPLY_SECONDS = 600, 900, 3600
_KEPT_LINES = 400
_DONE = re.compile(r"\S.*: (Creation complete|Destruction complete|Modifications complete|Still )")
# Words of its errors, and what mends them.
_FIXES = {
    "Error acquiring the state lock": "another Terraform is at work there: wait until it has ended. Where none is, and "
    "the state lies in a backend of your own: terraform -chdir={folder} force-unlock, with the ID above",
}
_LOGIN = ("could not find default credentials", "No valid credential sources", "ExpiredToken", "invalid_grant",
          "Reauthentication", "UnauthorizedOperation", "InvalidClientTokenId")  # fmt: skip


class Terraform:
    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._zone_file = cloud.folder / "zone.auto.tfvars.json"
        self._own = cloud.folder / ".deploy"
        self._unsettled = self._own / "unsettled"
        self._plan = self._own / "plan"

    def init(self) -> None:
        if not (self.cloud.folder / ".terraform").exists():
            say.line("Terraform loads what it needs for this cloud, which may take minutes.")
        done = self._quiet("init", "-input=false", "-no-color", seconds=INIT_SECONDS)
        self._require(done, "terraform init failed: is the network there, and the provider's version in versions.tf?")
        self._own.mkdir(mode=0o700, exist_ok=True)
        if not self.machines():
            self._unsettled.touch()
        elif not self.is_unsettled():
            self._keep_zone()

    def machines(self) -> list[str]:
        return [name for name in self.everything() if name.partition(".")[0] == self.cloud.machine]

    def everything(self) -> list[str]:
        """What there is by the state, by Terraform's names."""
        listed = self._quiet("state", "list", seconds=PLAN_SECONDS)
        if "No state file was found" not in listed.stderr:
            self._require(listed, "terraform cannot read what there is")
        return [name for name in listed.stdout.split() if not name.startswith("data.")]

    def plan(self, hear: Hear = say.quote) -> dict[str, Any]:
        """What would be made, as Terraform's own JSON; its words go to `hear`."""
        self._write_plan(hear)
        return self.show(str(self._plan))

    def is_unsettled(self) -> bool:
        """Whether the first deployment is not through yet; on some of its machines something may live all the same."""
        return self._unsettled.exists()

    def forget_plan(self) -> None:
        self._plan.unlink(missing_ok=True)

    def apply(self, may: May) -> None:
        """What was planned; then in the next zone, and the next, where one is full."""
        reasons: list[str] = []
        try:
            for zone in self._zones_left():
                status, told = self._followed("apply", str(self._plan), seconds=APPLY_SECONDS, hear=_AtWork().hear)
                if not (status and (reason := self.cloud.refusal(told))):
                    return self._judge(status, told, "apply")
                reasons.append(reason)
                self._go_on_to(zone, reasons, may)
        finally:
            self.forget_plan()

    def settled(self) -> None:
        """From now on machines hold data: they stay in their zone, whatever `zones` begins with."""
        self._keep_zone()
        self._unsettled.unlink(missing_ok=True)

    def destroy(self, *flags: str) -> None:
        told = self._followed("destroy", "-auto-approve", *flags, seconds=APPLY_SECONDS, hear=_AtWork().hear)
        self._judge(*told, "destroy")
        self._zone_file.unlink(missing_ok=True)

    def outputs(self) -> dict[str, Any]:
        done = self._quiet("output", "-json", seconds=PLAN_SECONDS)
        self._require(done, "terraform output failed")
        return {name: each["value"] for name, each in json.loads(done.stdout).items()}

    def show(self, *plan: str) -> dict[str, Any]:
        """All that is there by the state, or would be by a plan."""
        done = self._quiet("show", "-json", *plan, seconds=PLAN_SECONDS)
        self._require(done, "terraform show failed")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def refresh(self) -> None:
        """Addresses of machines that started are others."""
        self._judge(
            *self._followed("apply", "-refresh-only", "-auto-approve", seconds=PLAN_SECONDS, hear=say.note), "apply"
        )

    def setting(self, name: str) -> Any:
        done = self._quiet("console", "-no-color", seconds=PLAN_SECONDS, given=f"jsonencode(var.{name})\n")
        wrong = f"terraform could not read {name} of terraform.tfvars: make plan CLOUD={self.cloud.name} says why"
        self._require(done, wrong)
        try:
            # It may warn first.
            return json.loads(json.loads(done.stdout.strip().rpartition("\n")[2]))
        except ValueError as error:
            raise DeployError(f"{wrong}\n{done.stdout[-2000:]}{done.stderr[-3000:]}") from error

    def _keep_zone(self) -> None:
        if not self._zone_file.exists() and (zone := self.outputs().get("zone")):
            self._write_zone(zone)

    def _write_zone(self, zone: str) -> None:
        self._zone_file.write_text(json.dumps({"zone": zone}) + "\n")

    def _zones_left(self) -> Iterator[str | None]:
        """The one to go on to at each failure; None when there is none."""
        zones = self.show(str(self._plan))["variables"]["zones"]["value"]
        current = zones[0]
        with contextlib.suppress(FileNotFoundError):
            current = json.loads(self._zone_file.read_text())["zone"]
        tried = {current}
        while True:
            left = [zone for zone in zones if zone not in tried] if self.is_unsettled() else []
            yield left[0] if left else None
            tried.update(left[:1])

    def _go_on_to(self, zone: str | None, reasons: list[str], may: May) -> None:
        if zone is None:
            raise DeployError(self._why_it_stays(reasons))
        self._write_plan(say.note, f"-var=zone={zone}")
        may(zone, self.show(str(self._plan)))
        says = "never has such machines" if self.cloud.absent.search(reasons[-1]) else "has no such machine free now"
        say.line(f"That zone {says}: going on to {zone}.")
        self._write_zone(zone)

    def _why_it_stays(self, reasons: list[str]) -> str:
        told = f"({'; '.join(dict.fromkeys(reasons))})"
        never = all(self.cloud.absent.search(reason) for reason in reasons)
        if self.is_unsettled() and never:
            return f"no zone of `zones` has that machine type {told}: take another, or name zones that have it"
        if self.is_unsettled():
            fix = "add zones, take another machine_type, or try later"
            return f"no zone of `zones` has such a machine free now {told}: {fix}"
        why, later = ("has no machines of that type", "") if never else ("is full", "try later, or ")
        return f"the zone {why} {told}, and the machines that are there stay in it: {later}take another machine_type"

    def _judge(self, status: int, told: str, action: str) -> None:
        if not status:
            return
        folder = f"terraform/{self.cloud.name}"
        fix = f"log in: {self.cloud.log_in}" if any(word in told for word in _LOGIN) else next(
            (fix.format(folder=folder) for words, fix in _FIXES.items() if words in told),
            "mend what it says above, and run this again",
        )  # fmt: skip
        raise DeployError(f"terraform {action} in {folder} failed: {fix}{self._costs(action)}")

    def _costs(self, action: str) -> str:
        if action == "plan":
            return ""
        return f". What was made costs money while it is there; make destroy CLOUD={self.cloud.name} takes it down"

    def _require(self, done: "subprocess.CompletedProcess[str]", why: str) -> None:
        if done.returncode:
            raise DeployError(f"{why}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")

    def _quiet(self, *words: str, seconds: float, given: str = "") -> "subprocess.CompletedProcess[str]":
        return ask(["terraform", *words], folder=self.cloud.folder, seconds=seconds, given=given)

    def _write_plan(self, hear: Hear, *flags: str) -> None:
        status, told = self._followed("plan", f"-out={self._plan}", *flags, seconds=PLAN_SECONDS, hear=hear)
        if status and hear is say.note:
            # The plan before it may be long, and is in the log.
            print(told[max(told.find("\nError"), 0) :], flush=True)
        self._judge(status, told, "plan")

    def _followed(self, action: str, *words: str, seconds: float, hear: Hear) -> tuple[int, str]:
        """Flags go before the file of a plan. The end of what it said is kept."""
        kept: list[str] = []

        def keep(text: str) -> None:
            kept[:] = [*kept[1 - _KEPT_LINES :], text]
            hear(text)

        asked = ["terraform", action, "-input=false", "-no-color", "-compact-warnings", *words]
        status = follow(asked, folder=self.cloud.folder, seconds=seconds, hear=keep, environ=_environ())
        return status, "".join(kept)


def _environ() -> dict[str, str]:
    """By which it does not say what to type next: that is ours to say."""
    return {**os.environ, "TF_IN_AUTOMATION": "1"}


class _AtWork:
    """Shows what Terraform gets done, and from its first error on everything. Plans and outputs we tell ourselves."""

    def __init__(self) -> None:
        self._all = False

    def hear(self, text: str) -> None:
        self._all = self._all or text.startswith("Error")
        if self._all or _DONE.match(text):
            say.quote(text)
        else:
            say.note(text)
