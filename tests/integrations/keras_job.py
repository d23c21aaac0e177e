"""All that is tried with Keras on one backend, as a process starts with one: `KERAS_BACKEND=torch python keras_job.py
FOLDER` leaves journals in FOLDER and prints what it saw as JSON."""

import json
import sys
import time
from pathlib import Path

import keras
import numpy as np

import trainvitals as tv
from trainvitals.integrations.keras import TrainVitalsCallback

FOLDER = Path(sys.argv[1])
IS_TENSORFLOW = keras.backend.backend() == "tensorflow"
X = np.random.default_rng(1).random((32, 4), dtype="float32")
Y = X.sum(axis=1, keepdims=True)
seen = {}


def model(**compiled):
    keras.utils.set_random_seed(3)
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)], name="tiny")
    made.compile(**{"optimizer": keras.optimizers.SGD(0.05), "loss": "mse", "metrics": ["mae"], **compiled})
    return made


def watching(name, **more):
    return TrainVitalsCallback(name, dir=FOLDER, **more)


def fit(made, *callbacks, x=X, y=Y, **more):
    given = {"batch_size": 8, "epochs": 2, "shuffle": False, "verbose": 0}
    return made.fit(x, y, callbacks=list(callbacks), **given | more)


def weights(made):
    return [array.tolist() for array in made.get_weights()]


class Slow(keras.utils.PyDataset):
    """In the way of a loader without workers."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return X[:8], Y[:8]


def native(seconds, batches=6):
    """As the backend's own users give data: a DataLoader, or a tf.data pipeline of no known length."""
    if not IS_TENSORFLOW:
        import torch

        class Items(torch.utils.data.Dataset):
            def __len__(self):
                return 8 * batches

            def __getitem__(self, index):
                time.sleep(seconds / 8)
                return X[index % 32], Y[index % 32]

        return torch.utils.data.DataLoader(Items(), batch_size=8)
    import tensorflow as tf

    def generate():
        for _ in range(batches):
            time.sleep(seconds)
            yield X[:8], Y[:8]

    spec = tf.TensorSpec((8, 4)), tf.TensorSpec((8, 1))
    return tf.data.Dataset.from_generator(generate, output_signature=spec)


class Pause(keras.layers.Layer):
    """A step that takes 20 ms, compiled or not."""

    def call(self, inputs):
        if not IS_TENSORFLOW:
            time.sleep(0.02)
            return inputs
        import tensorflow as tf

        def wait(value):
            time.sleep(0.02)
            return value

        waited = tf.grad_pass_through(lambda value: tf.numpy_function(wait, [value], value.dtype))(inputs)
        return tf.ensure_shape(waited, inputs.shape)


def lasting():
    made = keras.Sequential([keras.Input((4,)), Pause(), keras.layers.Dense(1)])
    made.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse", jit_compile=False)
    return made


def plain_and_watched():
    plain, watched = model(), model()
    fit(plain, validation_data=(X, Y))
    callback = watching(None)
    history = fit(watched, callback, validation_data=(X, Y)).history
    left = [name for name in ("save", "save_weights") if name in vars(watched)]
    seen["same"] = {"plain": weights(plain), "watched": weights(watched), "history": history, "left": left,
                    "wrapped": watched.train_function.__qualname__.startswith("TrainVitals")}  # fmt: skip


def data():
    for kind, make in (("PyDataset", Slow), ("native", native)):
        for name, seconds in (("slow", 0.06), ("fast", 0.0)):
            fit(lasting(), watching(f"{name}-{kind}"), x=make(seconds), y=None, batch_size=None, epochs=1)


def nan():
    labels = Y.copy()
    labels[8:16] = float("nan")
    fit(model(), watching("nan"), y=labels, epochs=1)


def checkpoints():
    saving = keras.callbacks.ModelCheckpoint(str(FOLDER / "saved-{epoch}.keras"))
    fit(model(), watching("saved"), saving)


def rates():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    fit(model(optimizer=keras.optimizers.SGD(schedule)), watching("schedule"), epochs=1)


def mine():
    with tv.start("mine", dir=FOLDER) as run:
        made = model()
        for _ in range(2):
            fit(made, watching("other"), epochs=1)
        seen["mine"] = run.status


def several():
    made = model()
    fit(made, watching("several"), epochs=1)
    fit(made, watching("several", log_interval=2), epochs=1)


def together():
    if IS_TENSORFLOW:
        plain, watched = model(steps_per_execution=2), model(steps_per_execution=2)
        fit(plain, x=native(0, 6), y=None, batch_size=None)
        fit(watched, watching("together"), x=native(0, 6), y=None, batch_size=None)
        seen["together"] = weights(plain) == weights(watched)


class OwnStep(keras.Model):
    """Whoever replaces what does a batch is given what Keras would give."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(inputs)

    def make_train_function(self, force=False):
        def train_function(batches):
            seen["own"] = type(batches).__name__
            return {"loss": 0.5}

        self.train_function = train_function


def own_step():
    made = OwnStep()
    made.compile(optimizer="sgd", loss="mse")
    fit(made, watching("own"), x=native(0), y=None, batch_size=None, epochs=1, steps_per_epoch=1)


class Fails(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 2:
            raise OSError("the disk is gone")


def unwritable():
    blocked = FOLDER / "file"
    blocked.write_text("")
    made = model()
    fit(made, TrainVitalsCallback("none", dir=blocked / "journal"), validation_data=(X, Y))
    seen["unwritable"] = weights(made)


for part in (plain_and_watched, data, nan, checkpoints, rates, mine, several, together, own_step, unwritable):
    part()
print(json.dumps(seen))
fit(model(), watching("crashed"), Fails())
