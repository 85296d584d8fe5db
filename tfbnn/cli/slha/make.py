"""Make a folder of cross-section networks, one per process, out of tables or models.

To tables networks are fitted as 'tfbnn fit' does; models are fitted already. What the columns mean stands
in a description in TOML, below. Each fit can be stopped: the same command goes on with it. Until all
networks are there they are in FOLDER.fits.

example of a description, gauginos.toml:
  energy = 13000                     # GeV; what stands before the first process holds for all
  description = "Prospino 2.1, NLO"
  citation = "W. Beenakker et al., Phys. Rev. Lett. 83 (1999) 3780"
  doi = "10.1103/PhysRevLett.83.3780"
  xsection = {qcd_order = 1, pdf_id = 90400}    # for XSECTION blocks: 0 Born, 1 NLO, 2 NLO + NLL

  [[process]]
  pids = [1000022, 1000022]
  table = "chi10chi10.csv"           # rows to fit to; or: model = "chi10chi10.h5"
  target = "nlo_xsec_fb"             # the ending says the unit, else: unit = "pb"
  fit = "--layers 20,20"             # options of 'tfbnn fit', if any
  inputs = {m_chi10_GeV = "MASS 1000022", N11 = "NMIX 1 1", N12 = "NMIX 1 2"}
  errors = {scale = 0.05, pdf = [0.03, 0.02]}   # relative, of other origin: one, or down and up

examples:
  tfbnn slha make gauginos.toml -o gauginos/
  tfbnn slha make sleptons.toml -o gauginos/ --existing add
"""

import argparse
import shlex
from functools import partial
from typing import Annotated

from tfbnn.cli.console import DIAGNOSTICS_FAILED, DONE, say
from tfbnn.cli.options import StrictOptions, add_fields, argument
from tfbnn.cli.outputs import FOLDER, check_output
from tfbnn.cli.slha.fits import Fit
from tfbnn.fit.model import load
from tfbnn.hep.description import ProcessPlan, read_description
from tfbnn.hep.process import Process
from tfbnn.hep.process_folder import EXISTING, check_folder, write_processes


class _Options(StrictOptions):
    """What the command takes.

    Attributes:
        description: What the processes are.
        folder: Folder of processes to write.
        existing: What becomes of processes that FOLDER holds already: refuse (default) to touch it; add
            others to them; update those of the same particles and leave the rest; replace all.
        trusted: Models that the description names are your own: read them in this process.
    """

    description: Annotated[str, argument("DESCRIPTION.toml")]
    folder: Annotated[str, {"flags": ("-o",), "metavar": "FOLDER"}]
    existing: Annotated[str, {"choices": sorted(EXISTING)}] = "refuse"
    trusted: bool = False


add_options = partial(add_fields, owner=_Options)


def run(args: argparse.Namespace) -> int:
    """Fits what is to be fitted, and writes the folder."""
    plans = read_description(args.description)
    inputs = [args.description, *(plan.table or plan.model for plan in plans)]
    check_output(args.folder, FOLDER, inputs)
    check_folder(args.folder, [plan.pids for plan in plans], args.existing)
    fits = {p.pids: Fit(p, args.folder, args.strict) for p in plans if p.model is None}
    # First, so that nothing that cannot become a process costs a fit.
    processes = {p.pids: _process(p, str(p.model), args) for p in plans if p.model is not None}
    codes = [DONE]
    for number, plan in enumerate((plan for plan in plans if plan.pids in fits), 1):
        say(f"Fit {number} of {len(fits)}: {plan.pids}, {plan.target} of {plan.table}.")
        codes.append(fits[plan.pids].run())
        if codes[-1] not in (DONE, DIAGNOSTICS_FAILED):
            say("The same command, tfbnn slha make, goes on with it.")
            return codes[-1]
        processes[plan.pids] = _process(plan, fits[plan.pids].path, args)
    ordered = [processes[plan.pids] for plan in plans]
    write_processes(args.folder, ordered, existing=args.existing)
    for fit in fits.values():
        fit.remove()
    say(f"Wrote {', '.join(map(str, processes))} to {args.folder}.")
    say(f"Next: tfbnn slha eval {shlex.quote(args.folder)} SPECTRA")
    return max(codes)


def _process(plan: ProcessPlan, path: str, args: argparse.Namespace) -> Process:
    is_own = args.trusted or plan.model is None
    return Process(plan.pids, load(path, untrusted=not is_own), **plan.settings)
