"""`python -m cloche` is `cloche`."""

import sys

from cloche.cli.main import main

sys.exit(main())
