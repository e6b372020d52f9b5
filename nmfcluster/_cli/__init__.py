"""The command line, for those who have files; the demo, for those who have none."""
