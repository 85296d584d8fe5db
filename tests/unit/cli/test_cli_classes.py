"""The command line on class labels: fit, predict, evaluate and what else takes a classifier."""

import json

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.builders import make_rows
from tests.support.commands import QUICK, check_refusal
from tests.support.tables import write_csv
from tfbnn.data.tables import read_table
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Bernoulli, Categorical

SPECIES = ("setosa", "versicolor, wild", "virginica")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, synthetic_ensemble):
    """Tables with labels as text and as numbers, and classifiers of random networks."""
    folder = tmp_path_factory.mktemp("classes")
    x = make_rows(60, 2, 1)[0]
    numbers = np.digitize(x[:, 0], np.quantile(x[:, 0], [0.3, 0.6]))[:, None]
    species, answers = np.array(SPECIES)[numbers], np.array(["no", "yes"])[numbers // 2]
    for name, labels in {"iris": species, "answers": answers}.items():
        write_csv(folder / f"{name}.csv", ["label", "a", "b"], x, labels=labels.T)
    np.savez(folder / "numbers.npz", a=x[:, 0], b=x[:, 1], label=numbers[:, 0] + 1)
    names = {"feature_names": ("a", "b"), "provenance": {"target_names": ["label"]}}
    for name, settings in {
        "iris": {"layer_sizes": (2, 4, 3), "likelihood": Categorical(), "classes": SPECIES} | names,
        "answers": {"likelihood": Bernoulli(), "classes": ("no", "yes")} | names,
        "two": {"layer_sizes": (2, 4, 2), "likelihood": Bernoulli()},
    }.items():
        BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / f"{name}.h5")
    return folder


def test_predict_categorical(run, folder):
    code, out, err = run("predict iris.h5 iris.csv -o out.csv --quantiles 0.1")
    assert (code, out, err) == (0, "", "")
    names = ["setosa", "versicolor, wild", "virginica"]
    expected = [f"p_{name}{ending}" for name in names for ending in ("", "_stddev", "_q0.1")]
    table = read_table(folder / "out.csv", labels=["class"])
    assert table.columns == tuple(expected)
    model, x = tfbnn.load(folder / "iris.h5"), read_table(folder / "iris.csv", ["a", "b"])
    assert table.texts["class"].tolist() == model.predict_classes(x).tolist()
    mean = table.select([f"p_{name}" for name in names]).values
    np.testing.assert_allclose(mean, model.predict(x).mean, rtol=1e-8)


@pytest.mark.parametrize(
    ("command", "header"),
    [
        ("answers.h5 answers.csv", "class,p_yes,p_yes_stddev"),
        ("answers.h5 answers.csv --space transformed", "logit_yes,logit_yes_stddev"),
        ("two.h5 points.csv", "y1_class,y2_class,y1_p_1,y1_p_1_stddev,y2_p_1,y2_p_1_stddev"),
    ],
)
def test_predict_bernoulli(run, folder, command, header):
    write_csv(folder / "points.csv", ["a", "b"], make_rows(3, 2, 1)[0])
    code, out, err = run(f"predict {command}")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == header


def test_evaluate(run, folder):
    code, out, err = run("evaluate iris.h5 iris.csv")
    assert (code, err) == (0, "")
    for word in ("Accuracy", "Brier", "Calibration error", "Log predictive density"):
        assert word in out
    assert "sigma" not in out and "RMSE" not in out
    table = read_table(folder / "iris.csv", labels=["label"])
    expected = tfbnn.load(folder / "iris.h5").evaluate(table, table.texts["label"])
    found = json.loads(run("evaluate iris.h5 iris.csv --json")[1])
    assert found["brier"] == pytest.approx(expected["brier"])
    check_refusal(run("evaluate answers.h5 iris.csv"), "'no', 'yes'", "'setosa'")


def test_flags_are_labels_in_every_format(run, folder, synthetic_ensemble):
    """Text has no flags, and a model of text may get some."""
    pytest.importorskip("pyarrow")
    x = make_rows(20, 2, 1)[0]
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": x[:, 0] > 0})
    frame.to_csv(folder / "flags.csv", index=False)
    frame.to_parquet(folder / "flags.parquet")
    of_table = {"feature_names": ("a", "b"), "provenance": {"target_names": ["label"]}}
    found = set()
    of_models = {"flags": (False, True), "texts": ("False", "True"), "small": ("false", "true")}
    frame.assign(label=frame["label"].astype(int)).to_csv(folder / "numbers01.csv", index=False)
    for name, classes in of_models.items():
        settings = {"likelihood": Bernoulli(), "classes": classes} | of_table
        BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / f"{name}.h5")
        tables = ["flags.parquet", *{"flags": ["flags.csv", "numbers01.csv"]}.get(name, [])]
        for table in tables:
            code, out, err = run(f"evaluate {name}.h5 {table} --json")
            assert (code, err) == (0, "")
            found.add(json.loads(out)["accuracy"])
    assert len(found) == 1
    (folder / "other.csv").write_text("label,a,b\nmaybe,1,2\n")
    check_refusal(run("evaluate flags.h5 other.csv"), "False, True", "'maybe'")


def test_other_commands(run):
    assert "setosa, versicolor" in run("info iris.h5")[1]
    assert json.loads(run("info answers.h5 --json")[1])["classes"] == ["no", "yes"]
    assert run("diagnose iris.h5")[0] == 0
    check_refusal(run("predict iris.h5 iris.csv --include-noise"), "include_noise", "Categorical")


@pytest.mark.statistics
def test_plot(run):
    pytest.importorskip("matplotlib")
    assert "reliability" not in run("plot iris.h5 -o figures")[1]
    for name in ("iris", "answers"):
        code, out, _ = run(f"plot {name}.h5 {name}.csv -o figures")
        assert code == 0 and out.split()[-1] == "figures/reliability.png"
        assert not {"truth", "pulls", "coverage"} & set(out.replace(".png", "/").split("/"))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("data", "likelihood", "classes"),
    [
        ("iris.csv", "categorical", SPECIES),
        ("numbers.npz", "categorical", (1, 2, 3)),
        ("answers.csv", "bernoulli", ("no", "yes")),
    ],
)
def test_fit(run, folder, engine, data, likelihood, classes):
    """Leave what the engine makes of classes to tests/integration/test_classes.py."""
    options = f"--no-pretraining --validation {data} -o fitted.h5"
    command = f"fit {data} --target label --likelihood {likelihood} {options}"
    code, out, err = run(command, *QUICK)
    assert code == 0 and "60 training rows: a, b -> label" in err and "Acceptance" in out
    model = tfbnn.load(folder / "fitted.h5")
    assert model.classes == tuple(sorted(classes))
    assert model.spec.layer_sizes[-1] == (1 if likelihood == "bernoulli" else 3)
    assert run(f"evaluate fitted.h5 {data}")[0] == 0


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("iris.csv --target sort --likelihood categorical", ["no column sort"]),
        ("iris.csv --target label --target a --likelihood categorical", ["one column of labels"]),
        ("iris.csv --target label --likelihood categorical --noise-scale 1", ["--noise-scale"]),
        ("iris.csv --target label --likelihood categorical --y-transform log10", ["y_transform"]),
        ("iris.csv --target label", ["column label: expected numbers", "--likelihood categorical"]),
        ("gap.csv --target label --likelihood categorical", ["line 3", "label", "empty cell"]),
    ],
)
def test_fit_refuses(run, folder, options, words):
    (folder / "gap.csv").write_text("label,a\nx,1\n ,2\ny,3\n")
    code, out, err = run(f"fit {options} --layers 3")
    lines = [line for line in err.splitlines() if "error" in line]
    assert (code, out, len(lines)) == (2, "", 1)
    for word in words:
        assert word in lines[0]


def test_text_that_looks_like_numbers_stays_text(run, folder, synthetic_ensemble):
    """The classes "1" and "x", and a table in which only "1" occurs."""
    settings = {"likelihood": Bernoulli(), "classes": ("1", "x")}
    ensemble = synthetic_ensemble(provenance={"target_names": ["label"]}, **settings)
    BayesianMLP.from_ensemble(ensemble).save(folder / "mixed.h5")
    (folder / "ones.csv").write_text("label,a,b\n1,0.5,1\n1,2,3\n")
    assert run("evaluate mixed.h5 ones.csv")[0] == 0
