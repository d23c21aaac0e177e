"""Text as it may stand on a terminal: harmless, of a known width, and in ASCII where nothing else can be shown.

clean("evil\\x1b[2Jname")   ->  "evil?[2Jname"
fit("gemma-qlora-7b", 8)  ->  "gemma-q…"
ascii_only("61°C ━━━╸──")  ->  "61 C ===---"
"""

import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from rich.cells import cell_len

MOST_LETTERS = 300
_ASCII: dict[str, str] = {
    "°": " ", "…": "~", "▶": ">", "✓": "+", "─": "-", "━": "=", "╸": "-", "↑": "^", "↓": "v", "←": "<", "→": ">",
}  # fmt: skip
_JOINING = frozenset({"Mn", "Mc", "Me", "Sk"})
# A graph's cell by how many of its eight dots are set.
_DENSITY = " ..::||##"


def clean(value: object) -> str:
    """What does not stand for itself in one or two cells, as controls, joiners and marks that turn the direction of
    writing, is a question mark."""
    text = str(value)
    return _clean(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…")


@lru_cache(maxsize=4096)
def _clean(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_harmless, unicodedata.normalize("NFC", text)))


def _harmless(letter: str) -> str:
    """Letters that join with their neighbours are as wide as each terminal thinks."""
    if letter.isspace():
        return " "
    joins = unicodedata.category(letter) in _JOINING or "\U0001f1e6" <= letter <= "\U0001f1ff"
    return (
        letter
        if (letter.isascii() and letter.isprintable()) or (letter.isprintable() and not joins and cell_len(letter))
        else "?"
    )


def width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


@lru_cache(maxsize=4096)
def fit(text: str, cells: int) -> str:
    """Exactly so wide: filled up with blanks, or cut with a sign that it was."""
    missing = cells - width(text)
    if missing >= 0:
        return text + " " * missing
    return cut(text, cells - 1) + "…" if cells > 0 else ""


def cut(text: str, cells: int) -> str:
    """The most that fits, filled up where half a letter would be left."""
    used = 0
    kept: list[str] = []
    for letter in text:
        used += width(letter)
        if used > cells:
            return "".join(kept) + " " * (cells - used + width(letter))
        kept.append(letter)
    return text


def right(text: str, cells: int) -> str:
    return fit(" " * (cells - width(text)) + text, cells)


def ascii_only(text: str, signs: Mapping[str, str] = _ASCII) -> str:
    """As wide as it was."""
    if text.isascii():
        return text
    return "".join(letter if letter.isascii() else signs.get(letter) or _nearest(letter) for letter in text)


def _nearest(letter: str) -> str:
    if "\u2800" <= letter <= "\u28ff":
        return _DENSITY[(ord(letter) - 0x2800).bit_count()]
    return "?" * cell_len(letter)


def wrap(text: str, cells: int, lines: int) -> list[str]:
    """Broken at blanks into so many lines at most; what is left over is cut off with a sign."""
    found: list[str] = []
    rest = text
    while rest and len(found) < lines - 1 and width(rest) > cells:
        at = cut(rest, cells + 1).rstrip(" ").rfind(" ") if " " in cut(rest, cells) else -1
        head = rest[:at] if at > 0 else cut(rest, cells).rstrip(" ")
        found.append(head)
        rest = rest[len(head) :].lstrip(" ")
    return [*found, fit(rest, cells).rstrip(" ")] if rest and lines > 0 else found
