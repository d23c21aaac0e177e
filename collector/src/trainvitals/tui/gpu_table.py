"""The table of GPUs: a row each, bars for what has an end, a sign and a word for what is wrong.

  GPU  utilisation      memory, GiB            temp       power state
▶   0  ━━━━━━━━━╸  97% ━━━━━━━╸──   62.1/79.6   61°C  612/700 W r0 demo-gpt
"""

from collections.abc import Sequence

from trainvitals.tui import levels, lines, text
from trainvitals.tui.figures import UNKNOWN, gib, known, whole
from trainvitals.tui.lines import Line, Piece
from trainvitals.tui.picture import Gpu

# All but the two bars, the name and the state.
_FIXED = 46
_STATE, _NAME, _CLOCK = 14, 24, 9
_WIDE = 100
_MOST_BAR = 20


def rows(gpus: Sequence[Gpu], chosen: int, users: dict[str, str], cells: int, height: int) -> list[Line]:
    """With its head; those around the chosen one where not all fit. `users`: what runs on a GPU, by its number."""
    shape = _Shape(cells, named=len({gpu.name for gpu in gpus if gpu.name}) > 1)
    first = _first(len(gpus), chosen, height - 1)
    shown = gpus[first : first + height - 1]
    head = shape.head(f"{first + 1}-{first + len(shown)} of {len(gpus)}" if len(shown) < len(gpus) else "state")
    return [head, *(shape.row(gpu, first + at == chosen, users) for at, gpu in enumerate(shown))]


def _first(count: int, chosen: int, room: int) -> int:
    return max(0, min(chosen - room // 2, count - room))


class _Shape:
    """How wide each column is."""

    def __init__(self, cells: int, named: bool) -> None:
        self._cells = cells
        self._clock = _CLOCK if cells >= _WIDE else 0
        self._name = _NAME if named and cells >= _WIDE else 11 if named else 0
        self._bar = max(5, min(_MOST_BAR, (cells - _FIXED - _STATE - self._name - self._clock) // 2))
        self._state = max(0, cells - _FIXED - self._name - self._clock - 2 * self._bar)

    def head(self, last: str) -> Line:
        bar = self._bar
        parts = ("  GPU  ", text.fit("name", self._name), text.fit("utilisation" if bar > 5 else "use", bar + 6),
                 text.fit("memory, GiB", bar + 15), text.fit("temp", 8),
                 text.fit("    power", 10), text.fit("   clock", self._clock), text.fit(last, self._state))  # fmt: skip
        return lines.fit(lines.line(*((part, "title") for part in parts)), self._cells)

    def row(self, gpu: Gpu, is_chosen: bool, users: dict[str, str]) -> Line:
        mark = lines.line(("▶" if is_chosen else " ", "chosen"), (f"{gpu.number:>4}  ", "chosen" if is_chosen else ""))
        cells = (*mark, (text.fit(gpu.name, self._name - 1) + " ", "") if self._name else ("", ""),
                 *self._utilization(gpu), *self._memory(gpu), *_temperature(gpu), _power(gpu),
                 *self._clock_now(gpu), *self._state_now(gpu, users.get(str(gpu.number), "")))  # fmt: skip
        return lines.fit(cells, self._cells)

    def _utilization(self, gpu: Gpu) -> Line:
        share, level = gpu.values.get("utilization_percent"), levels.utilization(gpu)
        words = text.right(known(share, lambda value: whole(value, "%")), 5)
        return (*lines.bar(_share(share), self._bar, level.style), (words + " ", ""))

    def _memory(self, gpu: Gpu) -> Line:
        share, level = gpu.values.get("memory_percent"), levels.memory(gpu)
        used, total = (known(gpu.values.get(f"memory_{name}_mb"), gib) for name in ("used", "total"))
        words = UNKNOWN if used == total == UNKNOWN else f"{used}/{total}"
        return (*lines.bar(_share(share), self._bar, level.style), (text.right(words, 12), ""),
                (f" {level.sign}", level.style))  # fmt: skip

    def _clock_now(self, gpu: Gpu) -> Line:
        words = known(gpu.values.get("clock_hertz_sm"), lambda value: whole(value / 1e6, " MHz"))
        return ((text.right(words, self._clock - 1) + " ", ""),) if self._clock else ()

    def _state_now(self, gpu: Gpu, user: str) -> Line:
        level, words = levels.state(gpu)
        if words:
            return ((text.fit(f"{level.sign} {words}", self._state), level.style),)
        idles = gpu.values.get("utilization_percent") == 0.0
        return ((text.fit(user or ("idle" if idles else ""), self._state), "dim"),)


def _temperature(gpu: Gpu) -> Line:
    level = levels.temperature(gpu)
    words = known(gpu.values.get("temperature_celsius"), lambda value: whole(value, "°C"))
    return ((text.right(words, 5), level.style if level.sign.strip() else ""), (f"{level.sign} ", level.style))


def _power(gpu: Gpu) -> Piece:
    now, limit = gpu.values.get("power_draw_watts"), gpu.values.get("power_limit_watts")
    words = known(now, whole) + ("" if limit is None else f"/{whole(limit)}")
    return (text.right(words + ("" if now is None else " W"), 9) + " ", "")


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100
