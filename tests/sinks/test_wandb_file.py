"""Rows of an offline file of W&B: over blocks, torn anywhere, damaged, and as W&B itself writes it."""

import json
from pathlib import Path

import pytest

from tests.sinks.support import ended_run, needed, sync, wandb_points
from trainvitals.sinks import SinkError
from trainvitals.sinks.wandb_file import (
    BLOCK_BYTES,
    FIRST,
    HEADER,
    LAST,
    MIDDLE,
    PIECE,
    WHOLE,
    OfflineFile,
    checksum_of,
    is_open,
)


def sized(field: int, content: bytes) -> bytes:
    """A protobuf field of at most 16 KiB."""
    return small(field << 3 | 2) + small(len(content)) + content


def small(number: int) -> bytes:
    """A protobuf number of up to 14 bits, in two bytes."""
    return bytes([number & 0x7F | 0x80, number >> 7])


def row(number: int, size: int = 20) -> bytes:
    told = b"\x08" + small(number) if number else b""
    return b"\x08\x05" + sized(2, sized(1, bytes(size)) + sized(2, told)) + sized(16, b"\x10\x01")


def written(*records: bytes, begun: bytes = HEADER) -> bytes:
    """As W&B lays records out."""
    content = bytearray(begun)
    for record in records:
        kinds, rest = (WHOLE, FIRST), record
        while True:
            left = BLOCK_BYTES - len(content) % BLOCK_BYTES
            if left < PIECE.size:
                content += bytes(left)
                left = BLOCK_BYTES
            part, rest = rest[: left - PIECE.size], rest[left - PIECE.size :]
            kind = kinds[bool(rest)]
            content += PIECE.pack(checksum_of(kind, part), len(part), kind) + part
            kinds = (LAST, MIDDLE)
            if not rest:
                break
    return bytes(content)


def counted(path: Path, content: bytes) -> int:
    path.write_bytes(content)
    file = OfflineFile(str(path))
    file.read_on()
    return file.rows


def test_rows_are_counted_over_blocks_and_other_records_are_not(tmp_path: Path) -> None:
    others = [b"", b"\x08\x01", sized(17, b"run"), sized(18, b"\x08\x00")]
    content = written(*others, *(row(number, 900) for number in range(300)), sized(17, bytes(16_000)), *others)
    assert len(content) > 8 * BLOCK_BYTES
    assert counted(tmp_path / "a", content) == 300


@pytest.mark.parametrize("left", range(12))
def test_a_block_may_end_anywhere(left: int, tmp_path: Path) -> None:
    begun = written(*[row(number, 900) for number in range(34)])
    filler = BLOCK_BYTES - len(begun) % BLOCK_BYTES - left - PIECE.size - 2 * 4
    content = written(sized(17, sized(1, bytes(filler))), row(34), row(35, 16_000), begun=begun)
    assert counted(tmp_path / "a", content) == 36


def test_a_last_record_torn_at_any_byte_is_none_and_is_read_when_it_is_whole(tmp_path: Path) -> None:
    begun = written(*[row(number, 900) for number in range(35)])
    content = written(row(35, 900), begun=begun)
    assert len(begun) < BLOCK_BYTES < len(content)
    path = tmp_path / "a"
    growing = OfflineFile(str(path))
    for end in range(len(begun), len(content)):
        assert counted(path, content[:end]) == 35
        growing.read_on()
        assert growing.rows == 35
    path.write_bytes(content)
    growing.read_on()
    assert growing.rows == 36


def test_a_byte_that_changed_ends_what_is_counted(tmp_path: Path) -> None:
    begun = written(row(0), row(1))
    content = written(row(2), begun=begun)
    for at in range(len(begun), len(content)):
        damaged = content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]
        assert counted(tmp_path / "a", damaged + written(row(3), begun=b"")) == 2


@pytest.mark.parametrize("tail", [bytes(70_000), b"\xff" * 70_000, bytes(range(256)) * 300])
def test_garbage_behind_the_rows_is_none(tail: bytes, tmp_path: Path) -> None:
    assert counted(tmp_path / "a", written(row(0), row(1)) + tail) == 2


@pytest.mark.parametrize("kinds", [(LAST,), (MIDDLE,), (FIRST, WHOLE), (FIRST, FIRST, LAST), (0,), (9,)])
def test_pieces_that_do_not_fit_each_other_are_no_record(kinds: tuple[int, ...], tmp_path: Path) -> None:
    content = written(row(0))
    for kind in kinds:
        content += PIECE.pack(checksum_of(kind, row(5)), len(row(5)), kind) + row(5)
    assert counted(tmp_path / "a", content) == 1


@pytest.mark.parametrize("size", range(len(HEADER)))
def test_a_file_that_was_just_begun_has_no_rows(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(HEADER[:size])
    file = OfflineFile(str(path))
    file.read_on()
    path.write_bytes(written(row(0)))
    file.read_on()
    assert file.rows == 1


@pytest.mark.parametrize("content", [
    b"PK\x03\x04", HEADER[:-1] + b"\x01", written(b"\x12"), written(b"\x12\x7f"), written(b"\x13\x01")])  # fmt: skip
def test_a_file_of_another_make_is_an_error_that_says_what_to_do(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="move its folder away"):
        counted(tmp_path / "a", content)


@pytest.mark.parametrize("tail", [b"", bytes(9), written(row(2), begun=b"")[:-1]])
def test_a_torn_end_is_cut_off_and_nothing_else(tail: bytes, tmp_path: Path) -> None:
    content = written(row(0), row(1))
    path = tmp_path / "a"
    path.write_bytes(content + tail)
    file = OfflineFile(str(path))
    file.cut()
    assert path.read_bytes() == content + tail
    file.read_on()
    file.cut()
    assert path.read_bytes() == content


def test_a_file_is_open_where_a_process_has_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb"):
        assert is_open(str(path))
    assert not is_open(str(path))


def test_a_file_that_wandb_wrote_has_all_rows(tmp_path: Path) -> None:
    needed("wandb")
    ended_run(tmp_path, 1500)
    assert sync(tmp_path, "gemma", "wandb=p").returncode == 0
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert path.stat().st_size > 3 * BLOCK_BYTES
    assert counted(tmp_path / "a", path.read_bytes()) == 1500


def test_the_second_of_two_files_that_were_begun_in_one_second_is_counted_too(tmp_path: Path) -> None:
    needed("wandb")
    trainer = ended_run(tmp_path)
    assert sync(tmp_path, "gemma", "wandb=p").returncode == 0
    (folder,) = tmp_path.glob("wandb/offline-run-*")
    folder.rename(f"{folder}-1")
    # As a kill leaves it that comes before the target is known to have anything.
    (path,) = (trainer.folder / "agent" / "sinks").glob("*.wandb-*.json")
    state = json.loads(path.read_text())
    place = {name: told[0] for name, told in state["position"]["files"].items()} | state["position"]["slots"]
    state |= {"marks": [[state["rows"], place]], "rows": 0, "points": 0, "position": {}, "over": []}
    path.write_text(json.dumps(state))
    assert sync(tmp_path, "gemma", "wandb=p").returncode == 0
    assert wandb_points(tmp_path) == trainer.expected()
