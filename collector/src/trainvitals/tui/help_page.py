"""The help in place of the rest: every key, every sign, in plain words."""

from trainvitals.tui.lines import Line, line

KEYS = (
    ("q, Ctrl-C", "quit"),
    ("↑ ↓, space", "another GPU (j and k too): ▶ marks that of graphs and processes"),
    ("← →", "another run"),
    ("/", "filter GPUs, runs and findings by a text; Esc shows all again"),
    ("p", "pause: the screen stands still, the history goes on"),
    ("r", "reset the history: graphs begin anew"),
    ("s", "save the history and the readings of now to a file, and say where"),
    ("?, h, F1", "this help"),
    ("Ctrl-Z", "to the shell; `fg` comes back"),
)
SIGNS = (
    ("!!", "bad", "a page: somebody should look now"),
    ("! ", "warn", "a ticket: within a working day"),
    ("i ", "", "to know"),
    ("- ", "dim", "not known: never shown as 0"),
)
LIMITS = ("Memory is marked above 90 %, heat above 80°C and within 5°C of the device's",
          "own limit, the top of its graph. Utilisation and power are not marked: what is",
          "wrong with them stands among the findings.", "",
          "Readings are those of the agent that the first line names. Where none answers,",
          "this process takes them itself, until one does.")  # fmt: skip


def lines() -> list[Line]:
    head = [line(("trainvitals top", "title"), ("   any key goes back", "dim")), ()]
    keys = [line((f"  {key:<12}", "key"), f" {words}") for key, words in KEYS]
    signs = [line((f"  {sign:<12}", style), f" {words}") for sign, style, words in SIGNS]
    return [*head, *keys, (), *signs, (), *(line(f"  {words}") for words in LIMITS)]
