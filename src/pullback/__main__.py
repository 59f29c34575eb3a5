"""`python -m pullback` is the command `pullback`."""

import sys

from pullback.cli import main

sys.exit(main())
