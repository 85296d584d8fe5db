"""`tfbnn calibrate`, and what the other commands say of a calibrated model."""

import json
import re

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows
from tests.support.commands import check_refusal
from tests.support.tables import write_csv
from tfbnn.data.tables import read_table


@pytest.fixture(scope="module")
def folder(folder):
    x, y = make_rows(400, 2, 1, seed=3)
    write_csv(folder / "new.csv", ["a", "b", "y"], np.column_stack([x, y]))
    return folder


def test_calibrate_predict_and_evaluate(run, folder):
    code, out, err = run("calibrate named.h5 new.csv -o calibrated.h5")
    assert (code, err) == (0, "") and "held-out rows" in out and "changed in length by" in out
    model = tfbnn.load(folder / "calibrated.h5")
    assert re.search(rf"by {model.calibration.num_rows} held-out rows", out)
    for more in ("-o with.csv", "--uncalibrated -o without.csv"):
        assert run(f"predict calibrated.h5 points.csv --include-noise {more}")[0] == 0
    with_, without = (read_table(str(folder / name)).values for name in ("with.csv", "without.csv"))
    np.testing.assert_array_equal(with_[:, 0], without[:, 0])
    assert np.all(with_[:, 1] < 0.9 * without[:, 1])  # random networks say more than they know
    code, out, _ = run("evaluate calibrated.h5 new.csv")
    assert code == 0 and re.search(r"Calibrated +by \d+ held-out rows", out)
    scores = json.loads(run("evaluate calibrated.h5 new.csv --json")[1])
    plain = json.loads(run("evaluate calibrated.h5 new.csv --json --uncalibrated")[1])
    assert plain["calibration"] is None and "held-out" in scores["calibration"]
    assert abs(scores["coverage"]["1"] - 0.683) < 0.06 < abs(plain["coverage"]["1"] - 0.683)


def test_info_tells_of_the_calibration(run, folder):
    assert run("calibrate named.h5 new.csv --by stddev -o grouped.h5")[0] == 0
    out = run("info grouped.h5")[1]
    assert re.search(r"Calibrated +by \d+ held-out rows, in 2 groups by stddev", out)
    assert "the longer half of the error bars changed in length by" in out
    assert json.loads(run("info grouped.h5 --json")[1])["calibration"]["by"] == "stddev"
    assert json.loads(run("info named.h5 --json")[1])["calibration"] is None
    told = json.loads(run("calibrate named.h5 new.csv --json -o told.h5")[1])
    assert told["num_rows"] == tfbnn.load(folder / "told.h5").calibration.num_rows > 150
    assert (told["saved"], told["bytes"]) == ("told.h5", (folder / "told.h5").stat().st_size)


def test_what_calibrate_refuses(run, folder):
    check_refusal(run("calibrate named.h5 -o out.h5"), "holds no training rows", "run folder")
    check_refusal(run("calibrate named.h5 new.csv --scale misfit -o out.h5"), "run folder")
    check_refusal(run("calibrate named.h5 new.csv -o named.h5"), "Choose another name")
    check_refusal(run("calibrate named.h5 new.csv -o out.csv"), "'.csv'")
    check_refusal(run("calibrate unnamed.h5 new.csv -o out.h5"), "--target")
    assert not (folder / "out.h5").exists()
