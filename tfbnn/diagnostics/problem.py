"""Problems of a run: their severity, and remedies in the words of Python or of the command line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, IntEnum

import numpy as np

from tfbnn.diagnostics.wording import wrapped


class Severity(IntEnum):
    """Severity of a problem: it makes nothing, the error bars, means and error bars, or all unusable."""

    NOTHING = 0
    ERROR_BARS = 1
    MEANS = 2
    DRAWS = 3


class About(Enum):
    """Subject of a problem; problems of an earlier subject explain those of a later one."""

    MOVEMENT = 0
    CHAINS = 1
    MODEL = 2


# Factor by which a time limit was too short if it ended or shortened the warm-up.
TIMES_TO_WARM_UP = 3.0


@dataclass(frozen=True)
class Interface:
    """Words of advice, those of Python or of the command line.

    Attributes:
        is_command_line: Whether to name commands and options; else calls and arguments.
        folder: The run folder, or None if there is none, so that only a new fit gives more draws.
        model_file: Path at which the command saves the model, or None if unknown.
        max_seconds: Time limit of the run, or None.
        is_out_of_time: Whether the limit ended the run.
        command: The command of the fit, whose options are overridden by later ones; "" if unknown.
        sampling_seconds: Seconds of warm-up and sampling, which more draws take again.
    """

    is_command_line: bool = False
    folder: str | None = None
    model_file: str | None = None
    max_seconds: float | None = None
    is_out_of_time: bool = False
    command: str = ""
    sampling_seconds: float = 0.0

    def of_run(
        self, until: str | None, ended: str | None, sampled: float | None = None
    ) -> Interface:
        """Return the interface of a run with this stopping rule and this reason for its end.

        `sampled` are the seconds of warm-up and sampling. If they are unknown, all of the limit counts.
        """
        limit = re.search(r"max_seconds=([0-9.e+-]+)", until or "")
        if limit is None:
            return self
        seconds, is_over = float(limit[1]), "max_seconds" in (ended or "")
        own = replace(self, max_seconds=seconds, is_out_of_time=is_over)
        return replace(own, sampling_seconds=sampled or seconds)

    @property
    def details(self) -> str:
        """The command or call that gives the full report."""
        if self.is_command_line:
            file = shlex.quote(self.model_file or "MODEL.h5")
            return f"--verbose 2, or later: tfbnn diagnose {file}"
        return "run.report(details=True)"

    def more(self, num_results: int | None, times: float) -> str:
        """Return advice on more draws or a longer warm-up; "" if there is none.

        Args:
            num_results: Draws per chain, which are `times` as many as there are. None: only if time
                ended the run, a new fit with `times` the time. Its warm-up is longer then, while a
                resumed run keeps what was tuned.
            times: The factor; 0 for none.
        """
        longer = self._longer(times, self.sampling_seconds)
        if num_results is None:
            return self._same_fit(longer) if times and self.is_out_of_time else ""
        return self._go_on(longer if self.is_out_of_time else {"num_results": num_results} | longer)

    def more_time(self) -> str:
        """Return advice on a run whose time was over before it had draws."""
        return self._go_on(self._longer(TIMES_TO_WARM_UP, self.max_seconds or 0.0))

    def _go_on(self, options: dict[str, int]) -> str:
        if self.folder is None:
            return self._same_fit(options)
        if not self.is_command_line:
            return f"tfbnn.resume({self.folder!r}, {_as_arguments(options)})"
        # A run folder that a fit chose by itself is named after its model.
        own, ending = os.path.splitext(self.folder.rstrip("/"))
        file = self.model_file or (own if ending == ".run" else "MODEL.h5")
        command = f"tfbnn resume {shlex.quote(self.folder)} {_as_options(options)}"
        return f"{command} -o {shlex.quote(file)}"

    def _longer(self, times: float, repeated_seconds: float) -> dict[str, int]:
        if self.max_seconds is None:
            return {}
        more = (max(times, 2.0) - 1.0) * repeated_seconds
        return {"max_seconds": round_up(self.max_seconds + more)}

    def _same_fit(self, options: dict[str, int]) -> str:
        if self.is_command_line:
            command = self.command or "the command of the fit with"
            if "max_seconds" in options:  # it may be given only once
                alone = r" --max-seconds[ =][^ ]+| --until[ =]max_seconds=[^ ,]+(?= |$)"
                command = re.sub(rf"{alone}|,max_seconds=[^ ,]+|max_seconds=[^ ,]+,", "", command)
            return f"{command} {_as_options(options)}"
        return f"fit_posterior with {_as_arguments(options)}"


def _as_options(options: dict[str, int]) -> str:
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())


def _as_arguments(options: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


def round_up(number: float) -> int:
    """Round a number up to one digit other than zero, as its other digits do not matter."""
    unit = 10 ** max(int(np.floor(np.log10(number))), 0)
    return int(np.ceil(number / unit) * unit)


PYTHON = Interface()

# Patterns of advice in Python, and its words on the command line; settings that follow become options.
_ON_COMMAND_LINE = {
    r"model\.evaluate\(x_held_out, y_held_out\)": "tfbnn evaluate MODEL.h5 HELD_OUT_ROWS.csv",
    r"model\.calibrate (.*), or with method='loo'": r"tfbnn calibrate \1",
    r"model\.stack_chains": "tfbnn stack MODEL.h5 VALIDATION.csv -o STACKED.h5",
    r"model\.predict\(model\.posterior\.x_reference\)": "tfbnn predict",
    r"if the chains still disagree, model\.basins.*": "",  # text after a command would become part of it
    r"step_size=None": "none",
    r"likelihood=StudentT\(\) or HeteroscedasticGaussian\(\)": "--likelihood student_t or heteroscedastic",
    r"noise_scale: (.*) units of y": r"--noise-column: \1 units of the target",
    r"likelihood=Gaussian\('learned'\)": "--noise-scale learned",
    r"likelihood=NegativeBinomial\(\)": "--likelihood negative_binomial",
    r"likelihood=Poisson\(\)": "--likelihood poisson",
    r"prior=HierarchicalNormal\(.*\)": "--prior hierarchical",
    r"kernel=NUTS\((.*)\)": r"--kernel nuts \1",
    r"kernel=HMC\((.*)\)": r"--kernel hmc \1",
    r"fit_posterior\((?:pretraining=\S+\()?(\w+)=\.\.\)+": r"tfbnn fit with \1_",
    r"kernel=tfbnn\.kernels\.HMC\((\w+)=\.\.\)": r"tfbnn fit --kernel hmc \1_",
    r"prior=tfbnn\.priors\.Normal\(scale=\.\.\)": "tfbnn fit --prior-scale",
    r"noise_scale= to the fit": "tfbnn fit --noise-column",
    r"model\.predict\(x, quantiles=.*": "tfbnn predict --quantiles 0.16,0.84 gives them.",
    r"model\.evaluate\(x, y\)": "tfbnn evaluate",
}


def on_command_line(text: str) -> str:
    """Translate advice from calls and arguments of Python to commands and options."""
    for pattern, command in _ON_COMMAND_LINE.items():
        text = re.sub(pattern, command, text)
    text = re.sub(r"(?<![\w-])([a-z_]+)='?([\w.]+)'?", r"\1_ \2", text)  # "step_size_ 0.1"
    names = r"(?<![\w-])(?!student_t\b|negative_binomial\b)([a-z]+(?:_[a-z]+)*_|[a-z]+(?:_[a-z]+)+)(?!\w)"
    return re.sub(names, lambda found: f"--{found[0].rstrip('_').replace('_', '-')}", text)


@dataclass(frozen=True)
class Remedy:
    """Advice on what to do next.

    Attributes:
        text: The advice, in calls and arguments of Python.
        num_results: Draws per chain to go on to, named before `text`; or None.
        times: Factor from the present draws to these; without num_results, factor by which a time
            limit that ended the run should have been longer.
    """

    text: str = ""
    num_results: int | None = None
    times: float = 0.0

    def words(self, interface: Interface) -> str:
        """Return the advice in the words of an interface."""
        more = interface.more(self.num_results, self.times)
        other = on_command_line(self.text) if interface.is_command_line else self.text
        return "; ".join(text for text in (more, other) if text)


ABOVE_FIRST = Remedy("first fix the problems above")


@dataclass(frozen=True)
class Problem:
    """A problem of a run.

    Attributes:
        what: The problem and its size, in a short sentence without a full stop.
        remedy: Remedy.
        severity: What it makes unusable.
        why: Its meaning, in sentences that are shown on request.
        about: Subject of the problem.
    """

    what: str
    remedy: Remedy
    severity: Severity = Severity.ERROR_BARS
    why: str = ""
    about: About = About.CHAINS

    def sentences(self, interface: Interface, details: bool = True) -> str:
        """Return the problem, its meaning if requested, and the next step."""
        return f"{self._says(details)} Next: {self.remedy.words(interface)}"

    def lines(self, interface: Interface, width: int, details: bool = False) -> str:
        """Return `sentences` broken at `width`, with the next step by itself if one line is not enough."""
        text = f"! {self.sentences(interface, details)}"
        if len(text) <= width:
            return text
        says = wrapped("! ", self._says(details), width)
        return f"{says}\n{step_lines('  Next: ', self.remedy.words(interface), width)}"

    def _says(self, details: bool) -> str:
        return f"{self.what}. {self.why}" if details and self.why else f"{self.what}."


def step_lines(label: str, words: str, width: int) -> str:
    """Break advice at `width`; the lines of a command stay one command for a shell."""
    if not words.startswith("tfbnn "):
        return wrapped(label, words, width)
    quoted = re.sub(r"'[^']*'", lambda found: found[0].replace(" ", "\0"), words)
    command, *others = quoted.split("; ")
    lines = [wrapped(label, command, width - 2).replace("\n", " \\\n")]
    lines += [wrapped(" " * len(label), f"or {other}", width) for other in others]
    return "\n".join(lines).replace("\0", " ")


def verdict_of(problems: Iterable[Problem]) -> Severity:
    """Return the largest severity of some problems."""
    return max((problem.severity for problem in problems), default=Severity.NOTHING)
