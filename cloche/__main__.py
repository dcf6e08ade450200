"""`python -m cloche` is `cloche`."""

from cloche.cli.main import program

program()
