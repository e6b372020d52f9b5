"""Benchmarks, with a file for each data set, method and question: `python -m benchmarks --help`."""
