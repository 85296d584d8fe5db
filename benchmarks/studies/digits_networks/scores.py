"""Accuracy and log predictive density of the digits that were held out, of networks and of rivals."""

import warnings

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import tfbnn
from benchmarks.studies.digits_networks.chains import digits, targets
from benchmarks.studies.repriorisation.chains import NOISE_SCALE

__all__ = ["rivals", "scores"]

NUM_MEMBERS, NUM_TREES = 10, 500
# Epochs of 32 rows for the members of the ensemble.
EPOCHS, LEARNING_RATE = 200, 3e-3


def scores(outputs):
    """Return a dict of scores of the outputs [C, S, n, 10] of sampled networks at all test images.

    A network's probabilities are those of the ten codes under its Gaussian noise, given that one of
    them is the target; those of the posterior are their mean over the networks.
    """
    _, (_, labels) = digits()
    flat = outputs.reshape(-1, *outputs.shape[2:])
    # The squares of outputs and, of all codes alike, of the codes cancel.
    each = log_softmax(flat.astype(float) / NOISE_SCALE**2, axis=-1)
    return of_log_probabilities(logsumexp(each, axis=0) - np.log(len(flat)), labels)


def of_log_probabilities(log_probabilities, labels):
    """Return the scores of log probabilities [n, 10] of the classes."""
    return {
        "accuracy": float(np.mean(log_probabilities.argmax(axis=1) == labels)),
        "log_predictive_density": float(np.mean(log_probabilities[np.arange(len(labels)), labels])),
    }


def rivals(case, quick=False):
    """Dict name -> scores of what was fitted to the same rows.

    Args:
        case: Whose network the ensemble has.
        quick: Whether to fit little.
    """
    (images, labels), (test, truth) = digits()
    found = {}
    for name, rival in {
        "logistic regression": LogisticRegression(max_iter=2000),
        f"forest of {NUM_TREES} trees": RandomForestClassifier(NUM_TREES, random_state=0),
    }.items():
        probabilities = rival.fit(images, labels).predict_proba(test)
        # Where no tree knows a class the forest says 0.
        log_probabilities = np.log(np.maximum(probabilities, 1.0 / NUM_TREES / 10.0))
        found[name] = of_log_probabilities(log_probabilities, truth)
    model = case.model
    model.fit_ensemble(
        case.inputs(images),
        targets(labels),
        num_members=2 if quick else NUM_MEMBERS,
        pretraining=tfbnn.Pretraining(
            epochs=2 if quick else EPOCHS, learning_rate=LEARNING_RATE, newton_iterations=0
        ),
        jit_compile=False,
        verbose=0,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The .* of this model are not sampled", UserWarning)
        outputs = model.predict_draws(case.inputs(test))
    found[f"ADAM ensemble, {case.key}"] = scores(outputs[None])
    return found
