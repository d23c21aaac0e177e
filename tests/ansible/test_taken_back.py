"""A release, or only its knobs, by which a machine does not come up: what ran before runs again, and that is said."""

from pathlib import Path

from tests.ansible import local

# Up, but by knobs that are bad, or of a release that is.
DOCKER = """case "$*" in
*trainvitals.source=*) echo sha256:1 ;;
*" up "*) ! grep -q bad .env ;;
esac"""


def applied(folder: Path, *, release: str, **knobs: str) -> tuple[str, dict[str, str]]:
    """Where r1 was healthy: what is said, and each .env that is there then."""
    for name in ("r1", "r2"):
        (folder / "releases" / name / "compose").mkdir(parents=True)
        (folder / "releases" / name / ".source").write_text("1\n")
        (folder / "releases" / name / "compose" / "compose.yaml").touch()
    for name, text in knobs.items():
        place, _, kind = name.partition("_")
        (folder / "releases" / place / "compose" / (".env.before" if kind else ".env")).write_text(text)
    (folder / "healthy").symlink_to("releases/r1")
    path = local.program(folder / "bin", "docker", DOCKER)
    done = local.played(folder, [local.role("stack", "apply")], path=path, stack_home=str(folder),
                        stack_wanted={"release": release}, stack_found={"healthy": "r1"},
                        stack_health_seconds=5)  # fmt: skip
    left = {str(file.relative_to(folder / "releases")): file.read_text() for file in folder.glob("releases/*/*/.env*")}
    return " ".join(done.stdout.split()), left


def test_knobs_that_it_does_not_come_up_by_are_taken_back(tmp_path: Path) -> None:
    told, left = applied(tmp_path, release="r1", r1="bad", r1_before="good", r2="")
    assert "not everything is healthy" in told
    assert "The knobs of before count, and it runs again." in told
    assert left == {"r1/compose/.env": "good", "r2/compose/.env": ""}


def test_a_release_that_does_not_come_up_gives_way_to_the_one_before(tmp_path: Path) -> None:
    told, left = applied(tmp_path, release="r2", r1="good", r2="bad", r2_before="older")
    assert "The release before, r1, runs again." in told
    assert left["r1/compose/.env"] == "good"
    assert left["r2/compose/.env"] == "bad"


def test_where_nothing_was_kept_nothing_is_started_in_its_place(tmp_path: Path) -> None:
    told, _ = applied(tmp_path, release="r1", r1="bad", r2="")
    assert "not everything is healthy" in told
    assert "runs again" not in told
    assert "Nor is what ran before" not in told


def test_knobs_by_which_it_came_up_are_not_taken_back_later(tmp_path: Path) -> None:
    told, left = applied(tmp_path, release="r1", r1="good", r1_before="older", r2="")
    assert "failed=0" in told
    assert left == {"r1/compose/.env": "good", "r2/compose/.env": ""}
