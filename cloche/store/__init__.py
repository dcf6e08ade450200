"""What is kept: in SQLite below CLOCHE_HOME."""
