"""Functions for arrays, label vectors, user input and threads, which cluster nothing."""
