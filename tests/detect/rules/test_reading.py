import pytest

pytest.importorskip("yaml", reason="yaml is not installed")

from trainvitals.detect.rules.errors import RuleError
from trainvitals.detect.rules.reading import read
from trainvitals.detect.rules.spans import Span
from trainvitals.errors import SettingError

WHOLE = """\
rules:
  - name: Hot loss
    when: loss > 2 * target and step > 500
    for: 5 steps            # or 30s / 5m
    severity: page
    message: "Loss is {loss:.2f}"
    cooldown: 300s
  - name: Warm
    when: gpu.temperature_celsius > 80
    for: 5m
thresholds: {gpu_temperature: 85}
notify: [{slack: {url_file: /run/secrets/slack}}]
heartbeat: https://example.org/ping
quiet_hours: 22:00-07:00
"""


def refused(text):
    with pytest.raises(RuleError) as raised:
        read("alerts.yml", text)
    return raised.value


def test_rules_are_compiled_and_the_rest_is_given_through():
    contents = read("alerts.yml", WHOLE)
    hot, warm = contents.rules
    assert (hot.name, hot.severity, hot.lasting, hot.cooldown) == ("Hot loss", "page", Span(steps=5), 300.0)
    assert (warm.severity, warm.lasting, warm.cooldown, warm.scope) == ("ticket", Span(seconds=300.0), 300.0, "gpu")
    assert contents.sections == {
        "thresholds": {"gpu_temperature": 85},
        "notify": [{"slack": {"url_file": "/run/secrets/slack"}}],
        "heartbeat": "https://example.org/ping",
        "quiet_hours": "22:00-07:00",
    }


def test_a_list_of_rules_alone_will_do():
    contents = read("alerts.yml", "- {name: a, when: loss > 2}\n- {name: b, when: loss > 3}\n")
    assert [rule.name for rule in contents.rules] == ["a", "b"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "rules:\n", "rules: []\n", "[]", "thresholds:\n"])
def test_no_rules_are_no_fault(text):
    assert read("alerts.yml", text).rules == ()
    assert read("alerts.yml", text).sections == {}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("- name: Ü\n  when: loss >> 5\n", 2, 15),
        ("- name: a\n  when: 'loss >> 5'\n", 2, 16),
        ("- name: a\n  when: 'loss > ''5'\n", 2, 17),
        ('- name: a\n  when: "loss > 2 and\\tgpu.temp > 3"\n', 2, 28),
        ('- name: a\n  when: "l\\u00f6ss > > 3"\n', 2, 22),
        ("- name: a\n  when: loss > 2 or\n     'a' > 3\n", 3, 6),
        ("- name: a\n  when: >-\n     loss > 2\n     and step >\n     5 5\n", 5, 8),
        ("- name: a\n  when: |\n     loss > 2\n      or (step\n", 4, 15),
        ("- name: a\r\n  when: loss >> 5\r\n", 2, 15),
        ("- name: a\n  when: loss >\n", 2, 15),
        ("- {name: a, when: loss > 2, message: 'é {loss.x}'}", 1, 46),
        ("- name: a\n  when: `val/loss` > 2\n", 2, 9),
        ("- name: a\n when: loss\n", 2, 2),
        ("rules:\n- name: a\n  wen: loss > 2\n", 3, 3),
        ("rules:\n- name: a\n  when: loss > 2\n  severity: critical\n", 4, 13),
        ("ruls: []\n", 1, 1),
        ("a: b: c\n", 1, 5),
    ],
)
def test_an_error_names_line_and_column_of_the_file_and_points_there(text, line, column):
    error = refused(text)
    assert (error.line, error.column) == (line, column)
    words = str(error).splitlines()
    assert words[0].startswith(f"alerts.yml:{line}:{column}: ")
    assert words[1].strip() == text.splitlines()[line - 1].strip()
    assert words[2].index("^") == 4 + column - 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {name: a, when: loss > 2, for: 5}", "for: say of what: 5 steps, or 5s"),
        ("- {name: a, when: loss > 2, for: soon}", "for: 'soon' is no stretch of time: write it as 5 steps, 30s"),
        ("- {name: a, when: loss > 2, cooldown: 5 steps}", "cooldown: it counts seconds"),
        ("- {name: a, when: temperature_celsius > 2, for: 5 steps}", "for: a gpu has no steps: give a time"),
        ("- {name: a, when: temperature_celsius > 2, message: '{loss}'}", "which has no fields of a run"),
        ("- {name: a, when: loss > 2, severity: critical}", "choose one of page, ticket, info"),
        ("- {name: TrainingNonFinite, when: loss > 2}", "is what a detector of ours finds"),
        ("- {when: loss > 2}", "name: give it a name of 1 to 100 characters"),
        ("- {name: '', when: loss > 2}", "name: give it a name"),
        ("- {name: a}", "when: write when it holds, as `when: loss > 9`"),
        ("- {name: a, when: [loss]}", "when is text"),
        ("- {name: a, when: loss > 2, message: {loss: }}", "message is text: write it behind the colon, in quotes"),
        ("- loss > 2", "a rule has keys and values"),
        ("rules: loss > 2", "rules are a list: begin each with `- name: …`"),
        ("loss > 2", "the file has keys and values"),
        ("- {name: a, when: loss > 2, wen: 3}", "'wen' is no key of a rule: the nearest is 'when'"),
        ("- {name: a, when: loss > 2, when: loss > 3}", "'when' stands twice"),
        ("- {name: a, when: loss > 2}\n- {name: a, when: loss > 3}", "two rules are called 'a'"),
        ("- {name: a, when: `val/loss` > 2}", "or begins with a brace, a bracket or a backquote, stands in quotes"),
        ("a: &x [1]\nb: *x", "anchors and aliases are not read"),
        ("[" * 100_000, "nested deeper than 20"),
        ("{a: " * 100_000, "nested deeper than 20"),
        ("--- []\n--- []", "this is no YAML"),
        ("thresholds: {a: 2020-99-99}", "a value in it cannot be read"),
        ("thresholds: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("thresholds: {[1]: 2}", "this is no YAML"),
        ("\0", "it is no YAML"),
        ("rules:\n" + "".join(f"- {{name: r{at}, when: loss > 2}}\n" for at in range(201)), "more than 200 rules"),
        ("".join(f"- {{name: r{at}, when: 'mean(x{at}, 9999) > 2'}}\n" for at in range(11)), "hold more than 100,000"),
    ],
)
def test_what_cannot_be_used_is_said_with_the_fix(text, words):
    assert words in str(refused(text))


def test_what_others_say_of_their_sections_gets_its_place():
    contents = read("alerts.yml", WHOLE)
    error = contents.located(SettingError("thresholds: gpu_temperature", 85, "give less"))
    assert str(error).startswith("alerts.yml:11:31: thresholds: gpu_temperature: '85' cannot be used: give less")
    assert contents.located(SettingError("notify", 1, "x")).line == 12
    assert contents.located(SettingError("elsewhere", 1, "x")).line == 1


def test_a_long_line_is_not_shown():
    error = refused("- {name: a, when: loss > > 2, message: '" + "m" * 500 + "'}")
    assert "\n" not in str(error)
