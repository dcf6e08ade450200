"""The program `cloche`, also as `python -m cloche`."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # As long as there is nothing to clean up, Ctrl-C ends it without a word, and not with a traceback of imports.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from cloche.cli.main import program

if __name__ == "__main__":
    program()
