"""Pages of docs/guide about priors: their programs run, and print the text of the page."""

import numpy as np
import pytest

from tests.support.documents import DOCS, run_document


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning")
def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for page in ("priors", "prior_scales", "batches"):
        run_document(f"guide/{page}.md")
    names = run_document("guide/custom.md")
    printed, text = capsys.readouterr().out, (DOCS / "guide" / "custom.md").read_text()
    for words in ("Forgetful: normalisation", "'own.h5': it uses"):
        (line,) = [line for line in printed.splitlines() if line.startswith(words)]
        assert f"\n{line}\n" in text
    above, below = (names[name] for name in ("high", "low"))
    assert np.mean(above - names["middle"]) > 1.2 * np.mean(names["middle"] - below)
    assert (tmp_path / "own.h5").exists()
