"""Outputs: nothing that was there is lost, and what cannot be written is refused before any work."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.commands import check_refusal, write_tables_and_models
from tests.support.run_folders import created_run
from tfbnn.cli.outputs import FOLDER, MODEL, PAGE, TABLE, check_output
from tfbnn.system.atomic import MARK

FIT = "fit rows.csv --target y --layers 3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, other names of them, something else, and a run."""
    folder = tmp_path_factory.mktemp("outputs")
    write_tables_and_models(folder)
    (folder / "soft.csv").symlink_to("rows.csv")
    os.link(folder / "points.csv", folder / "hard.csv")
    (folder / "soft.h5").symlink_to("named.h5")
    (folder / "diary.html").write_text("<!DOCTYPE html>\n<p>mine")
    (folder / "foreign.h5").write_bytes(b"a table of somebody's")
    created_run(folder / "run", {}, {}, 1)
    (folder / "linked").symlink_to("run")
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("predict named.h5 points.csv -o named.h5", "named.h5"),
        ("predict soft.h5 points.csv -o named.h5", "would overwrite"),
        ("predict named.h5 points.csv -o points.csv", "would overwrite"),
        ("predict named.h5 points.csv -o ./points.csv", "would overwrite"),
        ("predict named.h5 points.csv -o hard.csv", "would overwrite"),
        ("predict named.h5 points.csv -o two.h5", "has the ending '.h5'"),
        ("predict named.h5 points.csv -o out.xlsx", ".parquet"),
        ("predict named.h5 points.csv -o run/out.csv", "run folder"),
        ("predict named.h5 points.csv -o linked/lane-000/out.csv", "run folder"),
        ("predict named.h5 points.csv -o absent/out.csv", "absent"),
        ("predict named.h5 points.csv -o .", "is a folder"),
        ("predict named.h5 points.csv -o absent/", "is a folder"),
        (f"{FIT} -o rows.csv", "would overwrite"),
        (f"{FIT} -o soft.csv", "would overwrite"),
        (f"{FIT} -o new.csv", ".h5"),
        (f"{FIT} -o -", ".h5"),
        (f"{FIT} -o foreign.h5", "not a tfbnn model"),
        (f"{FIT} -o run/run.h5", "run folder"),
        (f"{FIT} --output new -o new/bnn.h5", "a file in it"),
        (f"{FIT} --output bnn.h5.run -o bnn.h5", "reserves for temporary run folders"),
        (f"{FIT} -o {'x' * 300}.h5", "name too long"),
        ("resume run -o run/bnn.h5", "a file in it"),
        ("resume run -o foreign.h5", "not a tfbnn model"),
        ("plot named.h5 -o run", "run folder"),
        ("plot named.h5 -o rows.csv", "is a file"),
        ("plot named.h5 -o rows.csv/figures", "is a file"),
        ("report named.h5 -o points.csv", ".html"),
        ("report named.h5 -o diary.html", "not a report of tfbnn"),
        ("report named.h5 -o run/report.html", "run folder"),
        ("report named.h5 rows.csv -o .", "is a folder"),
        ("report run -o run/report.html", "a file in it"),
        ("demo -o .", "other files"),
        ("demo -o run", "run folder"),
    ],
)
def test_refused_before_any_work(run, folder, monkeypatch, command, word):
    before = contents(folder)
    for work in (
        "arguments.load",
        "fit.read_table",
        "resume.import_tensorflow",
        "demo.table_writer",
    ):
        monkeypatch.setattr(f"tfbnn.cli.{work}", None)
    check_refusal(run(command), word)
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["predict named.h5 points.csv -o", f"{FIT} -o"])
def test_an_empty_name_is_refused(run, folder, command):
    check_refusal(run(command, ""), "received ''")


def test_a_pipe_is_written_to(run, folder):
    path = folder / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("predict named.h5 points.csv -o pipe") == (0, "", "")
        assert os.read(end, 12) == b"mean,stddev\n"
    finally:
        os.close(end)
    assert not path.is_file()


def test_planted_links_are_not_followed(run, folder):
    """In a folder shared with others, under any name that a temporary file could have."""
    victim = folder / "victim.txt"
    victim.write_text("mine")
    for pid in range(os.getpid(), os.getpid() + 50):
        (folder / f".shared.csv.{pid}.tmp").symlink_to(victim)
    (folder / "shared.csv").symlink_to(victim)
    assert run("predict named.h5 points.csv -o shared.csv") == (0, "", "")
    assert victim.read_text() == "mine"
    assert (folder / "shared.csv").is_file() and not (folder / "shared.csv").is_symlink()


def test_figures_do_not_follow_links(run, folder, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure").Figure
    monkeypatch.setattr("tfbnn.plots.plot_convergence", lambda model: figure())
    monkeypatch.setattr("tfbnn.plots.plot_slices", lambda *rows, **settings: figure())
    (folder / "victim").write_text("mine")
    (folder / "convergence.png").symlink_to(folder / "victim")
    paths = run("plot named.h5 -o .")[1].splitlines()
    assert (folder / "victim").read_text() == "mine" and len(paths) == 2
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in paths)


def test_a_folder_that_takes_no_file(folder, monkeypatch):
    """Rights say too little, and to root nothing: the file system may be read-only, or full."""

    def refuse(folder):
        raise OSError(30, "Read-only file system", f"{folder}/.tfbnn-0.tmp")

    monkeypatch.setattr("tfbnn.system.atomic._new_temporary", refuse)
    for name, kind in (("bnn.h5", MODEL), ("out.csv", TABLE)):
        with pytest.raises(OSError, match="Read-only") as caught:
            check_output(str(folder / name), kind)
        assert caught.value.filename == str(folder / name)
    with pytest.raises(OSError, match="Read-only"):
        check_output(str(folder / "figures" / "new"), FOLDER)


def test_what_may_be_written(folder):
    shutil.copy(folder / "named.h5", folder / "earlier.h5")
    (folder / "earlier.html").write_text(f"{MARK}<p>a report")
    before = sorted(os.listdir(folder))
    names = {PAGE: ["new.html", "earlier.html"], MODEL: ["new.h5", "earlier.h5"]}
    names |= {TABLE: ["new.csv", "rows.csv", "-"], FOLDER: ["new/deep", "."]}
    for kind, of_kind in names.items():
        for name in of_kind:
            path = name if name == "-" else str(folder / name)
            check_output(path, kind, ["other.csv", None, "-"])
    assert sorted(os.listdir(folder)) == before
