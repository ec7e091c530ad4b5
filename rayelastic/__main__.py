"""`python -m rayelastic`: the command line."""

from __future__ import annotations

import sys

from rayelastic.commands.entry import main

if __name__ == "__main__":
    sys.exit(main())
