"""SIGTERM, SIGHUP and SIGUSR1: the program ends, or goes on, as it would have without; its run is preempted."""

from pathlib import Path

import pytest

from tests.run.support import events, losses, python, run_folders, run_json

PROGRAM = """
import faulthandler, os, signal, sys, threading, time
monitored = sys.argv[1] == "1"
number = getattr(signal, sys.argv[2])
if monitored:
    import trainvitals as tv
calls = []
def mine(signum, frame):
    calls.append(signum)
def start():
    global run
    if monitored:
        run = tv.start("signals")
def steps(count):
    for _ in range(count):
        if monitored:
            with run.step():
                pass
            run.log(loss=1.0)
def hit():
    os.kill(os.getpid(), number)
    time.sleep(0.01)
{body}
steps(2)
print("over", calls, flush=True)
"""
# What the program does -> the run's status, where it is monitored.
BODIES = {
    "start(); steps(3); hit()": "preempted",
    "start(); hit()": "killed at once or preempted",
    "signal.signal(number, mine); start(); steps(3); hit()": "preempted",
    "start(); signal.signal(number, mine); steps(3); hit()": "preempted",
    "start(); steps(3); signal.signal(number, mine); steps(200); hit(); hit()": "preempted",
    "signal.signal(number, signal.SIG_IGN); start(); steps(3); hit()": "finished",
    # Those who set their handler only where nobody has one, as Lightning does for a requeue.
    "start()\nif signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL: signal.signal(signal.SIGUSR1, mine)\n"
    "signal.signal(signal.SIGTERM, mine); steps(3); hit()": "preempted",
    # Those who call whoever was there before, which was nobody; they alone say what the signal does.
    "start(); before = signal.getsignal(number)\n"
    "def chained(*_):\n    mine(*_)\n    callable(before) and before(*_)\n"
    "signal.signal(number, chained); steps(3); hit()": "preempted",
    "start(); before = signal.getsignal(number)\n"
    "def chained(*_):\n    mine(*_)\n    callable(before) and before(*_)\n"
    "signal.signal(number, chained); hit(); steps(3); hit()": "preempted",
    "def bye(*_): sys.exit(7)\nsignal.signal(number, bye); start(); steps(3); hit()": "preempted",
    "def no(*_): raise RuntimeError('stop')\nsignal.signal(number, no); start(); steps(3); hit()": "preempted",
    # A handler that Python knows nothing of.
    "faulthandler.register(number, file=open(os.devnull, 'w')); start(); steps(3); hit()": "finished",
    "start(); steps(3); faulthandler.register(number, file=open(os.devnull, 'w')); hit()": "finished",
    "thread = threading.Thread(target=start); thread.start(); thread.join(); steps(3); hit()": "preempted",
    "start(); steps(3); time.sleep(0.02); child = os.fork()\nif not child: steps(3); hit()\n"
    "calls.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))": "finished",
    "signal.signal(number, mine); start(); steps(3); time.sleep(0.02); child = os.fork()\n"
    "if not child: hit(); os._exit(len(calls))\n"
    "calls.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))": "finished",
}  # fmt: skip


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1"])
@pytest.mark.parametrize("body", BODIES)
def test_a_signal_does_what_it_would_have_done(tmp_path: Path, body: str, name: str) -> None:
    script = PROGRAM.replace("{body}", body)
    alone = python(script, 0, name, journal=tmp_path / "none")
    done = python(script, 1, name, journal=tmp_path)
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
    # A traceback has our handler's frame in it.
    assert done.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]
    (run,) = run_folders(tmp_path)
    expected = BODIES[body]
    if expected.startswith("killed") and name == "SIGUSR1":
        assert events(run) == []
        return
    told, expected = run_json(run), expected.rpartition(" ")[2]
    assert told["status"] == expected
    if expected == "preempted":
        assert told["error"] in (name, "SystemExit: 7", "RuntimeError: stop")
        assert {event["signal"] for event in events(run, "signal")} == {name}


def test_a_signal_that_comes_while_it_starts_logs_or_ends_is_handled_once(tmp_path: Path) -> None:
    script = """
import os, signal, sys, threading, time
import trainvitals as tv
calls = []
signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))
ends = threading.Event()
sent = 0
def send():
    global sent
    while not ends.is_set():
        os.kill(os.getpid(), signal.SIGUSR1)
        sent += 1
        time.sleep(0.0005)
thread = threading.Thread(target=send)
thread.start()
for number in range(5):
    run = tv.start("storm")
    for step in run.data(range(60)):
        with run.step(), run.phase("forward"):
            pass
        run.log(loss=float(step))
        run.event("here")
    run.finish()
ends.set()
thread.join()
print(sent >= len(calls) > 0)
"""
    done = python(script, journal=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
    for run in run_folders(tmp_path):
        assert set(losses(run)) == set(range(1, 61))
        assert run_json(run)["status"] == ("preempted" if events(run, "signal") else "finished")
        assert len(events(run, "note")) == 60
