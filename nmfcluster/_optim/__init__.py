"""What runs every solver: the starts, the loop, the restarts, and symmetric factorization."""
