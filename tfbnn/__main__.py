"""Entry point of `python -m tfbnn`, which is the command `tfbnn`."""

import sys

from tfbnn.cli import main

sys.exit(main())
