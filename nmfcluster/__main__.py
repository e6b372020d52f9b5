"""What `python -m nmfcluster` runs: the same as the command `nmfcluster`."""

from nmfcluster._cli.main import main

if __name__ == "__main__":
    main()
