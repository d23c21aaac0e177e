"""The dashboard: a picture comes in, the view of it goes out as lines; keys change the view.

Top(Options(is_ascii=False), make_feed).run(mouse=False)
"""

import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.reactive import reactive

from trainvitals.tui import saving, screen, text
from trainvitals.tui.feed import OWN, Heard
from trainvitals.tui.history import Frame
from trainvitals.tui.view import Asked, View
from trainvitals.tui.widgets import Panel

Tell = Callable[[Heard], None]
LOOK_SECONDS = 1.0
MESSAGE_SECONDS = 20.0
MOST_FILTER = 60


class Feeding(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Options:
    """`leave` is called as the end begins, `is_gone` tells that nobody sees the terminal any more."""

    interval: float = 1.0
    asked: Asked = field(default_factory=Asked)
    is_ascii: bool = False
    save_folder: Path = field(default_factory=Path)
    leave: Callable[[], None] = lambda: None
    is_gone: Callable[[], bool] = lambda: False


class Top(App[None]):
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "quit", priority=True), Binding("ctrl+z", "suspend_process"),
        Binding("q", "leave"), Binding("s", "save"), Binding("r", "reset"), Binding("p", "pause"),
        Binding("question_mark,h,f1", "help"), Binding("slash", "filter"), Binding("escape", "show_all"),
        Binding("down,space,j", "next_gpu(1)"), Binding("up,k", "next_gpu(-1)"),
        Binding("right", "next_run(1)"), Binding("left", "next_run(-1)"),
    ]  # fmt: skip
    view: reactive[View] = reactive(View, always_update=True, init=False)

    def __init__(self, options: Options, make_feed: Callable[[Tell], Feeding],
                 clock: Callable[[], float] = time.monotonic) -> None:  # fmt: skip
        super().__init__(ansi_color=True)
        self._options, self._clock = options, clock
        self._feed = make_feed(self.told)
        self._heard: Heard | None = None
        self._is_awake = threading.Lock()
        self._message_until = 0.0
        self._why_own = ""
        self._recalled: tuple[Frame, ...] = ()
        self.saved: list[str] = []
        self.set_reactive(Top.view, View(asked=options.asked, interval=options.interval))

    def compose(self) -> ComposeResult:
        for name in screen.NAMES:
            yield Panel(name, is_ascii=self._options.is_ascii)

    def on_mount(self) -> None:
        self.set_interval(LOOK_SECONDS, self._pass_time)
        self._feed.start()
        self.view = replace(self.view, now=self._clock())

    def on_unmount(self) -> None:
        self._feed.stop()

    def told(self, heard: Heard) -> None:
        """From any thread. However much is told before the screen comes to it, it is woken once."""
        self._heard = heard
        if self._is_awake.acquire(blocking=False):
            self.call_later(self._look)

    def _look(self) -> None:
        self._is_awake.release()
        heard = self._heard
        if heard is None:
            return
        if heard.picture:
            self.view.history.add(heard.picture, heard.at, self._options.interval)
        if heard.past is not self._recalled:
            self._recalled = heard.past
            self.view.history.recall(heard.past)
        if not self.view.paused:
            self._change(heard=heard)
        if heard.source == OWN and heard.problem != self._why_own:
            self._say(f"This process reads the GPUs itself: {heard.problem}")
        self._why_own = heard.problem if heard.source == OWN else ""

    def _change(self, **what: Any) -> None:
        now = self.view.now if self.view.paused else self._clock()
        self.view = replace(self.view, **{"now": now, **what})

    def _pass_time(self) -> None:
        """Draws when only time has passed: what was told last becomes old, a message has been read."""
        now, view = self._clock(), self.view
        if self._options.is_gone():
            self.exit()
        elif view.message and now > self._message_until:
            self._change(message="")
        elif not view.paused and now - view.heard.at > max(2.0, 2 * view.interval):
            self._change()

    def watch_view(self) -> None:
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        with suppress(NoMatches):
            for name, part in screen.draw(self.view, self.size.width, self.size.height).items():
                self.query_one(f"#{name}", Panel).show(part)

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a filter is typed every letter belongs to it; in the help every key goes back."""
        return action == "quit" or not (self.view.filtering or self.view.helping)

    def on_key(self, event: events.Key) -> None:
        if not (self.view.helping or self.view.filtering):
            return
        # Else the key would be looked up once more.
        event.prevent_default()
        if self.view.helping:
            self._change(helping=False)
        else:
            self._filter_by(event)

    def _filter_by(self, event: events.Key) -> None:
        before = self.view.filter
        if event.key in ("enter", "escape"):
            self._change(filtering=False, filter=before if event.key == "enter" else "")
        elif event.key in ("backspace", "ctrl+h"):
            self._change(filter=before[:-1])
        elif event.character and event.is_printable:
            self._filter_more(event.character)

    def on_paste(self, event: events.Paste) -> None:
        if self.view.filtering:
            self._filter_more(event.text)

    def _filter_more(self, letters: str) -> None:
        self._change(filter=text.clean(self.view.filter + letters)[:MOST_FILTER])

    def action_leave(self) -> None:
        self.exit()

    def action_next_gpu(self, by: int) -> None:
        self.view = self.view.with_next_gpu(by)

    def action_next_run(self, by: int) -> None:
        self.view = self.view.with_next_run(by)

    def action_filter(self) -> None:
        self._change(filtering=True)

    def action_show_all(self) -> None:
        self._change(filter="", message="")

    def action_pause(self) -> None:
        if self.view.paused:
            self._change(paused=False, now=self._clock(), heard=self._heard or self.view.heard)
        else:
            self._change(paused=True)

    def action_reset(self) -> None:
        self.view.history.clear()
        self._say("The history begins anew.")

    def action_help(self) -> None:
        self._change(helping=True)

    def action_save(self) -> None:
        """A disk that hangs holds up the thread that writes, not the screen."""
        lines = saving.lines(self.view)
        self._say("Saving …")
        threading.Thread(target=self._save, args=(lines,), daemon=True).start()

    def _save(self, lines: list[bytes]) -> None:
        said = saving.save(self._options.save_folder, lines)
        self.call_later(self._saved, said)

    def _saved(self, said: str) -> None:
        self.saved.append(said)
        self._say(said)

    def _say(self, words: str) -> None:
        self._message_until = self._clock() + MESSAGE_SECONDS
        self._change(message=text.clean(words))

    # The end

    def exit(self, *arguments: Any, **named: Any) -> None:
        self._options.leave()
        super().exit(*arguments, **named)

    def _fatal_error(self) -> None:
        """Textual's own words show what every variable holds, secrets too."""
        self.panic(Text(traceback.format_exc()))
