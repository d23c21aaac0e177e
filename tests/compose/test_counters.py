"""The counters that DCGM's exporter is given: their form, and that the two lists agree."""

import re

import pytest

from tests.compose.files import FOLDER

PLAIN, PROFILING = ((FOLDER / f"dcgm-counters{kind}.csv").read_text() for kind in ("", "-profiling"))


def fields(text: str) -> list[str]:
    return [line.partition(",")[0] for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("text", [PLAIN, PROFILING])
def test_a_line_is_a_field_once_its_type_and_its_help(text: str) -> None:
    for line in text.splitlines():
        assert not line or re.fullmatch(r"#.*|DCGM_FI_[A-Z0-9_]+, (gauge|counter|label), [^,]+", line), line
    assert len(set(fields(text))) == len(fields(text))


def test_what_needs_a_privilege_is_in_the_profiling_list_alone() -> None:
    assert not [field for field in fields(PLAIN) if field.startswith("DCGM_FI_PROF_")]
    more = fields(PROFILING)[len(fields(PLAIN)) :]
    assert fields(PROFILING) == fields(PLAIN) + more
    assert more
    assert all(field.startswith("DCGM_FI_PROF_") for field in more)


@pytest.mark.parametrize("word", ["ECC_DBE_VOL", "NVLINK_REPLAY", "CLOCKS_EVENT_REASONS", "XID", "ROW_REMAP_PENDING",
                                  "PCIE_REPLAY", "THERMAL_VIOLATION"])  # fmt: skip
def test_what_dcgm_s_own_list_lacks_is_there(word: str) -> None:
    assert [field for field in fields(PLAIN) if word in field]


def test_every_name_of_dcgm_4_8_that_the_rules_read_is_told() -> None:
    """A rule may know several vocabularies: of each group one name is enough."""
    rules = (FOLDER.parent / "prometheus" / "rules" / "normalize.yml").read_text()
    read = set(re.findall(r"DCGM_FI_(?:DEV|PROF)_[A-Z0-9_]+", rules))
    assert len(read & set(fields(PROFILING))) >= 20
