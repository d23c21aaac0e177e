"""The first lines and the last: where this is from, how all stands in a sentence, and which keys there are."""

import time
from collections import Counter

from trainvitals.tui import levels, lines, text
from trainvitals.tui.feed import OWN
from trainvitals.tui.figures import known, span, whole
from trainvitals.tui.lines import Line, Piece
from trainvitals.tui.view import View

KEYS = (("q", "quit"), ("?", "help"), ("p", "pause"), ("s", "save"), ("r", "reset"), ("/", "filter"),
        ("↑↓", "GPU"), ("←→", "run"))  # fmt: skip
_SAMPLING = "reads GPUs itself"


def first(view: View, cells: int) -> Line:
    """What fits, in the order of its worth."""
    source = view.heard.source
    clock = lines.line(_clock(view))
    found = lines.line(("TrainVitals ", "title"), (f"{view.history.node}  ", ""))
    for words in (_SAMPLING if source == OWN else source, _host(view), _kinds(view)):
        piece = (f"{words}  ", "dim")
        if words and lines.width((*found, piece, *clock)) <= cells:
            found = (*found, piece)
    return lines.between(found, clock, cells)


def _host(view: View) -> str:
    host = view.picture.host
    used, total = host.get("memory_used_bytes"), host.get("memory_total_bytes")
    share = None if used is None or not total else 100 * used / total
    if share is None and "cpu_usage_percent" not in host:
        return ""
    percent = [known(value, lambda one: whole(one, "%")) for value in (host.get("cpu_usage_percent"), share)]
    return f"cpu {percent[0]}  memory {percent[1]}"


def _kinds(view: View) -> str:
    """`8 NVIDIA H100 80GB HBM3`"""
    kinds = Counter(gpu.name for gpu in view.picture.gpus if gpu.name)
    return ", ".join(f"{count} {name}" for name, count in kinds.items())


def _clock(view: View) -> Piece:
    at = view.picture.at
    stamp = "" if at is None else time.strftime("%H:%M:%S", time.localtime(at))
    if view.paused:
        return f" PAUSED at {stamp}", "warn"
    return (" LOST", "bad") if view.is_lost else (f" {stamp}", "")


def verdict(view: View, cells: int, height: int) -> list[Line]:
    """One sentence, in as many lines as there are for it."""
    level, words = _verdict(view)
    body = text.wrap(words, max(1, cells - 3), height)
    signs = [f"{level.sign} ", *["   "] * (len(body) - 1)]
    return [lines.fit(lines.line((sign, level.style), (words, level.style if level.sign.strip() != "✓" else "")), cells)
            for sign, words in zip(signs, body, strict=True)]  # fmt: skip


def verdict_height(view: View, cells: int) -> int:
    return len(text.wrap(_verdict(view)[1], max(1, cells - 3), 3))


def _verdict(view: View) -> tuple[levels.Level, str]:
    heard, picture = view.heard, view.picture
    if not heard.source:
        return levels.STATES["starting"], "Looking for an agent."
    if view.is_lost:
        since = span(view.now - (view.history.frames[-1].at if view.history.frames else heard.at))
        return levels.BAD, f"Nothing has been known for {since}: {heard.problem or 'no answer'}. It is tried again."
    if picture.at is None:
        return levels.STATES["starting"], "; ".join(("Waiting for the first readings.", *picture.problems))
    if picture.told:
        state, words = picture.told
        return levels.STATES.get(state, levels.WARN), words
    if picture.problems:
        return levels.BAD if picture.gpus else levels.WARN, "; ".join(picture.problems)
    return levels.STATES["well"], "Nothing wrong is known."


def last(view: View, cells: int) -> Line:
    """What is being typed, what is to be said, or the keys."""
    if view.filtering:
        return lines.fit(lines.line(("/", "key"), view.filter, ("_", "chosen"), ("  Enter keeps it, Esc shows all",
                                                                                   "dim")), cells)  # fmt: skip
    if view.message:
        return lines.fit(lines.line(view.message), cells)
    kept = [(f"/{view.filter} ", "warn")] if view.filter else []
    pairs = [piece for key, word in KEYS for piece in ((key, "key"), (f" {word}  ", "dim"))]
    return lines.fit(lines.line(*kept, *pairs), cells)
