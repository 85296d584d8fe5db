"""`python -m tfbnn` is the command `tfbnn`."""

import sys

from tfbnn.cli import main

sys.exit(main())
