"""The library for asyncio."""
