"""`python -m shoal.cli`: the same as the command `shoal`."""

import sys

from shoal.cli import main

sys.exit(main())
