# Generated from ../_async by `python tools/generate_sync.py`: change it there.
"""The library for threads and plain programs."""
