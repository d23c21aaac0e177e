"""What happens to a file behind its reader's back, or to the reader: rotated, cut, replaced, thinned, restarted."""

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.collector.journal.helpers import add, following, line, lines, read
from trainvitals.journal import retention, tail
from trainvitals.journal.append import Appender
from trainvitals.journal.record import encode, timestamp
from trainvitals.journal.tail import Tail


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_rotation_to_a_new_file(tmp_path: Path) -> None:
    appender = Appender(tmp_path, "training_metrics", suffix=".jsonl", max_bytes=500)
    reader = following()
    found: list[int] = []
    for number in range(60):
        appender.append({"n": number})
        for path in sorted(tmp_path.iterdir()):
            reader.follow(path)
            found += read(reader, path)
    assert found == list(range(60))
    assert len(list(tmp_path.iterdir())) > 3


def test_truncation_to_nothing_and_regrowth(path: Path) -> None:
    reader = following(path)
    add(path, lines(range(5)))
    assert read(reader, path) == [0, 1, 2, 3, 4]
    os.truncate(path, 0)
    assert read(reader, path) == []
    add(path, lines(range(10, 30)))
    assert read(reader, path) == list(range(10, 30))
    assert reader.garbage_lines == 0


def test_truncation_and_regrowth_between_two_readings(path: Path) -> None:
    reader = following(path)
    add(path, lines(range(5)))
    read(reader, path)
    path.write_bytes(lines(range(10, 30)))
    assert read(reader, path) == list(range(10, 30))


def test_truncation_in_the_middle_repeats_nothing(path: Path) -> None:
    reader = following(path)
    add(path, lines(range(10)))
    read(reader, path)
    os.truncate(path, len(lines(range(4))) + 10)
    assert read(reader, path) == []
    os.truncate(path, len(lines(range(4))))
    add(path, lines(range(20, 23)))
    assert read(reader, path) == [20, 21, 22]


def test_a_file_cut_within_its_first_line_starts_again(path: Path) -> None:
    reader = following(path)
    add(path, line(0, text="x" * 500) + line(1))
    read(reader, path)
    os.truncate(path, 200)
    assert read(reader, path) == []
    path.write_bytes(lines(range(10, 13)))
    assert read(reader, path) == [10, 11, 12]
    add(path, line(13))
    assert read(reader, path) == [13]


def test_a_cut_and_regrown_file_is_taken_up_at_a_whole_line(path: Path) -> None:
    reader = following(path)
    add(path, lines(range(10)))
    read(reader, path)
    os.truncate(path, len(lines(range(4))))
    add(path, lines(range(20, 40), text="odd"))
    found = read(reader, path)
    assert found == list(range(found[0], 40))
    assert reader.garbage_lines == 0


@pytest.mark.parametrize("new", [range(100, 102), range(100, 150)], ids=["shorter", "longer"])
def test_deletion_and_recreation_under_the_same_name(path: Path, new: range) -> None:
    reader = following(path)
    add(path, lines(range(10)))
    read(reader, path)
    path.unlink()
    assert read(reader, path) == []
    assert not reader.has_news(path)
    add(path, lines(new))
    assert reader.has_news(path)
    assert read(reader, path) == list(new)


def test_a_new_file_on_an_old_inode_is_a_new_file(tmp_path: Path) -> None:
    """A rename carries the inode to another name: what counts is what the file holds."""
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    reader = following(one, two)
    add(one, lines(range(5)))
    assert read(reader, one) == [0, 1, 2, 3, 4]
    inode = one.stat().st_ino
    one.rename(two)
    two.write_bytes(lines(range(50, 60)))
    assert two.stat().st_ino == inode
    assert read(reader, two) == list(range(50, 60))
    assert read(reader, one) == []


def test_a_thinned_file_is_still_the_same(tmp_path: Path) -> None:
    path = tmp_path / "gpu_metrics_20250730_123456.jsonl"
    stamps = [timestamp((1_753_878_896 + second) * 10**9) for second in range(600)]
    path.write_bytes(b"".join(encode({"timestamp": t, "gpu_index": 0, "n": n}) for n, t in enumerate(stamps)))
    reader = following(path)
    assert read(reader, path) == list(range(600))
    size = path.stat().st_size
    retention.thin(path)
    assert path.stat().st_size < size / 10
    assert read(reader, path) == []
    add(path, line(1000))
    assert read(reader, path) == [1000]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("reached", [40, 300, 590])
def test_a_file_thinned_while_its_reader_was_away_is_taken_up_by_time(
    tmp_path: Path, reached: int, restarted: bool
) -> None:
    path = tmp_path / "gpu_metrics_20250730_123456.jsonl"
    stamps = [timestamp((1_753_878_896 + second) * 10**9) for second in range(900)]
    content = [encode({"timestamp": t, "gpu_index": 0, "n": n}) for n, t in enumerate(stamps)]
    path.write_bytes(b"".join(content[:reached]))
    reader = following(path)
    assert read(reader, path) == list(range(reached))
    cursor = json.loads(json.dumps(reader.cursor()))
    add(path, b"".join(content[reached:]))
    retention.thin(path)
    later = [number for number in read(following(path), path) if number >= reached]
    assert len(later) >= 5
    assert read(following(cursor=cursor) if restarted else reader, path) == later


def test_a_copy_that_is_longer_is_taken_up_by_time(path: Path) -> None:
    """The offset may even lie behind a newline there."""
    reader = following(path)
    add(path, line(0) + lines(range(10, 20)))
    read(reader, path)
    copy = path.with_name("copy")
    copy.write_bytes(line(0) + lines(range(15, 40)))
    copy.replace(path)
    assert read(reader, path) == list(range(20, 40))


def test_a_file_cut_and_regrown_past_the_place_loses_nothing(path: Path) -> None:
    reader = following(path)
    add(path, lines(range(10)))
    read(reader, path)
    os.truncate(path, len(lines(range(4))))
    add(path, lines(range(20, 40), text="odd"))
    assert read(reader, path) == list(range(20, 40))


def test_a_cursor_of_an_earlier_version_is_read(path: Path) -> None:
    add(path, lines(range(10)))
    reader = following(path)
    read(reader, path)
    old = {name: place[:2] for name, place in reader.cursor().items()}
    add(path, lines(range(10, 15)))
    assert read(Tail(old), path) == list(range(10, 15))


def test_a_reader_after_an_overlong_line_does_not_go_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "MAX_LINE_BYTES", 4096)
    reader = following(path)
    add(path, lines(range(3)) + b"x" * 9_999)
    assert read(reader, path, 256) == [0, 1, 2]
    add(path, b"x\n" + lines(range(3, 6)))
    assert read(reader, path, 256) == [3, 4, 5]
    assert reader.garbage_lines == 1


HELD = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
TEXTS = st.lists(st.text(max_size=30), min_size=1, max_size=12)


@HELD
@given(texts=TEXTS, share=st.floats(0, 1))
def test_a_cut_at_any_byte_loses_at_most_the_cut_line(path: Path, texts: list[str], share: float) -> None:
    content = [line(number, text=text) for number, text in enumerate(texts)]
    cut = int(len(b"".join(content)) * share)
    path.write_bytes(b"".join(content)[:cut])
    whole = path.read_bytes().count(b"\n")
    reader = following(path)
    assert read(reader, path) == list(range(whole))

    appender = Appender(path.parent, path.name)
    assert appender.append({"n": 1000})
    appender.close()
    assert read(reader, path) == [1000]
    assert read(following(path), path) == [*range(whole), 1000]
    assert reader.garbage_lines == 0


@HELD
@given(texts=TEXTS, share=st.floats(0, 1))
def test_a_cut_behind_the_back_of_a_reader_repeats_nothing(path: Path, texts: list[str], share: float) -> None:
    content = b"".join(line(number, text=text) for number, text in enumerate(texts))
    path.write_bytes(content)
    reader = following(path)
    assert read(reader, path) == list(range(len(texts)))
    os.truncate(path, int(len(content) * share))
    assert read(reader, path) == []
    appender = Appender(path.parent, path.name)
    appender.append({"n": 1000})
    appender.close()
    assert read(reader, path) == [1000]


@HELD
@given(seed=st.integers(0, 2**32), chunk=st.sampled_from([1, 60, 300, 1 << 20]))
def test_a_reader_restarted_at_random_points_sees_each_record_once(tmp_path: Path, seed: int, chunk: int) -> None:
    """What a reader took and its cursor are kept together, as sinks do; what it did after that is lost with it."""
    chance = random.Random(seed)
    paths = [tmp_path / f"{number}.jsonl" for number in range(3)]
    written: dict[Path, list[int]] = {path: [] for path in paths}
    kept: dict[Path, list[int]] = {path: [] for path in paths}
    cursor = "{}"
    for path in paths:
        path.write_bytes(b"")
    for number in range(40):
        path = chance.choice(paths)
        add(path, line(number, text="x" * chance.randrange(90)))
        written[path].append(number)
        if chance.random() < 0.4:
            reader = following(*paths, cursor=json.loads(cursor))
            for path in chance.sample(paths, 2):
                taken = [record["n"] for record in reader.read(path, chunk)]
                if chance.random() < 0.7:
                    kept[path] += taken
                    cursor = json.dumps(reader.cursor())
                else:
                    break
    reader = following(*paths, cursor=json.loads(cursor))
    assert {path: kept[path] + read(reader, path, chunk) for path in paths} == written
