"""Optimization: starting factors, the loop and restarts of solvers, symmetric factorization."""
