"""Blocks that workers of a cluster have trouble with: they import this file."""

import os
import signal
import time
from pathlib import Path

import numpy as np


def read(path, block_info=None):
    """Return the rows of a file that a block of Dask's `map_blocks` is made of."""
    (first, last), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[first:last])


def killing(block, folder, phase):
    """Kill the worker that reads the block for the n-th time, once."""
    folder = Path(folder)
    (folder / f"{time.time_ns()}").touch()
    last = folder / "killed"
    if len(list(folder.iterdir())) > phase and not last.exists():
        last.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def slow(block, folder):
    """Take half a second for a block, and leave a file in a folder."""
    (Path(folder) / f"{time.time_ns()}").touch()
    time.sleep(0.5)
    return block
