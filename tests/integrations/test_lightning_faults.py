"""Lightning with several ranks, and beside what goes wrong, in it and in monitoring."""

import logging
import signal
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
lightning = pytest.importorskip("lightning", reason="lightning is not installed: make trainers")

from lightning.pytorch.callbacks import Callback  # noqa: E402

from tests.integrations.journal import python, run_names, told  # noqa: E402
from tests.integrations.lit_models import Automatic, loader, trainer, weights  # noqa: E402
from trainvitals.integrations.lightning import TrainVitalsCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

PREEMPTED = """
import os, signal, sys
from pathlib import Path
from lightning.pytorch.callbacks import Callback
import trainvitals as tv
from tests.integrations.lit_models import Automatic, loader, trainer
from trainvitals.integrations.lightning import TrainVitalsCallback

class Preempt(Callback):
    def on_train_batch_start(self, trainer, module, batch, index):
        if index == 1:
            os.kill(os.getpid(), signal.SIGTERM)
    def on_train_batch_end(self, *_):
        print("ended a batch", flush=True)
    def teardown(self, *_):
        print("torn down", flush=True)

if "first" in sys.argv:
    tv.start("mine")
watching = [] if "plain" in sys.argv else [TrainVitalsCallback("mine")]
trainer(Path(sys.argv[1]), *watching, Preempt()).fit(Automatic(), loader())
"""


def test_two_ranks_write_a_file_each_of_one_run(journal, tmp_path):
    done = python(Path(__file__).parent / "lit_ranks.py", str(tmp_path), journal=journal)

    assert done.returncode == 0, done.stderr[-2000:]
    ranks = [told(journal, "ranks", rank) for rank in (0, 1)]
    assert [rank.steps() for rank in ranks] == [[1, 2, 3, 4]] * 2
    assert all(len(rank.values("loss")) == 4 for rank in ranks)
    assert (ranks[0].status, ranks[0].run["world_size"]) == ("finished", 2)
    assert [rank.events_of("end")[0]["status"] for rank in ranks] == ["finished"] * 2


def test_an_exception_ends_the_run_as_crashed_and_goes_on(journal, tmp_path):
    class Fails(Callback):
        def on_train_batch_end(self, trainer, *_):
            if trainer.global_step == 2:
                raise ValueError("no\nsuch thing")

    training = trainer(tmp_path, TrainVitalsCallback(), Fails())
    with pytest.raises(ValueError, match="such thing"):
        training.fit(Automatic(), loader())
    trainer(tmp_path, TrainVitalsCallback()).fit(Automatic(), loader(4))

    assert run_names(journal) == ["Automatic", "Automatic-2"]
    run = told(journal, "Automatic")
    assert (run.status, run.run["error"]) == ("crashed", "ValueError: such thing")
    assert run.steps() == [1, 2] and "save_checkpoint" not in vars(training)


@pytest.fixture(scope="module")
def preempted(tmp_path_factory):
    """How Lightning ends without monitoring."""
    script = tmp_path_factory.mktemp("script") / "preempted.py"
    script.write_text(PREEMPTED)
    return script, python(script, str(script.parent), "plain", journal=script.parent)


@pytest.mark.parametrize("how", ["alone", "first"])
def test_a_signal_ends_lightning_as_it_does_without_it_and_the_run_is_preempted(journal, tmp_path, preempted, how):
    script, plain = preempted
    done = python(script, str(tmp_path), how, journal=journal)

    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert told(journal, "mine").status == "preempted"


def test_a_journal_that_cannot_be_written_is_one_warning_and_the_same_weights(no_journal, tmp_path, caplog):
    plain, watched = Automatic(), Automatic()
    trainer(tmp_path).fit(plain, loader(), loader(4))
    with caplog.at_level(logging.WARNING, "trainvitals"):
        trainer(tmp_path, TrainVitalsCallback()).fit(watched, loader(), loader(4))

    assert torch.equal(weights(plain), weights(watched))
    assert len([record for record in caplog.records if record.name.startswith("trainvitals")]) == 1


def test_a_fault_in_monitoring_stays_in_monitoring(journal, tmp_path, monkeypatch, caplog):
    training = trainer(tmp_path, TrainVitalsCallback())
    monkeypatch.setattr("trainvitals.integrations.lightning.samples_in", lambda _: 1 / 0)
    training.fit(Automatic(), loader())

    assert training.global_step == 8
    assert len([record for record in caplog.records if record.name.startswith("trainvitals")]) == 1


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "trainvitals.integrations.lightning")
    with pytest.raises(ImportError, match="pip install lightning"):
        import trainvitals.integrations.lightning  # noqa: F401


def test_the_processes_signal_handlers_are_as_before(journal, tmp_path):
    before = signal.getsignal(signal.SIGUSR1)
    trainer(tmp_path, TrainVitalsCallback()).fit(Automatic(), loader(4))

    assert signal.getsignal(signal.SIGUSR1) == before
