"""Settings: which one wins, and one line that names the key, the value and the fix where one is wrong."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainvitals import cli, config
from trainvitals.config import FLAGS_ONLY, SETTINGS

Write = Callable[[str], Path]

# For each setting three values that can be told apart, as text and as what becomes of it.
VALUES: dict[str, tuple[tuple[str, Any], tuple[str, Any], tuple[str, Any]]] = {
    "dir": (("/a", Path("/a")), ("/b", Path("/b")), ("/c", Path("/c"))),
    "interval": (("0.1", 0.1), ("2", 2.0), ("3600", 3600.0)),
    "host": (("::1", "::1"), ("0.0.0.0", "0.0.0.0"), ("localhost", "localhost")),
    "port": (("0", 0), ("1", 1), ("65535", 65535)),
    "allowed_hosts": (("a", ("a",)), ("a, b", ("a", "b")), ("c,,", ("c",))),
    "token": (("a", "a"), ("none", "none"), ("b", "b")),
    "simulate": (("0", 0), ("1", 1), ("64", 64)),
    "scenario": (("hot", "hot"), ("lost", "lost"), ("idle", "idle")),
    "seed": (("1", 1), ("2", 2), ("3", 3)),
    "expected_gpus": (("0", 0), ("8", 8), ("1024", 1024)),
    "node_price": (("0", 0.0), ("3.5", 3.5), ("98.32", 98.32)),
    "ray_address": (("auto", "auto"), ("10.0.0.1:6379", "10.0.0.1:6379"), ("head:6379", "head:6379")),
    "host_proc": (("/a", Path("/a")), ("/b", Path("/b")), ("/c", Path("/c"))),
    "per_core": (("true", True), ("0", False), ("YES", True)),
    "runs_cap": (("1MiB", 2**20), ("1.5g", 3 * 2**29), ("2TiB", 2**41)),
    "node_cap": (("2M", 2**21), ("1048576", 2**20), ("512MB", 2**29)),
    "gpu": (("0", (0,)), ("1", (1,)), ("2", (2,))),
    "gpus": (("0,1", (0, 1)), ("3", (3,)), (" 1, 2", (1, 2))),
    "prometheus_port": (("1", 1), ("9090", 9090), ("65535", 65535)),
    "summary_interval": (("0", 0.0), ("60", 60.0), ("86400", 86400.0)),
    "log_dir": (("/a", Path("/a")), ("/b", Path("/b")), ("/c", Path("/c"))),
    "sink_runs": (("a", ("a",)), ("a,b", ("a", "b")), (" a , b ", ("a", "b"))),
    "sinks": (
        ("wandb=a,mlflow=b", ("wandb=a", "mlflow=b")),
        ("tensorboard=/x,y", ("tensorboard=/x,y",)),
        ("wandb=c", ("wandb=c",)),
    ),
    "to": (("wandb=a", ("wandb=a",)), ("mlflow=b", ("mlflow=b",)), ("wandb=c,", ("wandb=c",))),
    "wandb_project": (("a", "a"), ("b", "b"), ("c", "c")),
    "wandb_run_name": (("a", "a"), ("b", "b"), ("c", "c")),
    "remote": (("a", "a"), ("http://b:8080", "http://b:8080"), ("c:1", "c:1")),
    "ascii": (("true", True), ("0", False), ("YES", True)),
    "save_dir": (("/a", Path("/a")), ("/b", Path("/b")), ("/c", Path("/c"))),
    "notify": (("email,slack", "email,slack"), ("webhook=https://a/b", "webhook=https://a/b"), ("slack", "slack")),
    "heartbeat_url": (("https://a/1", "https://a/1"), ("https://a/2", "https://a/2"), ("https://a/3", "https://a/3")),
    "log_format": (("text", "text"), ("json", "json"), ("text", "text")),
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(text: str) -> Path:
        path = tmp_path / "settings.env"
        path.write_text(text)
        return path

    return make


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TRAINVITALS_")]:
        monkeypatch.delenv(name)


def test_every_setting_is_tried_below() -> None:
    assert VALUES.keys() | {"web_config", "rules"} == SETTINGS.keys()


@pytest.mark.parametrize("name", VALUES)
def test_flag_over_environment_over_file_over_default(name: str, write: Write) -> None:
    setting, (flag, environ, file) = SETTINGS[name], VALUES[name]
    path = str(write(f"{setting.variable}={file[0]}\n"))
    told = {setting.variable: environ[0]}
    assert config.load({}, {})[name] == setting.default
    assert config.load({name: flag[0], "env_file": path}, told)[name] == flag[1]
    if name in FLAGS_ONLY:
        assert config.load({"env_file": path}, told)[name] is None
        return
    assert config.load({"env_file": path}, told)[name] == environ[1]
    assert config.load({"env_file": path}, {})[name] == file[1]
    assert config.load({}, {"TRAINVITALS_ENV_FILE": path})[name] == file[1]


def test_a_flag_that_is_on_wins_too(write: Write) -> None:
    path = str(write("TRAINVITALS_PER_CORE=false"))
    assert config.load({"per_core": "true", "env_file": path}, {"TRAINVITALS_PER_CORE": "no"})["per_core"] is True


@pytest.mark.parametrize("name", ["web_config", "rules"])
def test_what_a_file_holds_is_named_by_its_path(name: str, write: Write) -> None:
    path = write("")
    assert config.load({name: str(path)}, {})[name] == path
    assert config.load({}, {f"TRAINVITALS_{name.upper()}": str(path)})[name] == path


def test_an_empty_variable_is_none_at_all(write: Write) -> None:
    path = str(write("TRAINVITALS_PORT=\n"))
    assert config.load({"env_file": path}, {"TRAINVITALS_PORT": ""})["port"] == 8080
    assert config.load({"env_file": str(write("TRAINVITALS_PORT=9000"))}, {"TRAINVITALS_PORT": ""})["port"] == 9000


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("TRAINVITALS_HOST=a", "a"),
        ("  export TRAINVITALS_HOST = a  ", "a"),
        ('TRAINVITALS_HOST="a b"', "a b"),
        ("TRAINVITALS_HOST='a # b' # c", "a # b"),
        ("TRAINVITALS_HOST=a # c", "a"),
        ("TRAINVITALS_HOST=a#b", "a#b"),
        ("TRAINVITALS_HOST=a=b", "a=b"),
        ("TRAINVITALS_HOST= # c", "127.0.0.1"),
        ("#TRAINVITALS_HOST=a", "127.0.0.1"),
        ("TRAINVITALS_HOST=a\nTRAINVITALS_HOST=b", "b"),
        ("\ufeff# a comment\nGRAFANA_PASSWORD='x\"y'\n\nTRAINVITALS_HOST=a\r\n", "a"),
    ],
)
def test_lines_of_a_file_read_as_docker_compose_reads_them(line: str, value: str, write: Write) -> None:
    assert config.load({"env_file": str(write(line))}, {})["host"] == value


BAD = [
    ("interval", ("0", "0.05", "-1", "abc", "nan", "inf", "3601", "")),
    ("port", ("-1", "70000", "80.5", "http", "")),
    ("dir", ("relative", "./x", "", "~nobody-of-that-name/x", "/a\0b")),
    ("log_dir", ("relative", "")),
    ("host_proc", ("relative", "")),
    ("gpu", ("", "a", "-1", "0,", "1.5")),
    ("gpus", ("", "a", "-1", "0,,1", "0-3")),
    ("web_config", ("/nothing/there.yml", "/", "", "a\0b")),
    ("rules", ("/", "", "a\0b")),
    ("scenario", ("nonsense", "HOT", "")),
    ("simulate", ("-1", "65", "eight", "")),
    ("seed", ("-1", "x", "1e3")),
    ("expected_gpus", ("-1", "x", "")),
    ("node_price", ("-1", "nan", "$3", "")),
    ("runs_cap", ("0", "-1GiB", "1023KiB", "2 apples", "infMiB", "nanG", "1.2.3M", "9" * 400 + "G", "G", "")),
    ("node_cap", ("512", "much", "")),
    ("prometheus_port", ("0", "65536", "x", "")),
    ("summary_interval", ("-1", "nan", "86401", "")),
    ("sinks", ("", "wandb", "wandb=", "aim=x", "wandb=a,x=b", "=a")),
    ("log_format", ("xml", "JSON", "")),
    ("save_dir", ("relative", "")),
]  # fmt: skip
COMMANDS = {"gpu": "monitor", "gpus": "monitor", "prometheus_port": "monitor", "summary_interval": "monitor",
            "log_dir": "monitor", "save_dir": "top"}  # fmt: skip


def test_every_setting_that_can_be_wrong_is_tried() -> None:
    assert {name for name, _ in BAD} == SETTINGS.keys() - {
        "host", "allowed_hosts", "per_core", "sink_runs", "to", "wandb_project", "wandb_run_name",
        "ray_address", "notify", "heartbeat_url", "token", "remote", "ascii"}  # fmt: skip


# From a flag a folder is taken from where one stands.
RELATIVE = ("relative", "./x")


@pytest.mark.parametrize(("name", "value"), [
    (name, value) for name, values in BAD for value in values if value not in RELATIVE])  # fmt: skip
def test_a_bad_flag_is_one_line(name: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    setting = SETTINGS[name]
    assert cli.main([COMMANDS.get(name, "serve"), f"{setting.flag}={value}"]) == 2
    _is_one_line(capsys, f"trainvitals: {setting.flag}: {value!r} cannot be used: ", value)


def test_a_negative_number_is_a_value_and_no_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--port", "-1"]) == 2
    _is_one_line(capsys, "trainvitals: --port: '-1' cannot be used: ", "-1")


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD if name not in FLAGS_ONLY for value in values if value and "\0" not in value]
    + [("per_core", "perhaps")],
)
def test_so_is_a_bad_variable_and_a_bad_line(
    name: str, value: str, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variable = SETTINGS[name].variable
    path = write(f"{variable}={value}\n")
    assert cli.main(["doctor", "--env-file", str(path)]) == 2
    _is_one_line(capsys, f"trainvitals: {path}: {variable}: {value!r} cannot be used: ", value)
    monkeypatch.setenv(variable, value)
    assert cli.main(["doctor"]) == 2
    _is_one_line(capsys, f"trainvitals: {variable}: {value!r} cannot be used: ", value)


def _is_one_line(capsys: pytest.CaptureFixture[str], start: str, value: str) -> None:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(start)
    fix = err.removeprefix(start)
    assert fix.split()[0] in ("give", "choose", "say", "name")
    assert fix.count("\n") == 1


@pytest.mark.parametrize("value", ["", "/nothing/there.env", "/"])
def test_a_file_that_is_not_there_is_named(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", "--env-file", value]) == 2
    _is_one_line(capsys, f"trainvitals: --env-file: {value!r} cannot be used: ", value)
    if value:
        monkeypatch.setenv("TRAINVITALS_ENV_FILE", value)
        assert cli.main(["serve"]) == 2
        _is_one_line(capsys, f"trainvitals: TRAINVITALS_ENV_FILE: {value!r} cannot be used: ", value)


@pytest.mark.parametrize("line", ["SECRET", "KEY SECRET", '="SECRET"', 'KEY="SECRET', 'KEY="SEC"RET', "KEY='SECRET"])
def test_a_line_that_is_none_is_named_by_its_number(
    line: str, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(f"# fine\nA=1\n{line}\n")
    assert cli.main(["serve", "--env-file", str(path)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"trainvitals: {path}: line 3: ")
    assert "SEC" not in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_scenario_needs_simulated_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["once", "--scenario", "hot"]) == 2
    assert "add --simulate 8" in capsys.readouterr().err


@pytest.mark.parametrize(
    "host", ["", "no.such.host.invalid", "203.0.113.1", "a b", "1.2.3.4.5", "x" * 300, "\u00fc" * 80]
)
def test_a_host_that_is_not_this_one_is_named(host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--host", host]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"trainvitals: --host: {host!r} cannot be used: give an address of this machine")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["dir", "log_dir"])
def test_a_folder_of_a_flag_is_taken_from_here(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for given, found in (("new", "new"), ("./a/b", "a/b"), (".", ""), (str(tmp_path / "x"), "x")):
        assert config.load({name: given}, {})[name] == tmp_path / found
    for value in ("file", str(tmp_path / "file")):
        assert cli.main(["monitor", f"{SETTINGS[name].flag}={value}"]) == 2
        _is_one_line(capsys, f"trainvitals: {SETTINGS[name].flag}: {value!r} cannot be used: ", value)


@pytest.mark.parametrize(("name", "nearest"), [("PROT", "PORT"), ("INTERVALL", "INTERVAL"), ("RUNS_CUP", "RUNS_CAP"),
                                               ("RUNID", "RUN_ID"), ("", "")])  # fmt: skip
def test_a_name_that_is_none_is_told_with_the_nearest(name: str, nearest: str, write: Write,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    path = write(f"TRAINVITALS_{name}=SECRET\n")
    assert cli.main(["doctor", "--env-file", str(path)]) == 2
    monkeypatch.setenv(f"TRAINVITALS_{name}", "SECRET")
    assert cli.main(["doctor"]) == 2
    file, environ = capsys.readouterr().err.splitlines()
    told = f"TRAINVITALS_{name} is no setting: the nearest one is TRAINVITALS_{nearest}"
    assert file.startswith(f"trainvitals: {path}: {told}")
    assert environ.startswith(f"trainvitals: {told}")


def test_names_of_others_are_left_alone(write: Write) -> None:
    others = ("RUN_ID", "HOSTNAME", "NOTIFY_FILE", "HEARTBEAT_URL_FILE", "TOKEN_FILE", "ENV_FILE", "DIR")
    path = str(write("".join(f"TRAINVITALS_{name}=/x\n" for name in others) + "TRAINVITALS=x\nPORT=x\nTRAINVITALSX=1"))
    assert config.load({"env_file": path}, {"TRAINVITALS": "x", "trainvitals_x": "y"})["port"] == 8080
