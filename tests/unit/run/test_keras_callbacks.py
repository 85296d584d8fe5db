"""Callbacks of Keras are told of a run by the protocol that Keras has."""

import csv

import pytest

from tests.support.events import pretraining, sampling
from tfbnn.run import keras_callbacks
from tfbnn.run.events import Look
from tfbnn.run.keras_callbacks import NAMES
from tfbnn.run.options import FitOptions
from tfbnn.run.progress import Notifier


class Protocol:
    """A callback that takes down what Keras 3 calls."""

    def __init__(self):
        self.calls = []

    def set_params(self, params):
        self.params = params

    def set_model(self, model):
        self.model = model

    def on_train_begin(self, logs=None):
        self.calls.append("begin")

    def on_epoch_begin(self, epoch, logs=None):
        self.calls.append(("epoch", epoch))

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append((epoch, logs))

    def on_train_end(self, logs=None):
        self.calls.append("end")


def told(callback, *events):
    """Tells a callback of a run from its beginning to its end; the answers to the events."""
    notify = Notifier(0, [callback])
    answers = [notify(event) for event in events]
    notify.close()
    return answers


AT_100 = sampling("sampling", 40).after(Look(100, 1.2, 80.0))
LATER = sampling("sampling", 60).after(Look(100, 1.2, 80.0))
AT_200 = sampling("sampling", 80).after(Look(200, 1.02, 79.0))


def test_events_are_epochs_and_logs_hold_what_is_new():
    callback = Protocol()
    answers = told(callback, pretraining(50, -1.5), sampling("warmup", 10), AT_100, LATER)
    assert answers == [False] * 4
    assert callback.calls[0] == "begin" and callback.calls[-1] == "end"
    assert [call[1] for call in callback.calls if call[0] == "epoch"] == [0, 1, 2, 3]
    logs = [call[1] for call in callback.calls[1:-1] if call[0] != "epoch"]
    assert logs[0] == {"val_loss": 1.5}
    assert logs[1].keys() == {"acceptance_rate", "step_size", "num_divergent", "num_kept"}
    # R-hat and ESS are told once for each look, not again until the next.
    assert (logs[2]["rhat"], logs[2]["ess"]) == (1.2, 80.0)
    assert "rhat" not in logs[3] and "num_kept" in logs[3]


def test_what_is_not_known_is_left_out():
    callback = Protocol()
    told(callback, pretraining(50))
    assert callback.calls[2] == (0, {})


def test_nothing_is_begun_where_nothing_is_told():
    callback = Protocol()
    told(callback)
    assert callback.calls == []


def test_one_that_fails_is_named_and_told_no_more():
    class Broken(Protocol):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyError("loss")

    callback = Broken()
    with pytest.warns(RuntimeWarning, match=r"Broken object .* raised KeyError\('loss'\); the run"):
        told(callback, pretraining(50), pretraining(100))
    assert callback.calls == ["begin", ("epoch", 0)]


def test_plain_callables_come_first():
    class Both(Protocol):
        def __call__(self, event):
            self.calls.append(event["phase"])

    callback = Both()
    told(callback, pretraining(50))
    assert callback.calls == ["pretraining"]


def named(name, **attributes):
    return type(name, (Protocol,), attributes)()


@pytest.mark.parametrize(
    "callback, error, words",
    [
        (3, TypeError, "callable as callback"),
        (Protocol, TypeError, "callable as callback"),
        (named("ModelCheckpoint"), ValueError, "output=FOLDER keeps the draws"),
        (type("Mine", (type(named("ReduceLROnPlateau")),), {})(), ValueError, "learning_rate"),
        (named("EarlyStopping", restore_best_weights=True), ValueError, "restore_best_weights=F"),
        (named("EarlyStopping", monitor="val_accuracy"), ValueError, "val_loss, log_prob, accept"),
    ],
)
def test_what_could_not_do_its_work_is_refused_at_once(callback, error, words):
    with pytest.raises(error, match=words):
        FitOptions(callbacks=[callback])


def test_what_can_is_taken():
    FitOptions(callbacks=[Protocol(), named("Stopper", monitor="rhat"), print])


@pytest.mark.tensorflow
class TestCallbacksOfKeras:
    """The real ones; one that watches a number is told of the epochs that have it."""

    def test_a_table(self, tmp_path):
        keras = pytest.importorskip("keras")
        path = tmp_path / "run.csv"
        told(keras.callbacks.CSVLogger(path), pretraining(50, -1.5), AT_100, LATER)
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert rows[0].keys() == {"epoch", *NAMES}
        assert [row["val_loss"] for row in rows] == ["1.5", "NA", "NA"]
        assert [row["ess"] for row in rows] == ["NA", "80.0", "NA"]

    def test_curves_without_tensorboard_are_refused(self, tmp_path, monkeypatch):
        keras = pytest.importorskip("keras")
        monkeypatch.setattr(keras_callbacks, "find_spec", lambda name: None)
        folder = tmp_path / "curves"
        with pytest.raises(ImportError, match="pip install tensorboard"):
            keras_callbacks.check_callback(keras.callbacks.TensorBoard(folder))
        assert not folder.exists()

    def test_stopping_early(self):
        keras = pytest.importorskip("keras")
        callback = keras.callbacks.EarlyStopping("rhat", mode="min", patience=1)
        worse = AT_200.after(Look(200, 1.3, 90.0))
        events = sampling("warmup", 10), AT_100, LATER, LATER, LATER, worse
        assert told(callback, *events) == [False] * 5 + [True]
