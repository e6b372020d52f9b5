"""Scores of clusterers beside their stability: a file a question."""
