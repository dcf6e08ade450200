"""Finds out what holds on this machine, by trying it, and says how to repair the rest."""
