"""`tfbnn resume`: go on with a run from its folder."""

__all__ = ["add_parser"]

_DESCRIPTION = """\
Go on with an interrupted run from its run folder. Run folders are not available in this version."""


def add_parser(commands):
    """Adds the command to argparse's subparsers."""
    parser = commands.add_parser(
        "resume", help="go on with an interrupted run (not in this version)",
        description=_DESCRIPTION,
    )  # fmt: skip
    parser.add_argument("folder", metavar="RUNDIR", help="folder given as --output to 'tfbnn fit'")
    parser.set_defaults(run=run)


def run(args):
    """Refuses."""
    raise ValueError(
        f"Run folders are not available in this version, received {args.folder}. "
        "Run 'tfbnn fit' with -o, which saves what was sampled also when it is interrupted."
    )
