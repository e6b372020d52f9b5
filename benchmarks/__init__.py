"""Benchmarks: one file a data set, a method, a question; see `python -m benchmarks --help`."""
