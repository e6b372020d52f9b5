"""Functions for arrays, label vectors, user input and parallel work."""
