"""One of the ranks of a Trainer over gloo, as torchrun starts it: `hf_ranks.py FOLDER`."""

import sys
from pathlib import Path

from tests.integrations.hf_models import trainer
from trainvitals.integrations.transformers import TrainVitalsCallback

trainer(Path(sys.argv[1]), TrainVitalsCallback("ranks"), eval_strategy="steps", eval_steps=3).train()
