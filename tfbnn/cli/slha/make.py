"""Make a folder of cross-section networks, one per process, from models that 'tfbnn fit' made.

A description in TOML, below, names the models and the meaning of their inputs. 'tfbnn slha table' reads the
same description, and its --help shows inputs that are expressions.

example of a description, gauginos.toml:
  energy = 13000                     # GeV; keys before the first process hold for all
  unit = "fb"                        # of the targets, or "pb"
  description = "Prospino 2.1, NLO"
  citation = "W. Beenakker et al., Phys. Rev. Lett. 83 (1999) 3780"
  doi = "10.1103/PhysRevLett.83.3780"
  xsection = {qcd_order = 1, pdf_id = 90400}    # for XSECTION blocks: 0 Born, 1 NLO, 2 NLO + NLL

  [[process]]
  pids = [1000022, 1000022]
  model = "chi10chi10.h5"            # made by: tfbnn fit chi10chi10.csv --target NLO -o chi10chi10.h5
  inputs = {m_chi10_GeV = "MASS 1000022", N11 = "NMIX 1 1", N12 = "NMIX 1 2"}
  errors = {scale = 0.05, pdf = [0.03, 0.02]}   # further relative errors: one number, or down and up

examples:
  tfbnn slha make gauginos.toml -o gauginos/
  tfbnn slha make sleptons.toml -o gauginos/ --existing add
"""

import argparse
import shlex
from typing import Annotated

from tfbnn.cli.arguments import argument
from tfbnn.cli.console import DONE, say
from tfbnn.cli.outputs import FOLDER, check_output
from tfbnn.hep.process_folder import EXISTING, write_processes
from tfbnn.hep.process_toml import read_description


class Options:
    """Options of the command.

    Attributes:
        description: Description of the processes.
        folder: Folder of processes to write.
        existing: Treatment of a FOLDER that holds processes: refuse (default): change nothing and fail;
            add: keep them, and fail if one has the same particles as a new one; update: replace those of
            the same particles and keep the others; replace: remove all.
        trusted: Parse the models without the separate, restricted process that protects from files of
            strangers; only for models of your own.
    """

    description: Annotated[str, argument("DESCRIPTION.toml")]
    folder: Annotated[str, {"flags": ("-o",), "metavar": "FOLDER"}]
    existing: Annotated[str, {"choices": sorted(EXISTING)}] = "refuse"
    trusted: bool = False


def run(args: argparse.Namespace) -> int:
    """Read the models, and write the folder."""
    check_output(args.folder, FOLDER, [args.description])
    processes = read_description(args.description, untrusted=not args.trusted)
    write_processes(args.folder, processes, existing=args.existing, untrusted=not args.trusted)
    say(f"Wrote {', '.join(str(process.pids) for process in processes)} to {args.folder}.")
    say(f"Next: tfbnn slha eval {shlex.quote(args.folder)} SPECTRA")
    return DONE
