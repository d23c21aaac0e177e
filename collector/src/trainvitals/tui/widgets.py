"""A panel of lines: only those that changed are drawn again.

panel.show([(("GPU 0", ""), ("!!", "bad"))])
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from trainvitals.tui.lines import STYLES, Line
from trainvitals.tui.text import ascii_only


class Panel(Widget):
    COMPONENT_CLASSES: ClassVar[set[str]] = set(STYLES)

    def __init__(self, name: str, *, is_ascii: bool) -> None:
        super().__init__(id=name)
        self._is_ascii = is_ascii
        self._lines: Sequence[Line] = ()
        self._looks: dict[str, Style] = {}

    def show(self, lines: Sequence[Line]) -> None:
        before, self._lines = self._lines, lines
        if len(lines) != len(before):
            self.styles.height = len(lines)
            self.refresh()
            return
        changed = [Region(0, at, self.size.width, 1) for at, line in enumerate(lines) if line != before[at]]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        if y >= len(self._lines):
            return Strip.blank(self.size.width)
        return Strip([self._segment(*piece) for piece in self._lines[y] if piece[0]])

    def notify_style_update(self) -> None:
        self._looks.clear()
        super().notify_style_update()

    def _segment(self, text: str, style: str) -> Segment:
        if style not in self._looks:
            self._looks[style] = self.get_component_rich_style(style) if style else self.rich_style
        return Segment(ascii_only(text) if self._is_ascii else text, self._looks[style])
