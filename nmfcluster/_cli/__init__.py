"""Command line: cluster tables in files, or run the demo."""
