"""What Grafana reads at its start: one data source, and the folder of dashboards where compose mounts it."""

import yaml

from tests.grafana.support import FOLDER, ROOT, UIDS

PROVISIONING = ROOT / "grafana/provisioning"


def read(name):
    return yaml.safe_load((PROVISIONING / name).read_text())


def mounts():
    compose = yaml.safe_load((ROOT / "compose/compose.yaml").read_text())
    short = (volume for volume in compose["services"]["grafana"]["volumes"] if isinstance(volume, str))
    parts = [volume.split(":") for volume in short]
    return {part[1]: (part[0], part[2:]) for part in parts}


def test_the_data_source_is_the_stacks_prometheus():
    (source,) = read("datasources/prometheus.yml")["datasources"]
    compose = yaml.safe_load((ROOT / "compose/compose.yaml").read_text())
    assert source["url"] == "http://prometheus:9090" and "prometheus" in compose["services"]
    assert source["type"] == "prometheus" and source["isDefault"] and not source["editable"]
    version = compose["services"]["prometheus"]["image"].partition(":")[2]
    assert version.partition("@")[0] == "v" + source["jsonData"]["prometheusVersion"]


def test_no_rate_is_asked_over_less_than_two_scrapes():
    (source,) = read("datasources/prometheus.yml")["datasources"]
    config = yaml.safe_load((ROOT / "prometheus/prometheus.yml").read_text())
    slowest = {job.get("scrape_interval") for job in config["scrape_configs"]} | {config["global"]["scrape_interval"]}
    longest = max(int(interval.removesuffix("s")) for interval in slowest if interval)
    assert int(source["jsonData"]["timeInterval"].removesuffix("s")) >= longest


def test_dashboards_and_provisioning_are_where_compose_mounts_them():
    (provider,) = read("dashboards/trainvitals.yml")["providers"]
    assert provider["type"] == "file" and not provider["allowUiUpdates"]
    assert mounts()[provider["options"]["path"]] == ("../grafana/dashboards", ["ro"])
    assert mounts()["/etc/grafana/provisioning"] == ("../grafana/provisioning", ["ro"])
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(UIDS)


def test_the_schemas_are_of_the_minor_version_that_the_stack_runs():
    package = yaml.safe_load((ROOT / "tests/grafana/schema/package.json").read_text())
    compose = yaml.safe_load((ROOT / "compose/compose.yaml").read_text())
    image = compose["services"]["grafana"]["image"].partition(":")[2]
    assert image.split(".")[:2] == package["devDependencies"]["@grafana/schema"].split(".")[:2]
