"""`python -m benchmarks` and `python -m benchmarks.data`: what they list, run, convert and refuse."""

import tomllib

import pytest

from benchmarks import __main__ as runner
from benchmarks import data
from tests.support.benchmarks import FOLDER

STUDIES = tomllib.loads((FOLDER / "studies.toml").read_text())


def test_each_script_that_keeps_results_is_listed():
    of_folders = [path for path in FOLDER.glob("studies/*/*.py")]
    scripts = [
        path
        for path in [*FOLDER.glob("*.py"), *of_folders]
        if 'if __name__ == "__main__"' in path.read_text()
        and "add_common_options(parser)" in path.read_text()
    ]
    listed = {runner.script_of(name, study) for name, study in STUDIES.items()}
    assert set(scripts) <= listed
    assert all(runner.question(script).endswith((".", "?")) for script in listed)


def test_the_tables_of_studies_are_known():
    folders = {name.split("/")[0] for name in data.TABLES}
    assert {name for study in STUDIES.values() for name in study.get("data", ())} == folders


def test_the_list_says_which_studies_lack_data(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TFBNN_DATA", str(tmp_path))
    (tmp_path / "uci/yacht").mkdir(parents=True)
    (tmp_path / "nlo_neutralino").mkdir()  # an empty folder has no table
    assert runner.main(["--list"]) == 0
    runs, lacks = capsys.readouterr().out.split("Studies whose data are not at hand")
    assert "\nscale_prior " in runs and "\nneutralino " in lacks and "\nevidence " in runs
    with pytest.raises(SystemExit):
        runner.main(["neutralino", "--quick"])
    assert "neutralino needs nlo_neutralino: benchmarks/data.md" in capsys.readouterr().err


def test_a_study_runs_with_its_options(tmp_path):
    assert runner.main(["journeys", "--help"]) == 0


def test_tables_are_made_of_checkouts_and_compared(tmp_path, capsys, monkeypatch):
    source = tmp_path / "clones" / "eeyore" / "eeyore" / "data" / "iris"
    source.mkdir(parents=True)
    for part in "xy":
        (source / f"{part}.csv").write_text("1\n")
    folder = tmp_path / "made"
    arguments = [str(tmp_path / "clones"), "--to", str(folder)]
    assert data.main(arguments) == 1
    out = capsys.readouterr().out
    assert "xor_iris/iris: 2 files" in out and "xor_iris/iris: not as in the results" in out
    assert "clone https://github.com/scikit-learn-contrib/bde" in out
    assert (folder / "xor_iris" / "iris_y.csv").read_text() == "1\n"
    table = dict(data.TABLES["xor_iris/iris"])
    monkeypatch.setattr(data, "TABLES", {"iris": table})
    files = {"xor_iris/": "eeyore/data/iris/*.csv"}
    assert data.convert(table | {"files": files}, tmp_path / "clones", folder).startswith("2 files")
    assert (folder / "xor_iris" / "x.csv").exists()
    with pytest.raises(SystemExit):
        data.main([str(tmp_path)])
