"""Commands read the columns of a table, with labels as they are written."""

import pytest

from tests.support.commands import check_refusal
from tests.support.entries import X, Y
from tfbnn.cli import fit as fit_command
from tfbnn.cli.columns import read_labels
from tfbnn.cli.parsing import Parser
from tfbnn.data.tables import read_table
from tfbnn.fit.model import BayesianMLP
from tfbnn.run.options import FitOptions


@pytest.fixture(scope="module")
def folder(tmp_path_factory, synthetic_ensemble):
    folder = tmp_path_factory.mktemp("columns")
    (folder / "rows.csv").write_text("a,b,y\n1,2,0.5\n2,3,1.5\n4,1,2\n")
    (folder / "bad.csv").write_text("# made up\na,b,y\n1,2,1\n\n2,3,-1.5\n4,1,2\n")
    of_models = {"model": {"y_transform": ["log10"]}, "narrow": {"dtype": "float32"}}
    for name, settings in of_models.items():
        ensemble = synthetic_ensemble(feature_names=("a", "b"), **settings)
        BayesianMLP.from_ensemble(ensemble).save(folder / f"{name}.h5")
    return folder


@pytest.mark.parametrize(
    ("cells", "labels"),
    [("10 1_0 1_1", ["10", "1_0", "1_1"]), ("9007199254740993 1", [2**53 + 1, 1])],
)
def test_labels_are_exact_and_numbers_only_where_all_are(tmp_path, cells, labels):
    """tests/unit/data/test_numbers.py tests which texts are numbers."""
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["label,a", *(f"{cell},1.5" for cell in cells.split())]))
    found = read_labels(read_table(path, labels=["label"]), ["label"])
    assert found[:, 0].tolist() == labels


def test_the_odd_label_among_numbers_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,1\n2,2\n3,x\n")
    table = read_table(tmp_path / "t.csv", labels=["y"])
    with pytest.raises(ValueError, match="t.csv, line 4: expected one of the labels 1, 2, got 'x'"):
        read_labels(table, ["y"], (1, 2))


def test_an_input_is_no_target(run, folder):
    check_refusal(run("evaluate model.h5 rows.csv --target a"), "a is an input of the model")


def test_true_and_false_of_several_targets_are_flags(tmp_path):
    (tmp_path / "flags.csv").write_text("f,g,a\nTrue,false,1\nFalse,true,2\n")
    table = read_table(tmp_path / "flags.csv", labels=["f", "g"])
    found = read_labels(table, ["f", "g"])
    assert found.dtype == bool and found.tolist() == [[True, False], [False, True]]
    assert read_labels(table, ["f"])[:, 0].tolist() == ["True", "False"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("fit bad.csv --target y --layers 3 --y-transform log10", "y must be positive"),
        ("fit rows.csv --target y --y-transform log10 --validation bad.csv", "validation y"),
        ("evaluate model.h5 bad.csv --target y", "y must be positive"),
        ("fit bad.csv --target a --layers 3 --noise-column y", "noise_scale must be positive"),
        ("fit bad.csv --target y --layers 3 --likelihood bernoulli", "whole numbers"),
    ],
)
def test_bad_rows_are_named_by_their_line(run, folder, monkeypatch, command, words):
    monkeypatch.setattr("tfbnn.cli.fit.import_tensorflow", lambda: None)
    describe = "tfbnn.engine.basis.seeds.describe_environment"
    monkeypatch.setattr(describe, lambda *_: {"versions": {}})
    code, out, err = run(command)
    error = err.splitlines()[-1]
    assert (code, out) == (2, "") and words in error
    assert " in row 1 (bad.csv, line 5)" in error


def test_predict_names_lines_beyond_the_first_piece(run, folder):
    rows = [f"{number},1" for number in range(2000)]
    rows[1500] = "1e300,1"
    (folder / "long.csv").write_text("\n".join(["# comment", "a,b", *rows]))
    code, _, err = run("predict narrow.h5 long.csv -o out.csv")
    assert code == 2 and "(long.csv, line 1503), column 0 ('a')" in err
    assert not (folder / "out.csv").exists()


@pytest.mark.tensorflow
def test_columns_are_fitted_in_the_transforms_of_the_model_that_chains_start_from(fitted, engine):
    earlier, model = fitted.posterior, BayesianMLP.from_spec(fitted.spec)
    names = {"target_names": ["y"], "noise_columns": []}
    options = dict(initial_state=earlier, num_chains=2, num_results=6, verbose=0)
    model.fit_data(X, Y, None, FitOptions(**options, column_names=names))
    assert model.posterior.x_pipeline == earlier.x_pipeline
    assert model.posterior.provenance.target_names == ["y"]


def test_a_column_of_groups_is_no_input(tmp_path):
    lines = [f"{row},{row % 3},s{row // 4},{row}" for row in range(40)]
    path = tmp_path / "subjects.csv"
    path.write_text("\n".join(["a,b,subject,y", *lines]))
    parser = Parser()
    fit_command.add_options(parser)
    given = [str(path), "--target", "y", "--groups", "subject"]
    args = parser.parse_args(given)
    table, features = fit_command._read(args, ())
    assert features == ["a", "b"]
    assert fit_command._groups(args, table).tolist() == [f"s{row // 4}" for row in range(40)]
    odd = parser.parse_args([*given, "--ignore", 'a, "xsec (fb, LO)"'])
    assert odd.ignore == ["a", "xsec (fb, LO)"]
    with pytest.raises(ValueError, match="only one of feature, target, noise and groups"):
        fit_command._read(parser.parse_args([*given[:4], "y"]), ())
