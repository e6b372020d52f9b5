"""How many clusters samples have, by criteria that see different things, and their vote."""
