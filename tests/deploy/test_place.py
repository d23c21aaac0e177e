"""Where what was made is, by its state: settings that name another place are refused, destroy goes by the state."""

import pytest

from deploy import place
from deploy.cloud import CLOUDS
from deploy.errors import DeployError

Made = list[dict[str, object]]
AWS: Made = [
    {"arn": "arn:aws:iam::123456789012:role/trainvitals", "tags_all": {"deployment": "mine"}},
    {"arn": "arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1"},
    {"arn": "arn:aws:ec2:us-east-1:123456789012:subnet/subnet-1", "availability_zone": "us-east-1b"},
    {"arn": "arn:aws:ec2:us-east-1:123456789012:subnet/subnet-2", "availability_zone": "us-east-1a"},
    {"input": "2026-01-01T00:00:00Z"},
]
BASE = "https://www.googleapis.com/compute/v1/projects/some-project"
GCP: Made = [
    {"project": "some-project", "region": f"{BASE}/regions/us-central1"},
    {"project": "some-project", "zone": f"{BASE}/zones/us-central1-b", "effective_labels": {"deployment": "mine"}},
    {"project": "some-project", "member": "serviceAccount:it"},
]


def made(cloud: str, values: Made, mode: str = "managed") -> place.Place:
    resources = [{"mode": mode, "type": "some", "values": each} for each in values]
    return place.of(CLOUDS[cloud], {"values": {"root_module": {"resources": resources}}})


@pytest.mark.parametrize(("cloud", "values", "read", "wanted"), [
    ("aws", AWS, {"zones": ["us-east-1f", "us-east-1a"]}, ""),
    ("aws", AWS, {"zones": ["us-west-2a"]}, "zones: us-west-2a, but what this deployment made is in us-east-1, and"),
    ("aws", AWS[1:2], {"zones": ["us-west-2a"]}, "zones: us-west-2a, but"),
    ("aws", AWS[:1], {"zones": ["us-west-2a"]}, ""),
    ("aws", [], {"zones": ["us-west-2a"]}, ""),
    ("gcp", GCP, {"zones": ["us-central1-c"], "project": "some-project"}, ""),
    ("gcp", GCP, {"zones": ["us-east1-c"], "project": "some-project"}, "zones: us-east1-c, but what this deployment"),
    ("gcp", GCP[2:], {"zones": ["us-east1-c"], "project": "another"}, "project: another, but what this deployment made "
     "is in some-project, and would run on unseen: put project back, or make destroy CLOUD=gcp first"),
])  # fmt: skip
def test_settings_that_name_another_place_are_refused(
    cloud: str, values: Made, read: dict[str, object], wanted: str
) -> None:
    told = made(cloud, values).refusal(read)
    assert wanted in told and bool(wanted) == bool(told)


@pytest.mark.parametrize(("cloud", "values", "wanted"), [
    ("aws", AWS, ['-var=zones=["us-east-1a", "us-east-1b"]', "-var=zone=us-east-1a"]),
    ("aws", AWS[1:2], ['-var=zones=["us-east-1a"]', "-var=zone=us-east-1a"]),
    ("aws", AWS[:1], []),
    ("gcp", GCP, ['-var=zones=["us-central1-b"]', "-var=zone=us-central1-b", "-var=project=some-project"]),
    ("gcp", GCP[:1], ['-var=zones=["us-central1-a"]', "-var=zone=us-central1-a", "-var=project=some-project"]),
])  # fmt: skip
def test_destroy_goes_by_what_was_made(cloud: str, values: Made, wanted: list[str]) -> None:
    assert [*made(cloud, values).flags()] == wanted


@pytest.mark.parametrize(("cloud", "values", "where"), [("aws", AWS, "us-east-1"), ("gcp", GCP, "some-project")])
def test_strays_are_looked_for_where_it_was(cloud: str, values: Made, where: str) -> None:
    told = made(cloud, values)
    assert (told.where, told.name) == (where, "mine")


def test_what_is_read_alone_is_nowhere() -> None:
    assert made("aws", AWS, "data").regions == []


def test_what_is_in_two_regions_is_not_taken_down_by_half() -> None:
    other: Made = [{"arn": "arn:aws:ec2:us-west-2:123456789012:vpc/vpc-2"}]
    with pytest.raises(DeployError, match=r"in several regions, us-east-1, us-west-2: .*terraform.tfstate.backup"):
        [*made("aws", [*AWS, *other]).flags()]
