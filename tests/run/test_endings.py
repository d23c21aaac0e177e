"""How a run ends is told as it was, and the program ends as it would have without: same exit code, same words."""

import json
from pathlib import Path
from typing import Any

import pytest

import trainvitals as tv
from tests.run.support import events, lines, losses, python, run_folders, run_json

LOOP = """
import atexit, os, signal, sys, threading
import trainvitals as tv
if {monitored}:
    run = tv.start("end", planned_steps=3)
else:
    class Nothing:
        __enter__ = lambda self: self
        __exit__ = lambda self, *_: None
        def __getattr__(self, name): return lambda *_, **__: self
        def data(self, loader): return loader
    run = Nothing()
class Bad:
    def __str__(self): raise ValueError("no words")
def loop(body=None, steps=3):
    for number in run.data(range(steps)):
        with run.step():
            if body and number == 2:
                body()
        run.log(loss=float(number))
"""
# The rest of the program -> its exit code, and what run.json says.
ENDS = {
    "loop(); run.finish()": (0, "finished", None),
    "loop()": (0, "finished", None),
    "loop(); run.finish(); run.finish('crashed'); run.log(a=1); run.event('late')": (0, "finished", None),
    "with run: loop()": (0, "finished", None),
    "loop(lambda: 1 / 0)": (1, "crashed", "ZeroDivisionError: division by zero"),
    "loop()\nraise RuntimeError('first line\\n\\nlast line\\n')": (1, "crashed", "RuntimeError: last line"),
    "with run:\n    loop()\n    raise RuntimeError('out of memory')": (1, "crashed", "RuntimeError: out of memory"),
    "try:\n    with run: loop(lambda: 1 / 0)\nexcept ZeroDivisionError: pass":
        (0, "crashed", "ZeroDivisionError: division by zero"),
    "try: loop(lambda: 1 / 0)\nexcept ZeroDivisionError: pass\nrun.finish()": (0, "finished", None),
    "try: loop(lambda: 1 / 0)\nexcept ZeroDivisionError: pass\nloop()": (0, "finished", None),
    "def bad(): raise type('Odd', (Exception,), {{'__str__': Bad.__str__}})\nloop(bad)": (1, "crashed", "Odd"),
    "def bad(): sys.exit(3)\nloop(bad)": (3, "crashed", "SystemExit: 3"),
    "def bad(): sys.exit('no data')\nloop(bad)": (1, "crashed", "SystemExit: no data"),
    "loop(lambda: sys.exit(0))": (0, "finished", None),
    "loop(); sys.exit(3)": (3, "crashed", "SystemExit: 3"),
    "loop(); sys.exit()": (0, "finished", None),
    "loop(); sys.exit(False)": (0, "finished", None),
    "loop(); sys.exit('')": (1, "crashed", "SystemExit"),
    # An array of several elements is neither true nor false.
    "class Array(list):\n    def __bool__(self): raise ValueError('ambiguous')\n"
    "with run:\n    loop(); sys.exit(Array([1, 2]))": (1, "crashed", "SystemExit: [1, 2]"),
    "class Odd(RuntimeError):\n    def __bool__(self): raise ValueError('ambiguous')\n"
    "sys.excepthook = lambda *_: print('mine')\nloop()\nraise Odd('x')": (1, "crashed", "Odd: x"),
    "thread = threading.Thread(target=sys.exit, args=(3,)); thread.start(); thread.join(); loop()":
        (0, "finished", None),
    "sys.excepthook = lambda *_: print('mine')\nloop()\nraise RuntimeError('after the loop')":
        (1, "crashed", "RuntimeError: after the loop"),
    "with run:\n    loop(); sys.exit(3)": (3, "crashed", "SystemExit: 3"),
    "def bad(): raise KeyboardInterrupt\nloop(bad)": (-2, "preempted", "KeyboardInterrupt"),
    "loop(); os.kill(os.getpid(), signal.SIGINT)": (-2, "preempted", "KeyboardInterrupt"),
    "def steps():\n    with run:\n        for number in range(9): yield number\n"
    "for number in steps():\n    if number == 2: break": (0, "finished", None),
    "atexit.register(lambda: run.finish('crashed', 'by myself'))\nloop()": (0, "crashed", "by myself"),
    "atexit.register(lambda: run.log(loss=9.0))\nloop()": (0, "finished", None),
    "class Late:\n    def __del__(self): run.log(loss=9.0); run.finish()\nlate = Late()\nloop()": (0, "finished", None),
    "thread = threading.Thread(target=lambda: 1 / 0); threading.excepthook = lambda _: None\n"
    "thread.start(); thread.join(); loop()": (0, "finished", None),
    "sys.excepthook = lambda *_: print('mine')\nloop(lambda: 1 / 0)":
        (1, "crashed", "ZeroDivisionError: division by zero"),
    "import asyncio\nasync def main():\n    loop(); await asyncio.sleep(0); 1 / 0\nasyncio.run(main())":
        (1, "crashed", "ZeroDivisionError: division by zero"),
    "signal.signal(signal.SIGTERM, lambda *_: run.finish())\nloop(lambda: os.kill(os.getpid(), 15))":
        (0, "preempted", "SIGTERM"),
    "os._exit(5)": (5, "running", None),
    "try: sys.exit(2)\nexcept SystemExit: pass\nloop()": (0, "finished", None),
    "try: sys.exit(2)\nexcept SystemExit: pass\nloop(); sys.exit(3)": (3, "crashed", "SystemExit: 3"),
    "def end(): sys.exit('no data')\nloop(end)": (1, "crashed", "SystemExit: no data"),
    "loop(); sys.exit(256)": (0, "finished", None),
    "loop(); sys.exit((1, 2))": (1, "crashed", "SystemExit: (1, 2)"),
}  # fmt: skip


@pytest.mark.parametrize("rest", ENDS)
def test_a_program_ends_as_it_would_have_and_its_run_says_how(tmp_path: Path, rest: str) -> None:
    code, status, error = ENDS[rest]
    script = LOOP.replace("{{", "{").replace("}}", "}") + rest.replace("{{", "{").replace("}}", "}")
    alone = python(script.replace("{monitored}", "False"), journal=tmp_path / "none")
    done = python(script.replace("{monitored}", "True"), journal=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert done.returncode == code
    (run,) = run_folders(tmp_path)
    told = run_json(run)
    assert (told["status"], told.get("error")) == (status, error)
    assert [event["status"] for event in events(run, "end")] == ([] if status == "running" else [status])
    assert bool(told["end"]) == (status != "running")
    assert set(losses(run)) <= {1, 2, 3, 4, 5, 6} and not any("a" in line for line in lines(run))


def test_what_is_logged_at_the_interpreters_end_is_still_kept(tmp_path: Path) -> None:
    """A hook that was registered after the run's start is called before the run ends."""
    python("import atexit, trainvitals as tv; run = tv.start('x'); atexit.register(lambda: run.log(last=1))",
           journal=tmp_path)  # fmt: skip
    (run,) = run_folders(tmp_path)
    assert lines(run)[-1]["last"] == 1 and run_json(run)["status"] == "finished"


def test_an_exception_is_not_kept_with_all_that_its_frames_hold(tmp_path: Path) -> None:
    """A trainer that meets an out-of-memory error frees what it can and goes on: nothing may be held for it."""
    script = """
import gc, json, weakref
import trainvitals as tv
class Tensor: pass
def step():
    global big
    tensor = Tensor()
    big = weakref.ref(tensor)
    raise MemoryError
run = tv.start("oom")
gc.disable()
try:
    with run.step():
        step()
except MemoryError:
    pass
freed = [big() is None]
def batches():
    for _ in range(2):
        yield Tensor()
for batch in run.data(batches()):
    big = weakref.ref(batch)
    del batch
    freed.append(big() is None)
print(json.dumps(freed))
"""
    assert json.loads(python(script, journal=tmp_path).stdout) == [True, True, True]


@pytest.mark.parametrize(
    ("given", "kept"),
    [(("preempted", "SIGTERM"), ("preempted", "SIGTERM")), (("completed",), ("finished", None)),
     (("failed",), ("crashed", "failed")), (("done", "no memory"), ("crashed", "no memory")),
     ((None,), ("finished", None))],
)  # fmt: skip
def test_a_run_ends_in_a_word_that_readers_know(
    tmp_path: Path, given: tuple[Any, ...], kept: tuple[str, str | None], caplog: pytest.LogCaptureFixture
) -> None:
    run = tv.start("x", dir=tmp_path)
    run.finish(*given)
    told = run_json(*run_folders(tmp_path))
    assert (told["status"], told.get("error")) == kept
    assert [record for record in caplog.records if "say finished, crashed, preempted" in record.message] == [
        *caplog.records
    ]
    assert len(caplog.records) == (given[0] not in ("preempted",))
