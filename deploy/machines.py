"""The machines of a cloud: planned with their price, asked about, made, listed as an inventory, and taken down."""

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deploy import quota, say
from deploy.cloud import ROOT, Cloud
from deploy.terraform import Terraform


class Machines:
    def __init__(self, cloud: Cloud) -> None:
        cloud.check()
        self.cloud = cloud
        self.terraform = Terraform(cloud)

    def plan(self) -> dict[str, Any]:
        self.terraform.init()
        planned = self.terraform.plan()
        for text in _summary(planned):
            say.line(text)
        return planned

    def make(self) -> None:
        planned = self.plan()
        if not _changes(planned):
            say.line("Nothing is to be changed.")
            return
        quota.check(self.cloud, planned)
        say.agree("Make this?")
        self.terraform.apply()

    def settled(self) -> None:
        self.terraform.settled()

    def inventory(self) -> Path:
        path = ROOT / "ansible" / "inventory" / f"{self.cloud.name}.yml"
        text = self.terraform.outputs()["inventory"]
        path.parent.mkdir(exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def destroy(self) -> None:
        self.terraform.init()
        there = self.terraform.everything()
        if not there:
            say.line("Nothing is there to be destroyed.")
            return
        say.line(f"{len(there)} resources go, with their disks and all that is on them:")
        for name in self.terraform.machines():
            say.line(f"  {name}")
        say.line(_cost(self.terraform.outputs()))
        say.agree("Destroy all of it?")
        self.terraform.destroy()
        say.line("All of it is gone.")


def _changes(planned: dict[str, Any]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for change in planned.get("resource_changes", []):
        for action in change["change"]["actions"]:
            if action not in ("no-op", "read"):
                counted[action] = counted.get(action, 0) + 1
    return counted


def _summary(planned: dict[str, Any]) -> list[str]:
    outputs = planned.get("planned_values", {}).get("outputs", {})
    price = (outputs.get("price_per_hour", {}).get("value") or {}).get("total")
    changed = ", ".join(f"{count} to {action}" for action, count in sorted(_changes(planned).items()))
    zone = outputs.get("zone", {}).get("value", "")
    return [f"{changed or 'no change'} in {zone}", _rate(price)]


def _rate(price: float | None) -> str:
    return "Price: unknown, see `prices`" if price is None else f"Price: about ${price:.2f} an hour while they run"


def _cost(outputs: dict[str, Any]) -> str:
    price, since = (outputs.get("price_per_hour") or {}).get("total"), outputs.get("since")
    if price is None or not since:
        return "What it cost is unknown."
    hours = (datetime.now(timezone.utc) - datetime.fromisoformat(since.replace("Z", "+00:00"))).total_seconds() / 3600
    return (
        f"There since {since}: {hours:.1f} h at ${price:.2f} are about ${hours * price:.2f}, if they ran all the time."
    )
