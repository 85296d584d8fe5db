"""Table and figure of benchmarks/coarsening.py."""

from common import markdown

from tfbnn.plots.canvas import BLUE, GREY, ORANGE, styled_figure

__all__ = ["figure", "report"]

INTRODUCTION = (
    "One ladder per problem; each power of the likelihood is that of one of its rungs. R-hat of the "
    "function at the reference inputs, which are training rows: its 95 % quantile, and the share of "
    "them below 1.05. Scores of test rows in transformed units (RMSE, log predictive density per row); "
    "calibrated: after `model.calibrate` by validation rows. Spread: median standard deviation of "
    "the function; noise: median noise scale. A ladder ends after 200 s, pretraining and compilation "
    "included, with the draws it has, which the headings say: what does not mix here might in a longer "
    "run, and R-hat of fewer than 100 draws is rough."
)
HEADER = (
    "power",
    "R-hat 95 %",
    "below 1.05",
    "RMSE",
    "spread",
    "noise",
    "log density",
    "calibrated",
    "within 1 sigma",
    "calibrated",
)


def report(rows):
    """The tables as Markdown: rows by problem."""
    return "\n\n".join(["# Coarsening curves", INTRODUCTION, *map(_problem, rows.values())])


def _problem(row):
    scores, lines = row["scores"], []
    for rung, power in enumerate(row["powers"]):
        after = row["calibrated"][rung]
        before, calibrated = after["coverage"]
        lines.append(
            (
                f"{power:.2g}",
                f"{row['rhat_q95'][rung]:.3f}",
                f"{row['share_mixed'][rung]:.2f}",
                f"{scores['rmse_transformed'][rung]:.4f}",
                f"{after['spread']:.4f}",
                f"{after['noise']:.4f}",
                f"{scores['log_predictive_density_transformed'][rung]:.2f}",
                f"{after['lpd']:.2f}",
                f"{before:.3f}",
                f"{calibrated:.3f}",
            )
        )
    text = [f"## {row['setting']}", _conclusion(row), markdown(HEADER, lines)]
    return "\n\n".join(text)


def _conclusion(row):
    power, seconds = row["largest_power"], sum(row["seconds"].values())
    found = "no power" if power is None else f"largest power {power:.2g}"
    swaps = row["swap_acceptance"]
    text = f"R-hat below 1.05 at 95 % of the reference inputs: {found}. "
    text += f"Swaps accepted {min(swaps):.2g} to {max(swaps):.2g}; {seconds:.0f} s."
    if "rmse_log10" in row["scores"]:
        rmse = row["scores"]["rmse_log10"]
        text += f" RMSE(log10) {rmse[-1]:.4f} at power 1"
        if power is not None:
            text += f", {rmse[row['powers'].index(power)]:.4f} at the largest that mixes"
        text += "."
    return text


def figure(rows, path):
    """Agreement, error and density against the power, a column for each problem."""
    with styled_figure(3, len(rows), (5.5, 3.0), sharex="col") as (canvas, panels):
        for column, (name, row) in zip(panels.T, rows.items()):
            _draw_column(column, name, row)
        canvas.savefig(path, dpi=110)


def _draw_column(column, name, row):
    agreement, error, density = column
    powers, scores, after = row["powers"], row["scores"], row["calibrated"]
    agreement.plot(powers, row["rhat_q95"], "-o", color=BLUE)
    agreement.axhline(1.05, color=GREY, linestyle=":", label="R-hat 1.05")
    agreement.set(title=name, ylabel="R-hat, 95 % of the inputs")
    error.plot(powers, scores["rmse_transformed"], "-o", color=ORANGE, label="RMSE")
    error.plot(powers, [found["spread"] for found in after], "--s", color=BLUE, label="spread")
    error.set(yscale="log", ylabel="transformed units")
    plain = scores["log_predictive_density_transformed"]
    density.plot(powers, plain, "-o", color=ORANGE, label="as sampled")
    density.plot(powers, [found["lpd"] for found in after], "--s", color=BLUE, label="calibrated")
    density.set(ylabel="log predictive density per row", xlabel="power of the likelihood")
    for axes in column:
        axes.set_xscale("log")
        axes.grid(alpha=0.3)
        if row["largest_power"] is not None:
            axes.axvline(row["largest_power"], color=GREY, label="largest power that mixes")
        axes.legend(fontsize="small")
