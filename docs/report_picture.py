"""Make docs/report.png: the beginning of the HTML report of a classification of irises.

python docs/report_picture.py [docs/report.png]

Fits 100 of 150 rows with default settings, writes a report on the others, and photographs it with Chromium without a
window, which has to be installed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import tfbnn

CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
SIZE = ["--window-size=1290,1180", "--force-device-scale-factor=0.75"]


def main(picture: Path) -> None:
    """Fit, write the report in a folder beside other temporary files, and make the picture."""
    data = load_iris(as_frame=True)
    x = data.data.rename(columns=lambda name: name.replace("(cm)", "[cm]"))
    y = np.array(data.target_names)[data.target]
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:100], order[100:]
    model = tfbnn.BayesianMLP()
    print(model.fit_posterior(x.iloc[train], y[train], verbose=0).report())
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "flowers.html"
        model.save_report(page, x.iloc[test], y[test])
        subprocess.run(
            [*CHROMIUM, *SIZE, f"--screenshot={picture.resolve()}", page.as_uri()], check=True
        )


if __name__ == "__main__":
    main(Path(*sys.argv[1:] or [Path(__file__).parent / "report.png"]))
