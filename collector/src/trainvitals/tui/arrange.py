"""How many lines each part of the screen gets.

heights(24, gpus=8, verdict=1, run=3, below=3)  ->  Heights(verdict=1, gpus=9, graphs=6, run=3, below=3)
"""

from typing import NamedTuple

BANDS = 2
MOST_BAND = 10
MOST_BELOW = 14


class Heights(NamedTuple):
    verdict: int = 0
    gpus: int = 0
    graphs: int = 0
    run: int = 0
    below: int = 0


def heights(lines: int, *, gpus: int, verdict: int, run: int, below: int) -> Heights:
    """What matters most is served first; `gpus` are theirs, the others the lines that each could fill. The first and
    the last line of the screen are taken already."""
    left = max(0, lines - 2)
    got = dict.fromkeys(Heights._fields, 0)
    graphs = {0, *range(2 * BANDS, MOST_BAND * BANDS + 1, BANDS)}
    wishes = (("verdict", 1), ("gpus", 1 + min(gpus, 4)), ("run", run), ("below", 2), ("graphs", 3 * BANDS),
              ("gpus", 1 + min(gpus, 8)), ("verdict", verdict), ("below", 3), ("gpus", 1 + min(gpus, lines // 2)),
              ("below", min(below, 9)), ("graphs", MOST_BAND * BANDS), ("below", max(3, min(below, MOST_BELOW))),
              ("gpus", 1 + gpus))  # fmt: skip
    for part, wish in wishes:
        more = min(max(0, wish - got[part]), left)
        if part == "graphs":
            more = max(size for size in graphs if size <= got[part] + more) - got[part]
        got[part] += more
        left -= more
    return Heights(**got | {"below": got["below"] + left})
