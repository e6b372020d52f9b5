"""Base clusterers that fail. Worker processes import them, which they cannot from a test file."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin


class Failing(ClusterMixin, BaseEstimator):
    """Finds three clusters, unless the seed is one of those that `fail` is called for."""

    def __init__(self, n_clusters=3, random_state=None, fails=True):
        self.n_clusters = n_clusters
        self.random_state = random_state
        self.fails = fails

    def fit(self, X, y=None):
        if self.fails:
            self.fail()
        self.labels_ = np.argmax(X, axis=1) % 3
        return self


class Raising(Failing):
    def fail(self):
        raise ArithmeticError(f"the run with seed {self.random_state} cannot go on")


class Harmful(Failing):
    """Does nothing in the process of the tests."""

    def __init__(
        self, n_clusters=3, random_state=None, fails=True, parent=None, mark=None
    ):
        super().__init__(n_clusters, random_state, fails)
        self.parent = parent
        self.mark = mark

    def fail(self):
        assert os.getpid() != self.parent, "this is the process of the tests"
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))  # the first run alone
        except FileExistsError:
            time.sleep(60)  # it is not waited for
        else:
            self.harm()


class Killed(Harmful):
    """Is killed in a worker process, as by a system that is short of memory."""

    def harm(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Interrupting(Harmful):
    """Interrupts the process that works for the user from a worker."""

    def harm(self):
        os.kill(self.parent, signal.SIGINT)


class Fatal(Failing):
    """Kills every worker that it comes to."""

    def fail(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Slow(Failing):
    """Takes its time, and leaves a file in a folder for every run that has begun."""

    def __init__(self, n_clusters=3, random_state=None, fails=True, folder=None):
        super().__init__(n_clusters, random_state, fails)
        self.folder = folder

    def fail(self):
        if self.folder is not None:
            (Path(self.folder) / str(self.random_state)).touch()
        time.sleep(0.3)


class Unsendable(Failing):
    """Holds what cannot be pickled, once it is fitted."""

    def fail(self):
        self.lock_ = threading.Lock()
