"""The library: `_async` is written, `_sync` is generated from it by tools/generate_sync.py."""
