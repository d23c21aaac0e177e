"""A line of the screen: pieces of text, each with the name of a style that app.tcss gives a look.

row(("GPU 0", ""), ("!!", "bad"))  ->  (("GPU 0", ""), ("!!", "bad"))
"""

from collections.abc import Iterable, Sequence

from trainvitals.tui import text

Piece = tuple[str, str]
Line = tuple[Piece, ...]
STYLES = ("title", "dim", "good", "warn", "bad", "key", "chosen")


def line(*pieces: Piece | str) -> Line:
    return tuple((piece, "") if isinstance(piece, str) else piece for piece in pieces)


def width(pieces: Line) -> int:
    return sum(text.width(piece) for piece, _ in pieces)


def fit(pieces: Line, cells: int) -> Line:
    """Exactly so wide."""
    found: list[Piece] = []
    left = cells
    for piece, style in pieces:
        wide = text.width(piece)
        if wide > left:
            return (*found, (text.fit(piece, left), style))
        found.append((piece, style))
        left -= wide
    return (*found, (" " * left, "")) if left else tuple(found)


def rule(title: Sequence[Piece], cells: int) -> Line:
    """`─ Run demo-gpt ──────────`"""
    head = line(("─ ", "dim"), *title, " ")
    return fit(line(*head, ("─" * max(0, cells - width(head)), "dim")), cells)


def between(left: Line, right: Line, cells: int) -> Line:
    """One at each end; what is at the right is kept where both do not fit."""
    room = max(0, cells - width(right))
    return fit((*fit(left, room), *right), cells)


def beside(left: Sequence[Line], right: Sequence[Line], left_cells: int, cells: int) -> list[Line]:
    """Two columns, with a blank between."""
    empty: Line = ()
    rows = max(len(left), len(right))
    pairs = zip(_filled(left, rows, empty), _filled(right, rows, empty), strict=True)
    return [(*fit(one, left_cells - 1), (" ", ""), *fit(other, cells - left_cells)) for one, other in pairs]


def _filled(lines: Sequence[Line], rows: int, empty: Line) -> Iterable[Line]:
    return [*lines, *[empty] * (rows - len(lines))]


def bar(share: float | None, cells: int, style: str) -> Line:
    """`━━━━━━╸───`; no more than the thin line where the share is not known."""
    halves = 0 if share is None else round(min(1.0, max(0.0, share)) * cells * 2)
    filled = "━" * (halves // 2) + "╸" * (halves % 2)
    return ((filled, style), ("─" * (cells - len(filled)), "dim"))
