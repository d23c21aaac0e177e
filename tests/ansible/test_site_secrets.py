"""The role stack's modules on the controller: a site's secrets, and the release that is packed."""

import importlib.util
import ipaddress
import ssl
from pathlib import Path
from types import ModuleType

import bcrypt
import pytest
from cryptography import x509

from tests.stack.bases import ROOT

LIBRARY = ROOT / "ansible" / "roles" / "stack" / "library"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, LIBRARY / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(path: Path, called: list[str], *, check: bool = False) -> list[str]:
    module = loaded("stack_secrets")
    folder = module.Folder(path, check)
    module.password(folder, "password")
    key, issuer = module.authority(folder)
    module.certificate(folder, "gpu1", called, key, issuer)
    found: list[str] = folder.changed
    return found


def test_they_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "site"
    assert made(path, ["10.0.0.5", "gpu1"]) == [
        "password",
        "password.bcrypt",
        "ca.key",
        "ca.crt",
        "gpu1.key",
        "gpu1.crt",
    ]
    assert path.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in path.iterdir()} == {0o600}
    assert made(path, ["10.0.0.5", "gpu1"]) == []
    assert bcrypt.checkpw((path / "password").read_bytes(), (path / "password.bcrypt").read_bytes())


def test_a_host_that_is_called_otherwise_gets_another_certificate(tmp_path: Path) -> None:
    made(tmp_path, ["10.0.0.5"])
    assert made(tmp_path, ["10.0.0.6", "gpu1.internal"]) == ["gpu1.key", "gpu1.crt"]
    found = x509.load_pem_x509_certificate((tmp_path / "gpu1.crt").read_bytes())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.0.0.6")]
    assert names.get_values_for_type(x509.DNSName) == ["gpu1.internal"]
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tmp_path / "gpu1.crt", tmp_path / "gpu1.key")


def test_a_certificate_of_another_authority_is_replaced(tmp_path: Path) -> None:
    made(tmp_path, ["gpu1"])
    for name in ("ca.crt", "ca.key"):
        (tmp_path / name).unlink()
    assert made(tmp_path, ["gpu1"]) == ["ca.key", "ca.crt", "gpu1.key", "gpu1.crt"]


def test_a_look_makes_none(tmp_path: Path) -> None:
    assert "ca.crt" in made(tmp_path / "site", ["gpu1"], check=True)
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(("changed", "is_of_image"), [
    ("collector/src/trainvitals/cli.py", True), ("requirements/runtime.txt", True), ("prometheus/rules/gpu.yml", False),
    ("compose/.env.example", False)])  # fmt: skip
def test_a_release_is_what_is_in_it(changed: str, is_of_image: bool, tmp_path: Path) -> None:
    release = loaded("stack_release")
    paths = release.files(ROOT, release.SHIPPED)
    for path in paths:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        copy.chmod(path.stat().st_mode)
    before = [release.digest(ROOT, release.files(ROOT, which)) for which in (release.SHIPPED, release.SOURCE)]
    assert before == [
        release.digest(tmp_path, release.files(tmp_path, which)) for which in (release.SHIPPED, release.SOURCE)
    ]
    (tmp_path / changed).write_text("another")
    after = [release.digest(tmp_path, release.files(tmp_path, which)) for which in (release.SHIPPED, release.SOURCE)]
    assert [one != other for one, other in zip(before, after, strict=True)] == [True, is_of_image]


def test_a_release_holds_no_configuration_of_this_machine() -> None:
    release = loaded("stack_release")
    names = {str(path.relative_to(ROOT)) for path in release.files(ROOT, release.SHIPPED)}
    assert not names & {"compose/.env", "compose/web/web.yml"}
    assert {"compose/compose.yaml", "scripts/stack", "collector/Dockerfile", "prometheus/prometheus.yml"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("prometheus/web")]
    assert set(release.images(ROOT)["prom/node-exporter:" + _tag("prom/node-exporter")]) == {"node"}


def _tag(name: str) -> str:
    text = (ROOT / "compose" / "compose.yaml").read_text()
    return text.partition(f"image: {name}:")[2].split()[0]


@pytest.mark.parametrize(("wanted", "names", "profile"), [
    ("auto", ["NVIDIA L4"], "dcgm"), ("auto", ["Tesla T4"], "dcgm"), ("auto", ["NVIDIA H100 80GB HBM3"] * 8, "dcgm"),
    ("auto", ["NVIDIA GeForce RTX 4090"], ""), ("auto", ["NVIDIA RTX A6000"], ""), ("auto", ["NVIDIA TITAN V"], ""),
    ("auto", [], ""), ("always", ["NVIDIA GeForce RTX 4090"], "dcgm"), ("never", ["NVIDIA L4"], ""),
    ("profiling", ["NVIDIA L4"], "dcgm-profiling")])  # fmt: skip
def test_dcgm_runs_where_gpus_are_for_data_centres(wanted: str, names: list[str], profile: str) -> None:
    assert loaded("stack_facts").dcgm_profile(wanted, names, "cdi") == profile


@pytest.mark.parametrize("wanted", ["auto", "always", "profiling"])
def test_dcgm_neither_runs_nor_is_asked_where_no_container_gets_gpus(wanted: str) -> None:
    assert loaded("stack_facts").dcgm_profile(wanted, ["NVIDIA L4"], "") == ""
