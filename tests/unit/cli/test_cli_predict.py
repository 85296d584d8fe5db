"""`tfbnn predict`: tables longer than memory, and the column of trust."""

import gc
import io
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import tfbnn
from tests.support.builders import make_rows
from tests.support.commands import check_refusal
from tests.support.tables import write_csv
from tfbnn.cli import main
from tfbnn.data.tables import read_table
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Bernoulli, Poisson


@pytest.fixture(scope="module")
def folder(tmp_path_factory, synthetic_ensemble):
    folder = tmp_path_factory.mktemp("predict")
    settings = {"layer_sizes": (2, 1), "num_results": 2, "feature_names": ("a", "b")}
    BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / "model.h5")
    x = np.vstack([make_rows(50, 2, 1)[0], [[1e3, 0.0]]])
    write_csv(folder / "points.csv", ["a", "b"], x)
    return folder


class Endless:
    """Standard input that makes its lines as they are read, and compares with what is written."""

    def __init__(self, num_rows, output):
        self._num_rows, self._output, self.behind = num_rows, output, 0

    def __iter__(self):
        yield "a,b\n"
        tracemalloc.reset_peak()  # loading the model takes more
        for row in range(self._num_rows):
            self.behind = max(self.behind, row - self._output.lines)
            yield "2.0,2.0\n"


class Counter(io.TextIOBase):
    """Standard output that counts its lines and forgets them."""

    lines = 0

    def write(self, text):
        self.lines += text.count("\n")
        return len(text)


def peak(folder, monkeypatch, num_rows):
    """Runs the command on so many rows: (peak of traced bytes, most rows read before written)."""
    output = Counter()
    lines = Endless(num_rows, output)
    monkeypatch.setattr(sys, "stdin", lines)
    monkeypatch.setattr(sys, "stdout", output)
    gc.collect()
    tracemalloc.start()
    try:
        assert main(["predict", str(folder / "model.h5"), "-", "--trust"]) == 0
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert output.lines == num_rows + 1
    return most, lines.behind


def test_rows_are_written_while_others_are_read(folder, monkeypatch):
    assert peak(folder, monkeypatch, 1_500)[1] <= 1000


@pytest.mark.statistics
def test_memory_does_not_grow_with_the_length_of_the_input(folder, monkeypatch):
    peak(folder, monkeypatch, 2_000)  # imports, caches
    short, _ = peak(folder, monkeypatch, 2_000)
    # Keeping the results alone would take another 18000 x 3 numbers, 432 kB. What else this process
    # has to collect comes and goes by some hundred kB, so that one of three runs has to be below.
    for _ in range(3):
        long, behind = peak(folder, monkeypatch, 20_000)
        assert behind <= 1000
        if long < short + 250_000:
            break
    assert long < short + 250_000, long - short


@pytest.mark.parametrize("options", ["--trust", "--trust --quantiles 0.1,0.9"])
def test_trust_is_the_last_column(run, folder, options):
    code, out, _ = run(f"predict model.h5 points.csv -o out.csv {options}")
    assert (code, out) == (0, "")
    table = read_table(folder / "out.csv")
    assert table.columns[-1] == "trust" and table.columns[:2] == ("mean", "stddev")
    trust = table.select(["trust"]).values[:, 0]
    assert (trust[:-1] == 1).all() and trust[-1] == -1


def test_a_vector_is_written_as_a_column_is(run, folder, synthetic_ensemble):
    settings = {"layer_sizes": (2, 1), "num_results": 2, "feature_names": ("a", "b")}
    vector = BayesianMLP.from_ensemble(synthetic_ensemble(vector_target=True, **settings))
    vector.save(folder / "vector.h5")
    options = "points.csv --quantiles 0.1,0.9 --include-noise --trust"
    assert run(f"predict vector.h5 {options}") == run(f"predict model.h5 {options}")
    assert run("predict vector.h5 points.csv")[1].startswith("mean,stddev\n")


@pytest.fixture
def named(folder):
    """A table with an id of text, and a column with a gap that is neither id nor input."""
    (folder / "ids.csv").write_text('id,run,b,a\npoint 1,007,1.50,2\n"p,2",,-1,0.5\n')
    return "ids.csv"


def test_columns_can_be_kept_as_they_are_written(run, named):
    code, out, _ = run(f"predict model.h5 {named} --keep id,run,b")
    assert code == 0
    lines, plain = out.splitlines(), run(f"predict model.h5 {named}")[1].splitlines()
    assert lines[0] == "id,run,b,mean,stddev"
    assert lines[1] == f"point 1,007,1.50,{plain[1]}"
    assert lines[2] == f'"p,2",,-1,{plain[2]}'


@pytest.mark.parametrize("model", ["model.h5", "nameless.h5"])
def test_columns_of_arrays_can_be_kept(run, folder, model, synthetic_ensemble):
    """test_cli_texts.py has all formats."""
    ensemble = synthetic_ensemble(layer_sizes=(2, 1), num_results=2)
    BayesianMLP.from_ensemble(ensemble).save(folder / "nameless.h5")
    ids = [2**60 + 1, 9]  # which no float64 is
    np.savez(folder / "ids.npz", id=ids, a=[2.0, 0.5], b=[1.5, -1.0])
    # An input is kept, too, where it is known which columns are inputs.
    names = ["b", "id"] if model == "model.h5" else ["id"]
    assert run(f"predict {model} ids.npz --keep {','.join(names)} -o kept.npz")[0] == 0
    with np.load(folder / "kept.npz") as kept:
        assert list(kept) == [*names, "mean", "stddev"] and kept["id"].tolist() == ids
        assert model != "model.h5" or kept["b"].tolist() == [1.5, -1.0]


def test_classes_stand_behind_what_is_kept(run, named, folder, synthetic_ensemble):
    """Flags beside numbers would become numbers."""
    settings = {"likelihood": Bernoulli(), "classes": (False, True), "feature_names": ("a", "b")}
    BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / "flags.h5")
    lines = run(f"predict flags.h5 {named} --keep id,run")[1].splitlines()
    assert lines[0].startswith("id,run,class,p_True")
    columns = {"id": np.array([7, 9]), "a": np.array([2.0, 0.5]), "b": np.array([1.5, -1.0])}
    np.savez(folder / "flags.npz", **columns)
    rows = run("predict flags.h5 flags.npz --keep id")[1].splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["7", "9"]
    assert {row.split(",")[1] for row in rows} <= {"True", "False"}
    assert [row.split(",")[-3] for row in lines[1:]] == [row.split(",")[-3] for row in rows]


def test_columns_can_be_named_after_the_target(run, folder, synthetic_ensemble):
    settings = {"feature_names": ("a", "b"), "provenance": {"target_names": ["xsec_fb"]}}
    BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / "target.h5")
    options = "points.csv --quantiles 0.1 --trust"
    header = run(f"predict target.h5 {options} --named")[1].splitlines()[0]
    assert header == "xsec_fb_mean,xsec_fb_stddev,xsec_fb_q0.1,trust"
    assert run(f"predict target.h5 {options}")[1].splitlines()[0] == "mean,stddev,q0.1,trust"


def test_densities_and_draws_are_those_of_the_distribution(
    run, folder, synthetic_ensemble, monkeypatch
):
    """Piece by piece, each of them with draws of its own."""
    ensemble = synthetic_ensemble(layer_sizes=(2, 3, 2), feature_names=("a", "b"))
    model = BayesianMLP.from_ensemble(ensemble)
    model.save(folder / "two.h5")
    x, y = make_rows(5, 2, 2)
    write_csv(folder / "known.csv", ["y", "a", "b", "z"], np.column_stack([y[:, 0], x, y[:, 1]]))
    monkeypatch.setattr("tfbnn.cli.predict._ROWS_AT_ONCE", 3)
    options = "--density y,z --cdf y,z --sample 2 -o out.csv"
    assert run(f"predict two.h5 known.csv {options}")[:2] == (0, "")
    table, d = read_table(folder / "out.csv"), model.predict_distribution(x)
    noisy = model.predict(x, include_noise=True).stddev  # of a new observation in all columns
    np.testing.assert_allclose(table.values[:, [1, 3]], noisy, rtol=1e-6)
    first, second = model.posterior.target_names
    columns = [f"{name}_{what}" for what in ("density", "cdf") for name in (first, second)]
    expected = np.column_stack([d.pdf(y), d.cdf(y)])
    np.testing.assert_allclose(table.numbers(columns), expected, rtol=1e-6)
    draws = [f"{name}_draw_{number}" for number in (0, 1) for name in (first, second)]
    for seed, rows in enumerate((slice(0, 3), slice(3, 5))):
        drawn = model.predict_distribution(x[rows]).sample(2, seed=seed)
        expected = np.moveaxis(drawn, 0, 1).reshape(-1, 4)
        np.testing.assert_allclose(table.numbers(draws)[rows], expected, rtol=1e-6)


def test_the_density_of_a_label_is_its_probability(run, folder, synthetic_ensemble):
    settings = {"likelihood": Bernoulli(), "classes": ("no", "yes"), "feature_names": ("a", "b")}
    BayesianMLP.from_ensemble(synthetic_ensemble(**settings)).save(folder / "labels.h5")
    (folder / "labels.csv").write_text("a,b,y\n2,1.5,yes\n0.5,-1,no\n")
    assert run("predict labels.h5 labels.csv --density y -o out.csv")[0] == 0
    of_yes, density = pd.read_csv(folder / "out.csv")[["p_yes", "density"]].to_numpy().T
    np.testing.assert_allclose(density, [of_yes[0], 1.0 - of_yes[1]], rtol=1e-6)
    check_refusal(run("predict labels.h5 labels.csv --cdf y"), "cannot be used with a classifier")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("points.csv --cdf a,b", ["--cdf", "one column for each of the 1 targets"]),
        ("points.csv --cdf nobody", ["nobody"]),
        ("points.csv --sample -1", ["--sample must be 1 or more"]),
        (
            "points.csv --sample 2 --space transformed",
            ["--sample", "Leave out --space transformed"],
        ),
        ("ids.csv --keep id,id", ["--keep id", "two columns"]),
        ("ids.csv --keep nobody", ["nobody"]),
        ("ids.csv --keep mean", ["--keep mean", "--named"]),
        ("points.csv --noise-column a", ["--noise-column goes with --include-noise"]),
    ],
)
def test_what_is_refused(run, named, options, words):
    check_refusal(run(f"predict model.h5 {options}"), *words)


def test_counts_have_an_offset_column(run, folder, synthetic_ensemble):
    settings = {"likelihood": Poisson(), "y_transform": None, "feature_names": ("a", "b")}
    origin = {"target_names": ["n"], "noise_columns": ["log_exposure"]}
    model = BayesianMLP.from_ensemble(synthetic_ensemble(**settings, provenance=origin))
    model.save(folder / "counts.h5")
    (folder / "cells.csv").write_text("a,b,log_exposure,n\n2,1.5,1,3\n0.5,-1,0,0\n")
    options = "--include-noise --quantiles 0.5 --cdf n -o out.csv"
    assert run(f"predict counts.h5 cells.csv {options}")[0] == 0
    x, offset = np.array([[2.0, 1.5], [0.5, -1.0]]), np.array([1.0, 0.0])
    d = tfbnn.load(folder / "counts.h5").predict_distribution(x, offset=offset)
    expected = np.column_stack([d.mean(), d.std(), d.quantile(0.5), d.cdf([3.0, 0.0])])
    names = ["mean", "stddev", "q0.5", "cdf"]
    np.testing.assert_allclose(read_table(folder / "out.csv").numbers(names), expected, rtol=1e-6)
    code, out, _ = run("evaluate counts.h5 cells.csv")
    assert code == 0 and "CRPS" in out
    code, out, _ = run("predict counts.h5 points.csv")  # rates, for which no column is needed
    assert code == 0 and out.startswith("mean,stddev")
    check_refusal(run("predict counts.h5 cells.csv --noise-column n"), "Use --offset-column")
    check_refusal(run("predict model.h5 points.csv --offset-column b"), "Use --noise-column")
