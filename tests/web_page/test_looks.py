"""How it looks and who can use it: dark and light, at 400 pixels, with a screen reader, with nothing or a great deal to
show. Pictures of all of it are left in .cache/screens."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.collector.support import Served, fake_gpus, serving
from tests.web_page.screen import Screen
from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles

Opens = Callable[..., Screen]
NARROW = {"viewport": {"width": 400, "height": 900}}
VIEWS = {"overview": "", "training": "?view=training&run=spiky&run=calm", "system": "?view=system&range=300",
         "alerts": "?view=alerts"}  # fmt: skip
CHARTS = {"training": ("memory", "loss"), "system": ("cpu", "use")}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("scheme", "context"), [("light", {}), ("dark", {}), ("dark", NARROW)],
                         ids=["light", "dark", "narrow"])  # fmt: skip
def test_everybody_can_use_it(opens: Opens, view: str, scheme: str, context: dict[str, dict[str, int]]) -> None:
    screen = opens(VIEWS[view], color_scheme=scheme, **context)
    for chart in CHARTS.get(view, ()):
        screen.drawn(chart)
    screen.picture(f"{view}-{scheme}-{'narrow' if context else 'wide'}")
    assert not screen.scrolls_sideways()
    assert screen.barriers() == []


def background(screen: Screen) -> str:
    return str(screen.ask("getComputedStyle(document.body).backgroundColor"))


def test_dark_and_light_follow_the_system_until_somebody_chooses(opens: Opens) -> None:
    screen = opens(color_scheme="dark")
    dark = background(screen)
    screen.page.emulate_media(color_scheme="light")
    light = background(screen)
    assert dark != light
    screen.page.keyboard.press("d")
    assert background(screen) == dark
    screen.page.reload()
    screen.wait_for_reading()
    assert background(screen) == dark


def test_dialogs_can_be_used_by_everybody_too(opens: Opens) -> None:
    screen = opens(color_scheme="dark", **NARROW)
    screen.page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(screen.page.locator("#help-dialog")).to_be_visible()
    screen.picture("help")
    assert screen.barriers() == []


@pytest.mark.parametrize("context", [{}, NARROW], ids=["wide", "narrow"])
def test_what_opens_upon_the_page_can_be_used_too(opens: Opens, context: dict) -> None:
    screen = opens("?view=training&run=spiky", **context)
    screen.drawn("loss")
    screen.press("Loss as a table")
    screen.page.locator(".events summary").click()
    for menu in ("More metrics", "Export"):
        summary = screen.page.locator("#training .menu summary", has_text=menu)
        summary.click()
        screen.picture(f"open-{menu.split()[0].lower()}-{'narrow' if context else 'wide'}")
        assert screen.barriers() == []
        summary.click()


def test_the_keyboard_goes_through_the_page_in_the_order_of_reading(opens: Opens) -> None:
    screen = opens()
    expect(screen.page.locator("#gpu-tiles a").first).to_be_visible()
    names = []
    for _ in range(8):
        screen.page.keyboard.press("Tab")
        names.append(screen.ask("document.activeElement.id || document.activeElement.className"))
    assert names == ["skip", "to-overview", "to-training", "to-system", "to-alerts", "theme", "help", names[7]]
    assert screen.ask("document.querySelector('main').contains(document.activeElement)")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Sixteen GPUs, and a run of sixty-four ranks."""
    root = tmp_path_factory.mktemp("crowded")
    files = []
    for rank in range(64):
        claimed = runs.claim(root, "many", rank=rank, world_size=64, run_id="many", environ={})
        files.append(RunFiles(claimed, "many", planned_steps=100))
        for step in range(1, 31):
            files[-1].metrics.append({"step": step, "loss": 3 / step, "step_duration_seconds": 0.3,
                                      "forward_seconds": 0.1 + 0.1 * (rank == 41)})  # fmt: skip
    with serving(root, "--simulate", "16", "--interval", "0.5") as served:
        yield served
    for each in files:
        each.end("finished")


@pytest.mark.parametrize("context", [{}, NARROW], ids=["wide", "narrow"])
def test_sixteen_gpus_and_sixty_four_ranks_find_their_place(opens: Opens, crowded: Served, context: dict) -> None:
    screen = opens(address=crowded.address, **context)
    expect(screen.page.locator("#gpu-tiles > li")).to_have_count(16)
    width = "narrow" if context else "wide"
    screen.picture(f"crowded-overview-{width}")
    assert not screen.scrolls_sideways()
    assert screen.barriers() == []
    screen.page.goto(f"{crowded.address}/?view=training")
    expect(screen.page.locator(".ranks tbody tr")).to_have_count(64)
    screen.see(".ranks .slowest", "rank 41")
    screen.see(".ranks tbody tr", "41 slowest")
    screen.picture(f"crowded-training-{width}")
    assert not screen.scrolls_sideways()
    assert screen.barriers() == []
    screen.page.goto(f"{crowded.address}/?view=system&range=300")
    screen.drawn("use")
    screen.picture(f"crowded-system-{width}")
    assert not screen.scrolls_sideways()
    assert screen.barriers() == []


@pytest.mark.parametrize("width", [400, 1280, 1440])
def test_what_decides_which_rank_is_slow_is_seen_without_scrolling(opens: Opens, crowded: Served, width: int) -> None:
    screen = opens("?view=training", address=crowded.address, viewport={"width": width, "height": 900})
    screen.see(".ranks tbody tr", "41 slowest")
    screen.picture(f"ranks-{width}")
    room, bar = (screen.page.locator(place).first.bounding_box() for place in (".ranks .scroll", ".ranks .rank-bar"))
    assert room and bar and bar["x"] + bar["width"] <= room["x"] + room["width"]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """No GPU, no run, nothing wrong but that."""
    folder = tmp_path_factory.mktemp("bare")
    with (
        fake_gpus(folder, "gpus 0") as (_, environ),
        serving(folder / "journal", "--interval", "0.5", env=environ) as it,
    ):
        yield it


@pytest.mark.parametrize("view", VIEWS)
def test_where_there_is_nothing_it_says_so(opens: Opens, bare: Served, view: str) -> None:
    screen = opens(f"?view={view}", address=bare.address)
    words = {"overview": "No run has written", "training": "No run has written", "system": "No GPU has told anything",
             "alerts": "There were none."}  # fmt: skip
    expect(screen.page.locator(f"#{view}")).to_contain_text(words[view])
    screen.picture(f"bare-{view}")
    assert screen.barriers() == []


def test_before_the_first_reading_it_waits_and_claims_nothing(opens: Opens, agent: Served) -> None:
    screen = opens()
    told = agent.snapshot() | {"timestamp": None, "gpus": [], "runs": [], "host": {}, "sources": {},
                               "verdict": {"state": "starting", "words": "Just started.", "first": "Just started.",
                                           "rest": ""}}  # fmt: skip
    screen.on_a_stage().tell(told)
    screen.see("#verdict", "Just started.")
    expect(screen.page.locator("#no-runs")).to_be_hidden()
    expect(screen.page.locator("#no-gpus")).to_be_hidden()
    screen.picture("starting")
