"""Where what was made is, by the state: Terraform looks where the settings say, and forgets what it does not find.

made = of(CLOUDS["aws"], terraform.show())
made.where, made.refusal({"zones": ["us-west-2a"]})  ->  "us-east-1", "zones: us-west-2a, but … put zones back, or …"
made.flags()  ->  ['-var=zones=["us-east-1a"]', '-var=zone=us-east-1a'], by which destroy goes
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deploy.cloud import Cloud
from deploy.errors import DeployError


class Place(NamedTuple):
    """All empty where nothing is there, or nothing that tells."""

    cloud: Cloud
    regions: list[str]
    projects: list[str]
    zones: list[str]
    # What the deployment is called.
    name: str

    @property
    def where(self) -> str:
        """As the cloud's own command wants it: the project of Google's, the region of Amazon's."""
        return next(iter(self.projects if self.cloud.name == "gcp" else self.regions), "")

    def refusal(self, read: Mapping[str, Any]) -> str:
        """Empty where the settings name the place of what is there."""
        zones, project = read.get("zones"), read.get("project")
        wanted = region(self.cloud, zones[0]) if zones else ""
        if self.regions and wanted and self.regions != [wanted]:
            return _elsewhere("zones", ", ".join(zones), self.regions, self.cloud)
        if self.projects and project and self.projects != [project]:
            return _elsewhere("project", project, self.projects, self.cloud)
        return ""

    def flags(self) -> Iterator[str]:
        """The settings' own where nothing tells another."""
        for key, found in (("regions", self.regions), ("projects", self.projects)):
            if len(found) > 1:
                raise DeployError(f"what was made is in several {key}, {', '.join(found)}: Terraform takes down those "
                                  "of one at a time. Give back terraform.tfstate.backup, or remove by hand what "
                                  f"terraform -chdir=terraform/{self.cloud.name} state list names")  # fmt: skip
        if self.regions:
            zones = self.zones or [first_zone(self.cloud, self.regions[0])]
            yield f"-var=zones={json.dumps(zones)}"
            yield f"-var=zone={zones[0]}"
        if self.projects:
            yield f"-var=project={self.projects[0]}"


def of(cloud: Cloud, state: Mapping[str, Any]) -> Place:
    root = state.get("values", {}).get("root_module", {}).get("resources", [])
    made = [each["values"] for each in root if each["mode"] == "managed"]
    zones = {zone: None for values in made if (zone := _last(values, "availability_zone") or _last(values, "zone"))}
    regions = {_region(cloud, values) for values in made} - {""}
    projects = {str(values["project"]) for values in made if values.get("project")} if cloud.name == "gcp" else set()
    name = next((told for values in made if (told := _deployment(values))), "")
    return Place(cloud, sorted(regions), sorted(projects), sorted(zones), name)


def region(cloud: Cloud, zone: str) -> str:
    return zone.rpartition("-")[0] if cloud.name == "gcp" else zone[:-1]


def first_zone(cloud: Cloud, region: str) -> str:
    return region + ("-a" if cloud.name == "gcp" else "a")


def _region(cloud: Cloud, values: Mapping[str, Any]) -> str:
    """Empty for what is everywhere, as a role is."""
    if cloud.name == "gcp":
        return _last(values, "region") or region(cloud, _last(values, "zone"))
    return ([*str(values.get("arn") or "").split(":"), "", "", "", ""])[3]


def _last(values: Mapping[str, Any], key: str) -> str:
    """Google's may be addresses."""
    return str(values.get(key) or "").rpartition("/")[2]


def _deployment(values: Mapping[str, Any]) -> str:
    labels = values.get("tags_all") or values.get("effective_labels") or {}
    return str(labels.get("deployment") or "")


def _elsewhere(setting: str, said: str, found: list[str], cloud: Cloud) -> str:
    return (f"terraform.tfvars: {setting}: {said}, but what this deployment made is in {', '.join(found)}, and would "
            f"run on unseen: put {setting} back, or make destroy CLOUD={cloud.name} first, then change it")  # fmt: skip
