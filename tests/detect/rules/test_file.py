import logging
import os
import sys
import time
from contextlib import nullcontext

import pytest

from tests.collector.support import wait_for
from tests.detect.rules.support import train
from trainvitals import config
from trainvitals.detect.limits import Limits
from trainvitals.detect.making import make_engine
from trainvitals.errors import SettingError
from trainvitals.journal import layout
from trainvitals.telling import Telling

pytest.importorskip("yaml", reason="yaml is not installed")

from trainvitals.detect.rules.file import RulesFile

GOOD = "- {name: a, when: loss > 2, for: 2 steps}\n"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    (tmp_path / "alerts.yml").write_text(GOOD)
    return tmp_path / "alerts.yml"


def later(file, clock):
    clock.now += 1.5
    return file.current()


def names(rules):
    return [rule.name for rule in rules.rules]


def test_a_change_is_read_a_second_later(path, clock):
    file = RulesFile(path, clock=clock)
    assert (names(file.current()), file.version, file.problem) == (["a"], 1, "")
    path.write_text("thresholds: {x: 1}\nrules: [{name: b, when: loss > 2}]")
    clock.now += 0.5
    assert names(file.current()) == ["a"]
    assert names(later(file, clock)) == ["b"]
    assert file.version == 2
    assert later(file, clock) is file.current()


def test_what_counts_from_the_start_alone_says_so_once_when_it_changes(path, clock, caplog):
    path.write_text(f"thresholds: {{x: 1}}\nrules:\n{GOOD}")
    file = RulesFile(path, clock=clock)
    for content in (f"thresholds: {{x: 2}}\nnotify: [email]\nrules:\n{GOOD}",) * 2 + (f"rules:\n{GOOD}",):
        path.write_text(f"{content}# {clock.now}\n")
        later(file, clock)
    assert file.sections == {"thresholds": {"x": 1}}
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: notify, thresholds changed: that counts once the agent is started again",
        f"{path}: thresholds changed: that counts once the agent is started again",
    ]
    path.write_text(f"thresholds: {{x: 1}}\nrules:\n{GOOD}")
    later(file, clock)
    assert (file.version, len(caplog.records)) == (5, 2)


def test_a_change_that_keeps_size_and_time_is_read(path, clock):
    file = RulesFile(path, clock=clock)
    times = path.stat()
    other = path.with_name("other")
    other.write_text(GOOD.replace("name: a", "name: b"))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(path)
    assert names(later(file, clock)) == ["b"]


@pytest.mark.parametrize("bad", ["- {name: a, when: loss >}", "\xff", "x" * (2**20 + 1), "- {name: &a a}"])
def test_a_bad_file_keeps_the_last_good_rules_and_says_so_once(path, clock, caplog, bad):
    file = RulesFile(path, clock=clock)
    path.write_bytes(bad.encode("latin-1"))
    for _ in range(5):
        assert names(later(file, clock)) == ["a"]
    assert file.problem.startswith(str(path))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and "what held before goes on: 1 rule" in record.message
    path.write_text(GOOD)
    assert names(later(file, clock)) == ["a"]
    assert file.problem == ""


def test_a_file_that_vanishes_keeps_them_too(path, clock, caplog):
    file = RulesFile(path, clock=clock)
    path.rename(path.with_suffix(".kept"))
    for _ in range(5):
        assert names(later(file, clock)) == ["a"]
    assert file.problem == f"{path}: it cannot be read: No such file or directory"
    assert len(caplog.records) == 1
    path.with_suffix(".kept").rename(path)
    later(file, clock)
    assert file.problem == ""


def test_what_is_no_file_keeps_nobody_waiting(path, clock):
    path.unlink()
    os.mkfifo(path)
    file = RulesFile(path, clock=clock)
    assert "it is no file" in file.problem
    path.unlink()
    path.write_text(GOOD)
    assert names(later(file, clock)) == ["a"]


def test_a_bad_file_at_the_start_is_no_rules_and_no_exception(path, clock, caplog):
    """Whoever asked for it says what is wrong with it."""
    path.write_text("- {")
    file = RulesFile(path, clock=clock)
    assert file.current().rules == ()
    assert file.problem.startswith(f"{path}:2:1: this is no YAML")
    assert not caplog.records


def test_rules_that_stay_the_same_stand_as_before(path, clock):
    file = RulesFile(path, clock=clock)
    assert train(file.current(), [3]) == []
    path.write_text("rules:\n- {name: b, when: loss > 2, for: 2 steps}\n- name: a\n  when: loss > 2\n  for: 2 steps\n"
                    "  message: other words\n")  # fmt: skip
    found = later(file, clock).training("a", 0, 1e3, {"step": 2, "loss": 3})
    assert [(finding.kind, finding.what) for finding in found] == [("a", "other words")]
    path.write_text(GOOD.replace("> 2", "> 1"))
    assert train(later(file, clock), [3], first=3) == []


def test_windows_go_on_too(path, clock):
    path.write_text("- {name: a, when: 'mean(loss, 4) > 2'}")
    file = RulesFile(path, clock=clock)
    train(file.current(), [3, 3, 3])
    path.write_text("- {name: a, when: 'mean(loss, 4) > 2'}\n- {name: b, when: 'max(loss, 3) > 2'}")
    assert [finding.kind for finding in later(file, clock).training("a", 0, 1e3, {"step": 4, "loss": 3})] == ["a"]


def test_what_others_refuse_makes_a_bad_file(path, clock):
    def check(sections):
        if sections.get("thresholds"):
            raise SettingError("thresholds: x", 1, "leave it out")

    file = RulesFile(path, check=check, clock=clock)
    path.write_text("thresholds: {x: 1}\nrules: [{name: b, when: loss > 2}]")
    assert names(later(file, clock)) == ["a"]
    assert file.problem.startswith(f"{path}:1:17: thresholds: x: '1' cannot be used: leave it out")


def test_without_yaml_it_says_how_to_get_it(path, clock, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    file = RulesFile(path, clock=clock)
    assert "yaml is missing: `" in file.problem and "[web]" in file.problem


def test_an_agent_starts_beside_a_bad_file_and_takes_it_once_it_is_mended(path, clock, caplog):
    good = path.read_text()
    path.write_text("- {name: a, when: loss >> 2}\n")
    with caplog.at_level(logging.WARNING):
        engine = make_engine(path, goes_on=True)
    assert f"{path}:1:" in caplog.text and "go on by their own numbers" in caplog.text
    assert engine.limits == Limits() and names(engine.rules.current()) == []
    caplog.clear()
    engine.rules._clock = clock
    clock.now = time.monotonic()
    path.write_text("thresholds: {loss_spike_sigma: 9}\nrules:\n" + good)
    with caplog.at_level(logging.WARNING):
        assert names(later(engine.rules, clock)) == ["a"]
    assert "thresholds changed: that counts once the agent is started again" in caplog.text
    path.write_text("- {name: a, when: loss >> 2}\n")
    with pytest.raises(SettingError):
        make_engine(path)


@pytest.mark.parametrize("empty", ["", "\n \n"])
def test_an_empty_file_is_a_bad_one_while_there_are_rules(path, clock, caplog, empty):
    file = RulesFile(path, clock=clock)
    path.write_text(empty)
    for _ in range(3):
        assert names(later(file, clock)) == ["a"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: it is empty: write `rules: []` where no rules are wanted\nwhat held before goes on: 1 rule"
    ]
    path.write_text("rules: []")
    assert names(later(file, clock)) == [] and not file.problem
    path.write_text(empty)
    assert names(later(file, clock)) == [] and not file.problem


@pytest.mark.parametrize("bad", ["- {", "", None])
def test_the_last_good_file_outlives_a_restart(tmp_path, path, caplog, bad):
    path.write_text(f"thresholds: {{loss_spike_sigma: 9}}\nnotify: [slack]\nrules:\n{GOOD}")
    settings = config.load({"rules": str(path)}, {})
    Telling(settings, {}, tmp_path / "journal")
    folder = layout.gpu_folder(tmp_path / "journal", layout.host_name()) / "notify"
    wait_for(lambda: [one for one in folder.glob("rules*") if one.read_text() == path.read_text()])
    assert folder.stat().st_mode & 0o777 == 0o700
    path.unlink() if bad is None else path.write_text(bad)
    for _ in range(2):
        caplog.clear()
        telling = Telling(settings, {"SLACK_WEBHOOK_URL": "https://a.example/x"}, tmp_path / "journal")
        assert names(telling.engine.rules.current()) == ["a"]
        assert (telling.engine.limits.loss_spike_sigma, telling.ways()) == (9, 1)
        [words] = [record.getMessage() for record in caplog.records]
        assert words.startswith(str(path)) and f"what held before goes on: 1 rule, from {folder}/rules" in words
    with pytest.raises(SettingError) if bad != "" else nullcontext():
        make_engine(path)


def test_the_copy_is_of_this_file_and_one_that_cannot_be_used_is_none(tmp_path, path, caplog):
    engine = make_engine(path, goes_on=True, folder=tmp_path / "kept")
    wait_for((copy := engine.rules.copy).exists)
    other = path.with_name("other.yml")
    assert names(make_engine(other, goes_on=True, folder=tmp_path / "kept").rules.current()) == []
    path.unlink()
    for broken in (b"- {", b"\xff"):
        copy.write_bytes(broken)
        assert names(make_engine(path, goes_on=True, folder=tmp_path / "kept").rules.current()) == []
    assert caplog.text.count("go on by their own numbers") == 3
    path.write_text(GOOD)
    (tmp_path / "file").touch()
    assert names(make_engine(path, goes_on=True, folder=tmp_path / "file").rules.current()) == ["a"]


def test_a_file_that_is_not_there_yet_stops_no_agent(tmp_path, caplog):
    settings = config.load({"rules": str(tmp_path / "alerts.yml")}, {})
    with caplog.at_level(logging.WARNING):
        telling = Telling(settings, {})
    assert "it cannot be read: No such file or directory" in caplog.text
    (tmp_path / "alerts.yml").write_text(GOOD)
    clock = Clock()
    clock.now = time.monotonic()
    telling.engine.rules._clock = clock
    assert names(later(telling.engine.rules, clock)) == ["a"]
