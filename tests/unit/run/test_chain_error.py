"""The error of failed chains says each cause once, and how to go on where that is possible."""

from tfbnn.exceptions import RunFolderError
from tfbnn.run.result import chain_error


def test_chains_of_one_cause_are_named_together(tmp_path):
    failures = {(0,): RunFolderError("Gone."), (1, 2): RunFolderError("Gone."), (3,): OSError("x")}
    error = chain_error(failures, tmp_path)
    assert "chain 0, 1, 2: RunFolderError: Gone; chain 3: OSError: x. The draws" in str(error)
    assert f"tfbnn resume {tmp_path}" in str(error)
    assert error.__cause__ is failures[0,]


def test_nobody_is_sent_to_a_folder_that_is_gone(tmp_path):
    assert "tfbnn resume" not in str(chain_error({(0,): OSError("x")}, tmp_path / "gone"))
    assert "tfbnn resume" not in str(chain_error({(0,): OSError("x")}, None))
