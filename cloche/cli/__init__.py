"""The command line: a file a command, imported when it is called."""
