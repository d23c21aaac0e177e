"""The machines of a cloud: planned with their price, asked about, made, listed as an inventory, and taken down."""

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from deploy import kept, money, os_login, place, quota, say, settings, spot, strays
from deploy.cloud import Cloud
from deploy.errors import DeployError
from deploy.terraform import Terraform

SIGNS = {"create": "+", "delete": "-", "update": "~"}
NOTHING = {"no-op", "read"}


class Machines:
    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.terraform = Terraform(cloud)
        self._list = kept.inventory_of(cloud.name)

    def plan(self) -> None:
        self._planned(hear=say.quote)
        self.terraform.forget_plan()

    def make(self) -> None:
        planned = self._planned(hear=say.note)
        if _changed(planned) or _moved(planned, self.cloud):
            self._may(planned)
        if _changed(planned) or _told_anew(planned):
            there = _left(planned, self.cloud)
            self.terraform.apply(lambda zone, then: self._may_leave(zone, then, there))
        else:
            say.line("Nothing is to be changed.")
        if spot.start_stopped(self.cloud, self.terraform.show()) or _woken(planned):
            self.terraform.refresh()

    def settled(self) -> None:
        self.terraform.settled()

    def inventory(self) -> Path:
        text = self.terraform.outputs().get("inventory")
        if text is None:
            raise DeployError(f"no machines are there, or not all of them: make deploy CLOUD={self.cloud.name}")
        self._list.parent.mkdir(exist_ok=True)
        # Somebody else may be reading it.
        new = self._list.with_suffix(f".{os.getpid()}")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{os_login.named(self.cloud, text)}\n{_own(self.cloud)}")
        return new.replace(self._list)

    def destroy(self) -> None:
        self.terraform.init()
        there = self.terraform.everything()
        if not there:
            self._look_for_strays()
            say.line("Nothing is there to be destroyed.")
            return
        made = place.of(self.cloud, self.terraform.show())
        flags = [*made.flags()]
        say.line(f"{len(there)} resources go, with their disks and all that is on them:")
        for name in self.terraform.machines():
            say.line(f"  {name}")
        say.line(money.spent(self.terraform.outputs()))
        say.agree("Destroy all of it?")
        self.terraform.destroy(*flags)
        self._list.unlink(missing_ok=True)
        self._look_for_strays(made.name, made.where)
        say.line(f"All {len(there)} are gone.")

    def _look_for_strays(self, name: str = "", where: str = "") -> None:
        """Where it was; by the settings where nothing tells that."""
        if not where:
            project = self.cloud.name == "gcp"
            where = self.terraform.setting("project") if project else self.terraform.setting("zones")[0][:-1]
        strays.check(self.cloud, name or self.terraform.setting("name"), where)

    def _planned(self, hear: Any) -> dict[str, Any]:
        read = settings.check(self.cloud)
        self.terraform.init()
        # Before Terraform looks there: what it does not find it forgets.
        if refusal := place.of(self.cloud, self.terraform.show()).refusal(read):
            raise DeployError(refusal)
        say.line("Terraform looks at what is there, and plans.")
        planned = self.terraform.plan(hear)
        for text in _summary(planned, self.cloud):
            say.line(text)
        return planned

    def _may(self, planned: dict[str, Any]) -> None:
        """Whether it can be, and whether the user wants it."""
        quota.check(self.cloud, planned)
        lost, moved = self._lost(planned), _moved(planned, self.cloud)
        destroys = [f"This destroys {', '.join(lost)}."] if lost else []
        leaves = [f"This leaves the history on {moved[0]} behind."] if moved else []
        question = " ".join([*destroys, *leaves, "Make it?"]) if lost or moved else "Make this?"
        say.agree(question, sorted({*lost, *moved[:1]}))

    def _may_leave(self, zone: str, planned: dict[str, Any], there: set[str]) -> None:
        """Machines that were there before hold data, whether or not the first deployment came to its end."""
        if lost := sorted(there.intersection(self._lost(planned))):
            say.agree_now(f"The zone is full. Going on to {zone} destroys {', '.join(lost)}, with disks. Go on?",
                          "the zone is full, and going on to the next would destroy what is there: "
                          f"{', '.join(lost)}. Try later, another machine_type, or answer without YES")  # fmt: skip

    def _lost(self, planned: dict[str, Any]) -> list[str]:
        """Machines that are there, and go with their disks, by name; not what a first run left half made."""
        machines = [change for change in _changed(planned) if change["type"] == self.cloud.machine]
        gone = [change for change in machines if "delete" in change["change"]["actions"]]
        first = self.terraform.is_unsettled()
        return sorted(_name(change) for change in gone if not (first and _is_half_made(change)))


def _changed(planned: dict[str, Any]) -> list[dict[str, Any]]:
    every = planned.get("resource_changes", [])
    return [change for change in every if not NOTHING.issuperset(change["change"]["actions"])]


def _left(planned: dict[str, Any], cloud: Cloud) -> set[str]:
    """The machines, by name, that are there and that it leaves."""
    every = [change for change in planned.get("resource_changes", []) if change["type"] == cloud.machine]
    return {_name(each) for each in every if each["change"].get("before") and "delete" not in each["change"]["actions"]}


def _is_half_made(change: dict[str, Any]) -> bool:
    return change.get("action_reason") == "replace_because_tainted"


def _woken(planned: dict[str, Any]) -> bool:
    """Whether machines were started, AWS's: Terraform noted their addresses before that, when they had none."""
    return any(change["type"] == "aws_ec2_instance_state" for change in _changed(planned))


def _moved(planned: dict[str, Any], cloud: Cloud) -> list[str]:
    """The machine that Prometheus is on, and the one it would be on, where these are two."""
    told = planned.get("output_changes", {}).get("monitoring") or {}
    before, after = told.get("before"), told.get("after")
    every = [change for change in planned.get("resource_changes", []) if change["type"] == cloud.machine]
    # Where a run broke off it may be named, and not be there.
    is_there = any(change["change"].get("before") and _name(change) == before for change in every)
    return [before, after] if is_there and after and before != after else []


def _own(cloud: Cloud) -> str:
    """The group of all these machines: of it the user's own group_vars/gcp.yml speaks, which no run writes over."""
    return f"{cloud.name}: {{children: {{gpu_nodes: {{}}, monitoring: {{}}}}}}\n"


def _name(change: dict[str, Any]) -> str:
    before = change["change"].get("before") or {}
    return str(before.get("name") or (before.get("tags") or {}).get("Name") or change["address"])


def _told_anew(planned: dict[str, Any]) -> bool:
    """A price, say: the machines stay, what is told of them does not."""
    return any(not NOTHING.issuperset(change["actions"]) for change in planned.get("output_changes", {}).values())


def _summary(planned: dict[str, Any], cloud: Cloud) -> Iterator[str]:
    """Each machine, and of the rest what goes or is altered; what is made for the machines is counted."""
    outputs = planned.get("planned_values", {}).get("outputs", {})
    changed, counted = _changed(planned), dict.fromkeys(SIGNS, 0)
    for change in changed:
        actions = change["change"]["actions"]
        for action in actions:
            counted[action] = counted.get(action, 0) + 1
        if change["type"] == cloud.machine or actions != ["create"]:
            yield _line(change, cloud)
    if moved := _moved(planned, cloud):
        yield f"! Prometheus and Grafana move from {moved[0]} to {moved[1]}: their history stays behind on {moved[0]}"
    told = ", ".join(f"{count} to {action}" for action, count in counted.items() if count)
    zone = outputs.get("zone", {}).get("value", "")
    yield f"{told or 'no change'} in {zone}"
    yield _stops(quota.variable(planned, "auto_stop") or {})
    price = outputs.get("price_per_hour", {}).get("value") or {}
    yield money.rate(price.get("total"))
    yield from money.elsewhere(price, place.region(cloud, zone))
    yield from money.aged(price, date.today())


def _stops(auto_stop: dict[str, Any]) -> str:
    at, idle = auto_stop.get("stop_at"), auto_stop.get("idle_minutes")
    daily = [f"daily at {at} {auto_stop.get('time_zone') or 'UTC'}"] if at else []
    how = " and ".join([*daily, *([f"when idle for {idle:g} minutes"] if idle else [])])
    return f"GPU machines stop {how}" if how else "GPU machines never stop by themselves (auto_stop)"


def _line(change: dict[str, Any], cloud: Cloud) -> str:
    actions, is_machine = change["change"]["actions"], change["type"] == cloud.machine
    after = change["change"].get("after") or {}
    kind = f"{after.get(cloud.machine_type, '')}{', spot' if quota.is_spot(after) else ''}" if is_machine else ""
    lost = ": its disk goes, with all that is on it" if is_machine and "delete" in actions else ""
    return f"{'/'.join(SIGNS.get(action, action) for action in actions)} {change['address']} {kind}".rstrip() + lost
