"""`tfbnn slha table`: spectra and results in, tables to fit to out; and `tfbnn slha next`."""

import tarfile

import numpy as np
import pytest

from tests.support.commands import check_refusal
from tests.support.cross_sections import made_up_processes
from tfbnn.data.tables import read_table
from tfbnn.hep import CrossSectionPredictor, write_processes

SPECTRUM = """BLOCK SPINFO
  {code}   a message
BLOCK MASS
  1000022  {mass}  # ~chi_10
BLOCK NMIX
  1  1  .6
  1  2  {n12}
BLOCK RESULT
  1000022  1000022  {xsec}  .02
  1000022  1000023  7  .5
"""
INPUTS = (
    'inputs = {m = "MASS 1000022", N11 = "NMIX 1 1", log_m = "log10(abs(m))", bino = "N11**2"}\n'
)
FIRST = '[[process]]\npids = [1000022, 1000022]\ntarget = "xsec"\n' + INPUTS
OF_FIRST = "rows = {pid1 = 1000022, pid2 = 1000022}\n"
ERROR = 'errors = {scale = 0.1, pdf = {relative = "pdf / xsec", model = "pdf.h5"}}\n'
SECOND = (
    '[[process]]\npids = [1000022, 1000023]\ntarget = "log10(xsec)"\n'
    'rows = {pid2 = 1000023}\ninputs = {m = "MASS 1000022"}\n'
)
BLOCK = '[results]\nblock = "result"\ncolumns = ["pid1", "pid2", "xsec", "pdf"]\n'
MASSES, XSECS = (100.0, -200.0, 300.0, 400.0, 500.0, 600.0), ("3", "5D-1", "-1", "nan", "0", "8")


@pytest.fixture
def folder(tmp_path):
    """Six spectra, of which three have failed results, and one is called invalid."""
    (tmp_path / "spectra").mkdir()
    for number, (mass, xsec) in enumerate(zip(MASSES, XSECS)):
        text = SPECTRUM.format(code=4 if number == 5 else 1, mass=mass, n12=0.8, xsec=xsec)
        (tmp_path / "spectra" / f"p{number}.slha").write_text(text)
    (tmp_path / "block.toml").write_text(BLOCK + FIRST + OF_FIRST + ERROR)
    return tmp_path


def check_first(path):
    table = read_table(path, texts=True)
    assert table.columns == ("spectrum", "log_m", "bino", "xsec", "pdf_error")
    numbers = table.numbers(["log_m", "bino", "xsec", "pdf_error"])
    np.testing.assert_allclose(numbers, [[2, 0.36, 3, 0.02 / 3], [np.log10(200), 0.36, 0.5, 0.04]])


def test_blocks_of_spectra_become_a_table(run, folder):
    code, out, err = run("slha table spectra block.toml -o table.csv")
    assert (code, out) == (0, "")
    check_first(folder / "table.csv")
    assert "Wrote 2 rows to table.csv, targets xsec, pdf_error." in err
    for text in (
        "1: failed calculation, xsec = -1",
        "1: failed calculation, xsec = nan",
        "1: failed calculation, xsec = 0",
        "1: The spectrum program calls this point invalid (SPINFO 4)",
        "MASS 1000022 is negative in 50.0 %",
    ):
        assert text in err
    head = (folder / "table.csv").read_text().splitlines()[:3]
    assert head == ["# log_m = log10(abs(m))", "# bino = N11**2", "# pdf_error = pdf / xsec"]


def test_units_and_what_a_column_is_stand_in_parquet_too(run, folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    (folder / "d.toml").write_text(BLOCK + FIRST.replace(INPUTS, 'inputs = {m = "MASS 1000022"}\n') + OF_FIRST)  # fmt: skip
    assert run("slha table spectra d.toml -o table.parquet")[0] == 0
    metadata = parquet.read_schema(folder / "table.parquet").metadata
    assert metadata[b"comments"] == b"m = MASS 1000022 GeV"


def test_a_tar_and_one_file_of_many_are_the_same(run, folder):
    with tarfile.open(folder / "all.tar.gz", "w:gz") as archive:
        archive.add(folder / "spectra", "spectra")
    texts = [(folder / "spectra" / f"p{number}.slha").read_text() for number in range(6)]
    (folder / "many.slha").write_text("# all of them\n" + "".join(texts))
    for spectra, first in (("all.tar.gz", "all.tar.gz/spectra/p"), ("many.slha", "many.slha")):
        assert run(f"slha table {spectra} block.toml -o {spectra[:3]}.csv")[0] == 0
        check_first(folder / f"{spectra[:3]}.csv")
        names = read_table(folder / f"{spectra[:3]}.csv", texts=True).column("spectrum")
        assert names[0].startswith(first)
    assert names[1] == "many.slha#2"


@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("by_name", [True, False])
def test_files_of_results(run, folder, has_header, by_name):
    rows = [f"{'p' if by_name else 'q'}{n} {x.replace('D', 'e')} .02" for n, x in enumerate(XSECS)]
    rows = rows[::-1] if by_name else rows
    header = "point xsec pdf"
    lines = [header, *rows] if has_header else ["# comment", *rows]
    (folder / "results.dat").write_text("\n".join(lines) + "\n")
    text = '[results]\nfile = "results.dat"\n'
    text += "" if has_header else f"columns = {header.split()}\n"
    text += 'spectrum = "point"\n' if by_name else ""
    (folder / "d.toml").write_text(text + FIRST + ERROR)
    code, _, err = run("slha table spectra d.toml -o table.csv")
    assert code == 0, err
    check_first(folder / "table.csv")


def test_errors_with_a_sign_are_told(run, folder):
    for number, path in enumerate(sorted(folder.glob("spectra/*"))):
        path.write_text(path.read_text().replace(".02\n", "-.02\n" if number else ".02\n"))
    _, _, err = run("slha table spectra block.toml -o table.csv")
    assert "Wrote 1 row to table.csv" in err and "1: negative error, pdf = -0.02" in err


def test_several_processes_go_into_a_folder(run, folder):
    (folder / "d.toml").write_text(BLOCK + FIRST + OF_FIRST + ERROR + SECOND)
    check_refusal(run("slha table spectra d.toml -o t.csv"), "a folder for 2 processes")
    assert run("slha table spectra d.toml -o tables")[0] == 0
    check_first(folder / "tables/1000022_1000022.csv")
    table = read_table(folder / "tables/1000022_1000023.csv", ["m", "target"])
    np.testing.assert_allclose(table.values[:, 0], MASSES[:5])
    np.testing.assert_allclose(table.values[:, 1], np.log10(7))


@pytest.mark.parametrize(
    "inputs, words",
    [
        ({"N11": "NMIX 1 1", "N12": "NMIX 1 2"}, "is a convention, but changes N11, N12"),
        ({"N11": "NMIX 1 1"}, "Imaginary parts of mixings are not read: 6 of 6"),
        ({"U11": "UMIX 1 1", "U12": "UMIX 1 2"}, "UMIX 1 is no unit vector in 2 spectra"),
    ],
)
def test_odd_mixings_and_signed_features_are_told(run, folder, inputs, words):
    for path in folder.glob("spectra/*"):
        other = "BLOCK IMNMIX\n  1  1  .1\nBLOCK UMIX\n  1  1  .6\n  1  2  .9\n"
        path.write_text(path.read_text() + other)
    named = ", ".join(f'{name} = "{place}"' for name, place in inputs.items())
    text = FIRST.replace(INPUTS, f"inputs = {{{named}}}\n")
    (folder / "d.toml").write_text(BLOCK + text + OF_FIRST)
    code, _, err = run("slha table spectra d.toml -o table.csv")
    assert code == 0 and words in err


def test_a_failed_spectrum_among_many_takes_no_other_with_it(run, folder):
    texts = [(folder / "spectra" / f"p{number}.slha").read_text() for number in range(2)]
    texts.insert(1, "BLOCK SPINFO\n  1  program\n  4  no masses\n")
    (folder / "many.slha").write_text("".join(texts))
    code, _, err = run("slha table many.slha block.toml -o table.csv")
    assert code == 0 and "Wrote 2 rows" in err and "left out 1: The spectrum program calls" in err
    check_first(folder / "table.csv")


def test_an_odd_line_of_imaginary_parts_counts_as_one(run, folder):
    with open(folder / "spectra" / "p0.slha", "a") as file:
        file.write("BLOCK IMNMIX\n  nothing here\n")
    code, _, err = run("slha table spectra block.toml -o table.csv")
    assert code == 0 and "1 of 6 spectra" in err
    check_first(folder / "table.csv")


def test_a_line_that_breaks_off_is_a_failed_calculation(run, folder):
    path = folder / "spectra" / "p1.slha"
    path.write_text(path.read_text().replace("1000022  5D-1  .02", "1000022"))
    code, _, err = run("slha table spectra block.toml -o table.csv")
    assert code == 0 and "Wrote 1 rows" in err.replace("1 row to", "1 rows to")


@pytest.mark.parametrize("place", ["LOWEST 1", "LOWEST:1", "9*LOWEST:1"])
def test_columns_of_results_take_precedence_over_inputs(run, folder, place):
    for path in folder.glob("spectra/*"):
        path.write_text(path.read_text() + "BLOCK LOWEST\n  1  2.5\n")
    inputs = f'inputs = {{m = "MASS 1000022", pdf = "{place}", low = "log(LOWEST:1)"}}\n'
    first = FIRST.replace(INPUTS, inputs).replace('"xsec"', '"xsec / pdf"')
    (folder / "d.toml").write_text(BLOCK + first + OF_FIRST)
    assert run("slha table spectra d.toml -o table.csv")[0] == 0
    table = read_table(folder / "table.csv", ["target", "low"])
    np.testing.assert_allclose(table.values[0], [3 / 0.02, np.log(2.5)])


def test_a_warning_of_a_spectrum_is_told_once(run, folder):
    for path in folder.glob("spectra/*"):
        path.write_text(path.read_text().replace("1   a message", "3   odd"))
    lacking = SECOND.replace('m = "MASS 1000022"', 'other = "MASS 7"')
    (folder / "d.toml").write_text(BLOCK + FIRST + OF_FIRST + lacking)
    with open(folder / "spectra" / "p9.slha", "w") as file:
        file.write(SPECTRUM.format(code=1, mass=7, n12=0.8, xsec=3).replace("1000022  7", "7  7"))
    _, _, err = run("slha table spectra d.toml -o tables")
    assert "5 times: The spectrum program warns" in err


@pytest.mark.parametrize(
    "text, message",
    [
        (FIRST, "[results] is missing"),
        ('[results]\nblock = "A"\n' + FIRST, "must have a file, or a block"),
        (BLOCK + 'fil = "x"\n' + FIRST, "unknown key 'fil'. Did you mean 'file'"),
        (BLOCK.replace("pdf", "xsec") + FIRST, "[results] has 2 columns xsec"),
        (BLOCK + FIRST + "errors = 3\n", "errors must be a table"),
        (BLOCK + FIRST + 'errors = {pdf = {relative = ["xsec"]}}\n', "one expression or two"),
        (BLOCK + FIRST.replace('"xsec"', "3"), "must be text"),
        (
            BLOCK + FIRST.replace("bino", "target").replace('"xsec"', '"exp(xsec)"'),
            "would be 'target'",
        ),
        (BLOCK + FIRST.replace("bino", "spectrum"), "Two columns of the table would be 'spectrum'"),
        (BLOCK + FIRST + FIRST, "There are two processes"),
        (BLOCK + FIRST + SECOND.replace("MASS 1000022", "MASS 3"), "The input 'm'"),
        (
            BLOCK + FIRST.replace('"xsec"', '"xsex"'),
            "no column xsex; its columns are pid1, pid2, xsec, pdf. Did you mean 'xsec'",
        ),
        (BLOCK + FIRST + "rows = {pid3 = 1}\n", "no column pid3"),
        (BLOCK + FIRST + "rows = {pid1 = 5}\n", "No spectrum is left"),
        (
            BLOCK + FIRST + "rows = {pid1 = [5]}\n",
            "rows must be a table of columns with a number or word each",
        ),
        (
            BLOCK.replace(', "pdf"', "") + FIRST,
            "p0.slha has 4 words in a line of block RESULT for 3",
        ),
        (BLOCK + FIRST, "No spectrum is left for (1000022, 1000022): 5 times 2 results"),
        (BLOCK + FIRST.replace('"xsec"', '"log10(0 - xsec)"') + OF_FIRST, "No spectrum is left"),
        ('[results]\nfile = "r.dat"\ncolumns = ["xsec", "b"]\n' + FIRST, "has 1 words for 2"),
        ('[results]\nfile = "r.dat"\ncolumns = ["xsec"]\n' + FIRST, "2 rows of a process"),
        ('[results]\nfile = "none.csv"\n' + FIRST, "none.csv"),
    ],
)
def test_what_is_wrong_is_said(run, folder, text, message):
    (folder / "d.toml").write_text(text)
    (folder / "r.dat").write_text("1\n2\n")
    check_refusal(run("slha table spectra d.toml -o table.csv"), message)
    assert not (folder / "table.csv").exists()


def test_points_of_largest_error_come_next(run, folder):
    write_processes(folder / "gauginos", made_up_processes())
    lines = [f"p{n},{m},{a},{c}" for n, (m, a, c) in enumerate([(-2.5, 1.7, 4), (1, 1, 3), (2, 2, 2), (900, 9, 900)])]  # fmt: skip
    (folder / "points.csv").write_text("\n".join(["name,m,n11,m_c", *lines]) + "\n")
    code, out, err = run("slha next gauginos --table points.csv --id name -n 2 --trusted")
    assert code == 0, err
    header, *rows = out.splitlines()
    assert header == "point,pid1,pid2,relative_error,trust" and len(rows) == 2
    found = CrossSectionPredictor(folder / "gauginos").predict(read_table(folder / "points.csv", ["m", "n11", "m_c"]))  # fmt: skip
    width = 0.5 * (found.err_down + found.err_up) / found.central
    width = np.where(found.trust >= 0, width, -1.0).max(axis=1)
    order = np.argsort(-width)
    assert [row.split(",")[0] for row in rows] == [f"p{index}" for index in order[:2]]
    errors = [float(row.split(",")[3]) for row in rows]
    np.testing.assert_allclose(errors, width[order[:2]], rtol=1e-8)
    assert "Left out 2 points outside" in err


def test_the_order_of_spectra_must_be_that_of_their_numbers(run, folder):
    (folder / "spectra/p0.slha").rename(folder / "spectra/p10.slha")
    (folder / "r.dat").write_text("1\n" * 6)
    (folder / "d.toml").write_text('[results]\nfile = "r.dat"\ncolumns = ["xsec"]\n' + FIRST)
    check_refusal(run("slha table spectra d.toml -o table.csv"), "matched to spectra in order")


def test_spectra_of_one_name_are_told_apart_or_refused(run, folder):
    first = (folder / "spectra/p0.slha").read_text()
    (folder / "many.slha").write_text(first + first.replace("100.0", "1000.0"))
    (folder / "r.csv").write_text("name,xsec\nmany#2,7\nmany,3\n")
    (folder / "d.toml").write_text('[results]\nfile = "r.csv"\nspectrum = "name"\n' + FIRST)
    assert run("slha table many.slha d.toml -o table.csv")[0] == 0
    np.testing.assert_allclose(read_table(folder / "table.csv", ["log_m", "xsec"]).values, [[2, 3], [3, 7]])  # fmt: skip
    (folder / "other").mkdir()
    (folder / "other/many.slha").write_text(first)
    result = run("slha table many.slha other d.toml -o t.csv")
    check_refusal(result, "Two spectra are called 'many'")
    with tarfile.open(folder / "twice.tar", "w") as archive:
        for name in ("p0.slha", "p1.slha", "p0.slha"):
            archive.add(folder / "spectra" / name, name)
    result = run("slha table twice.tar block.toml -o t.csv")
    check_refusal(result, "Two spectra are called 'twice.tar/p0.slha'")


def test_a_second_spinfo_is_of_the_same_spectrum(run, folder):
    path = folder / "spectra/p0.slha"
    path.write_text(path.read_text() + "BLOCK SPINFO\n  4  bad point\n")
    assert run("slha table spectra block.toml -o table.csv")[0] == 0
    assert len(read_table(folder / "table.csv", ["xsec"])) == 1


def test_compressed_files_are_refused_by_name(run, folder):
    (folder / "one.slha.gz").write_bytes(b"compressed")
    check_refusal(run("slha table one.slha.gz block.toml -o t.csv"), "one.slha.gz is compressed")
    (folder / "r.dat.gz").write_bytes(b"compressed")
    (folder / "d.toml").write_text('[results]\nfile = "r.dat.gz"\ncolumns = ["xsec"]\n' + FIRST)
    check_refusal(run("slha table spectra d.toml -o t.csv"), "r.dat.gz is compressed")


def test_names_may_have_a_number_sign(run, folder):
    (folder / "signs").mkdir()
    (folder / "signs/p#a.slha").write_text((folder / "spectra/p0.slha").read_text())
    (folder / "r.csv").write_text("name,xsec\np#a,7\n")
    (folder / "d.toml").write_text('[results]\nfile = "r.csv"\nspectrum = "name"\n' + FIRST)
    assert run("slha table signs d.toml -o t.csv")[0] == 0
    assert read_table(folder / "t.csv", ["xsec"]).values.tolist() == [[7.0]]


def test_a_broken_tar_is_refused(run, folder):
    (folder / "all.tar.gz").write_bytes(b"no tar")
    check_refusal(run("slha table all.tar.gz block.toml -o table.csv"), "is no readable tar")
