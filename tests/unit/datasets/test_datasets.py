"""The generated neutralino set, the reader of tables and the container."""

import os
from pathlib import Path

import numpy as np
import pytest

from tfbnn.datasets import Dataset, neutralino, neutralino_pairs, read_cross_sections
from tfbnn.datasets import _pair_production as pair


@pytest.fixture(scope="module")
def pairs():
    return neutralino_pairs()


def test_shapes_names_and_split(pairs):
    assert pairs.x.shape == (2000, 5) and pairs.y.shape == (2000,)
    assert pairs.x.dtype == np.float64 and pairs.y.dtype == np.float64
    assert pairs.feature_names == ("m_chi10_GeV", "N11", "N12", "N13", "N14")
    assert pairs.target_name == "lo_xsec_fb"
    assert len(pairs) == 2000
    assert [len(part[1]) for part in (pairs.train, pairs.validation, pairs.test)] == [
        1600, 100, 300,
    ]  # fmt: skip
    np.testing.assert_array_equal(pairs.train[0], pairs.x[:1600])
    np.testing.assert_array_equal(pairs.test[1], pairs.y[1700:])


def test_rows_are_physical(pairs):
    mass, mixing = pairs.x[:, 0], pairs.x[:, 1:]
    np.testing.assert_allclose(np.sum(mixing**2, axis=1), 1.0, rtol=1e-12)
    assert np.all(np.abs(mass) >= neutralino.LIGHTEST_MASS_GEV)
    assert 0.2 < np.mean(mass > 0) < 0.8
    assert np.all(np.isfinite(pairs.y)) and np.all(pairs.y > 0.0)


def test_target_spans_many_orders_of_magnitude(pairs):
    assert np.log10(pairs.y.max() / pairs.y.min()) > 4.0
    assert 0.01 < np.median(pairs.y) < 1.0


def test_cancellation_region(pairs):
    # Nearly pure higgsinos: no squark coupling, and the two halves of the Z coupling cancel.
    mass, mixing = np.abs(pairs.x[:, 0]), pairs.x[:, 1:]
    window = (mass > 350.0) & (mass < 600.0)
    higgsino = window & (np.sum(mixing[:, :2] ** 2, axis=1) < 0.02)
    others = window & ~higgsino
    assert np.sum(higgsino) >= 20 and np.sum(others) >= 20
    assert np.all(np.abs(pair.z_charge(mixing[higgsino])) < 0.02)
    assert np.median(pairs.y[higgsino]) < 0.05 * np.median(pairs.y[others])


def test_same_seed_same_rows(pairs):
    again = neutralino_pairs(2000, seed=0)
    np.testing.assert_array_equal(again.x, pairs.x)
    np.testing.assert_array_equal(again.y, pairs.y)
    assert not np.array_equal(neutralino_pairs(100, seed=1).y, pairs.y[:100])


def test_smaller_set_is_the_beginning_of_a_larger_one(pairs):
    small = neutralino_pairs(37)
    np.testing.assert_array_equal(small.x, pairs.x[:37])
    np.testing.assert_allclose(small.y, pairs.y[:37], rtol=1e-13)


@pytest.mark.parametrize("num_rows", [0, -5, 2.5])
def test_bad_number_of_rows(num_rows):
    with pytest.raises(ValueError, match="num_rows"):
        neutralino_pairs(num_rows)


def test_one_row_is_enough():
    assert neutralino_pairs(1).train[0].shape == (1, 5)


# ----------------------------------------------------------------------------------------
# Reader and container.
# ----------------------------------------------------------------------------------------

HEADER = "row,m_chi10_GeV,N11,N12,N13,N14,nlo_pdf_unc_fb,nlo_alphas_up_fb,split"
ROWS = (
    "0,120.5,0.5,-0.5,0.5,0.5,0.001,0.25,0",
    "1,-300,1.0,0,0,0,2e-4,3e-3,1",
    "4,80.25,0,1.0,0,0,0.1,12,2",
)


def write_table(folder, *, header=HEADER, rows=ROWS):
    path = folder / "table.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_reader_reads(tmp_path):
    data = read_cross_sections(write_table(tmp_path))
    np.testing.assert_array_equal(data.x[1], [-300.0, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(data.y, [0.25, 3e-3, 12.0])
    np.testing.assert_array_equal(data.split, [0, 1, 2])
    assert data.feature_names == ("m_chi10_GeV", "N11", "N12", "N13", "N14")
    assert data.target_name == "nlo_alphas_up_fb"
    assert data.validation[1].tolist() == [3e-3]


def test_reader_other_target_and_blank_lines(tmp_path):
    path = write_table(tmp_path, rows=(ROWS[0], "", ROWS[2], ""))
    data = read_cross_sections(str(path), "nlo_pdf_unc_fb")
    np.testing.assert_array_equal(data.y, [0.001, 0.1])
    assert data.target_name == "nlo_pdf_unc_fb"


def test_reader_without_split_makes_all_rows_train(tmp_path):
    header = HEADER.removesuffix(",split")
    path = write_table(tmp_path, header=header, rows=[row[:-2] for row in ROWS])
    assert read_cross_sections(path).train[1].shape == (3,)


def test_reader_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.csv"):
        read_cross_sections(tmp_path / "absent.csv")


def test_reader_missing_column_says_which_are_there(tmp_path):
    path = write_table(tmp_path)
    with pytest.raises(ValueError, match=r"no column xsec_fb; its columns are row, m_chi10_GeV"):
        read_cross_sections(path, target="xsec_fb")


@pytest.mark.parametrize("cell", ["abc", "", "nan", "inf", "1.0.0"])
def test_reader_names_line_and_column_of_a_bad_cell(tmp_path, cell):
    path = write_table(tmp_path, rows=(ROWS[0], f"1,-300,1.0,0,{cell},0,2e-4,3e-3,1"))
    with pytest.raises(ValueError, match=r"line 3, column N13: expected a finite number"):
        read_cross_sections(path)


@pytest.mark.parametrize("code", ["3", "-1", "train", "0.5", ""])
def test_reader_unknown_split_code(tmp_path, code):
    path = write_table(tmp_path, rows=(ROWS[0][:-1] + code,))
    message = "split must hold the integers|line 2, column split: expected a finite number"
    with pytest.raises(ValueError, match=message):
        read_cross_sections(path)


def test_reader_wrong_number_of_cells(tmp_path):
    path = write_table(tmp_path, rows=(ROWS[0], "1,2,3"))
    with pytest.raises(ValueError, match="line 3: expected 9 cells as in the header, got 3"):
        read_cross_sections(path)


def test_reader_repeated_column(tmp_path):
    path = write_table(tmp_path, header=HEADER.replace("row,", "N11,"))
    with pytest.raises(ValueError, match="2 columns N11"):
        read_cross_sections(path)


def test_reader_no_header_or_no_rows(tmp_path):
    with pytest.raises(ValueError, match="is empty"):
        read_cross_sections(write_table(tmp_path, header="", rows=()))
    with pytest.raises(ValueError, match="no rows"):
        read_cross_sections(write_table(tmp_path, rows=()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros(3)}, "x must have shape"),
        ({"y": np.zeros(2)}, "y must have shape"),
        ({"split": np.zeros((3, 1), int)}, "split must have shape"),
        ({"feature_names": ("a",)}, "x must have shape"),
        ({"split": np.zeros(3)}, "split must hold the integers"),
        ({"split": np.array([0, 1, 7])}, "split must hold the integers"),
    ],
)
def test_dataset_refuses_what_does_not_fit(change, message):
    fields = {
        "x": np.zeros((3, 2)),
        "y": np.zeros(3),
        "feature_names": ("a", "b"),
        "target_name": "c",
        "split": np.zeros(3, int),
    }
    with pytest.raises(ValueError, match=message):
        Dataset(**(fields | change))


@pytest.mark.realdata
def test_published_table():
    folder = os.environ.get("TFBNN_DATA")
    if not folder:
        pytest.skip("set TFBNN_DATA to the folder of the data")
    data = read_cross_sections(Path(folder) / "nlo_neutralino" / "chi10chi10.csv")
    assert data.x.shape == (13847, 5)
    assert np.bincount(data.split).tolist() == [11746, 535, 1566]
    np.testing.assert_allclose(np.sum(data.x[:, 1:] ** 2, axis=1), 1.0, atol=1e-4)
    # Not the same quantity as the generated one, but the same physics: their ratio stays
    # near one while the cross sections themselves span many orders of magnitude.
    usable = np.abs(data.x[:, 0]) > pair.MIN_MASS_GEV
    leading = pair.pair_cross_section_fb(data.x[usable, 0], data.x[usable, 1:])
    ratio = data.y[usable] / leading
    low, high = np.quantile(ratio, [0.01, 0.99])
    assert 0.7 < low < high < 1.5
