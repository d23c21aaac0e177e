"""Two ranks of one fit over gloo: `python lit_ranks.py FOLDER`. Lightning starts the second by itself."""

import sys
import warnings
from pathlib import Path

from tests.integrations.lit_models import Automatic, loader, trainer
from trainvitals.integrations.lightning import TrainVitalsCallback

warnings.simplefilter("ignore")
two = trainer(Path(sys.argv[1]), TrainVitalsCallback("ranks"), devices=2, strategy="ddp")
two.fit(Automatic(), loader(8), loader(4))
