"""`python -m trainvitals …` is `trainvitals …`, where the command itself is not on the path."""

import sys

from trainvitals.cli import main

if __name__ == "__main__":
    sys.exit(main())
