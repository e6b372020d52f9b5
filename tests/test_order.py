"""One result, to the bit, for any order of the rows: a law over all estimators."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
)
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions import LandmarkSpectral

# what is not clustered well, or not to the end, has the same result, too
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.* hardly count:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* explain no source better:UserWarning"),
]

N = 90
BLOBS, CLASSES = make_blobs(N, n_features=6, centers=3, cluster_std=4, random_state=0)
RNG = np.random.default_rng(0)
ANSWERS = RNG.integers(3, size=(N, 4)) + (CLASSES[:, None] == 0)
#: measured, and with many ties and copies
TABLES = {
    "measured": BLOBS,
    "rounded": np.round(BLOBS[:, :2] / 4),
    "answers": (ANSWERS[:, :, None] == np.arange(4)).reshape(N, -1).astype(float),
}
FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": lambda X: sp.csr_array(np.where(abs(X) < 1, 0, X)),
    "frame": lambda X: pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])]),
}
QUICK = {"max_iter": 30}


def taken(X, rows):
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


def both(S, rows):
    return S[rows][:, rows]


def in_every_form(fit):
    return {
        f"{fit.__name__} {table} {form}": lambda rows, seed, X=FORMS[form](X): fit(
            taken(X, rows), seed
        )
        for table, X in TABLES.items()
        for form in FORMS
        if form == "float64" or table == "answers"
    }


def consensus(X, seed):
    return NMFConsensus(3, n_estimators=5, random_state=seed, **QUICK).fit(X)


def consensus_of_parts(X, seed):
    model = NMFConsensus(3, n_estimators=15, max_samples=0.6, random_state=seed, **QUICK)
    return model.fit(X)


def spectral(X, seed):
    return LandmarkSpectral(3, n_landmarks=20, random_state=seed).fit(X)


def meta(X, seed):
    return NMFMetaCluster(3, n_estimators=4, random_state=seed, **QUICK).fit(abs(X))


def with_affinity(affinity, **options):
    def fit(X, seed):
        return SSNMFClusterer(3, affinity=affinity, random_state=seed, **options, **QUICK).fit(X)

    fit.__name__ = f"pairs of {affinity if isinstance(affinity, str) else 'a callable'}"
    return fit


def fusion(X, seed):
    return SimilarityFusionNMF(3, affinity=["rbf", "nearest_neighbors"], **QUICK).fit(X)


ALL = {}
for fit in (
    consensus,
    consensus_of_parts,
    spectral,
    meta,
    fusion,
    *map(with_affinity, ("linear", "cosine", "rbf", rbf_kernel)),
):
    ALL |= in_every_form(fit)


# --- and what is not one table of features -----------------------------------------------------

LABELS, _ = make_partitions((40, 30, 20), n_partitions=7, noise=0.3, missing=0.1, random_state=0)
KERNELS = {name: rbf_kernel(X, gamma=0.1) for name, X in TABLES.items()}
PAIRS = PairwiseConstraints.from_labels(CLASSES, n_pairs=60, random_state=0)
WRONG = PairwiseConstraints.from_labels(RNG.permutation(CLASSES), n_pairs=60, random_state=0)
HOLEY = np.where(RNG.uniform(size=BLOBS.shape) < 0.1, np.nan, abs(BLOBS))
WEIGHTS = RNG.integers(3, size=N)
LACKING = BLOBS.copy()
LACKING[::9] = np.nan
STACK = SimilarityStack(
    [
        KERNELS["measured"],
        sp.csr_array(KERNELS["rounded"] * (CLASSES == 0)[:, None] * (CLASSES == 0)),
    ]
)


def given_partitions(rows, seed):
    return NMFConsensus(3, random_state=seed, **QUICK).fit(BLOBS[rows], partitions=LABELS[rows])


def partitions(rows, seed):
    model = NMFConsensus(3, affinity="partitions", random_state=seed, **QUICK)
    return model.fit(LABELS[rows])


def of_density(rows, seed):
    base = DBSCAN(eps=2, min_samples=2)  # which numbers clusters as they come
    return NMFConsensus(3, estimator=base, n_estimators=5, random_state=seed).fit(
        TABLES["rounded"][rows]
    )


def similarity(name, form=np.asarray, model=NMFConsensus, **options):
    def fit(rows, seed):
        made = model(3, affinity="precomputed", random_state=seed, **options, **QUICK)
        return made.fit(form(both(KERNELS[name], rows)))

    return fit


def constrained(name, constraints, **options):
    def fit(rows, seed):
        model = SSNMFClusterer(3, random_state=seed, **options, **QUICK)
        return model.fit(TABLES[name][rows], constraints=constraints[rows])

    return fit


def missing(rows, seed):
    return NMFMetaCluster(3, n_estimators=4, random_state=seed, **QUICK).fit(HOLEY[rows])


def weighted(rows, seed):
    X, weights = abs(TABLES["rounded"])[rows], WEIGHTS[rows]
    model = NMFMetaCluster(3, loss="kullback-leibler", n_estimators=4, random_state=seed, **QUICK)
    return model.fit(X, sample_weight=weights)


def views(rows, seed):
    given = {"one": LACKING[rows], "other": sp.csr_array(TABLES["answers"])[rows]}
    return SimilarityFusionNMF(3, random_state=seed, **QUICK).fit(given)


def sources(**options):
    def fit(rows, seed):
        model = SimilarityFusionNMF(3, random_state=seed, **options, **QUICK)
        return model.fit(STACK[np.ix_(rows, rows)])

    return fit


ALL |= {
    "partitions": partitions,
    "partitions beside features": given_partitions,
    "partitions by density": of_density,
    "similarity": similarity("measured"),
    "similarity of copies": similarity("answers"),
    "sparse similarity": similarity("rounded", sp.csr_array),
    "pairs of a similarity": similarity("answers", model=SSNMFClusterer),
    "pairs of a normalised similarity": similarity(
        "answers", sp.csr_array, SSNMFClusterer, normalize=True
    ),
    "hard pairs": constrained("measured", PAIRS, affinity="rbf"),
    "pairs, copies": constrained("measured", PAIRS, affinity="linear", hard_must_link=False),
    "doubted pairs": constrained("measured", WRONG, affinity="rbf", contradictions="ignore"),
    "meta missing": missing,
    "meta weighted": weighted,
    "views": views,
    "sources": sources(),
    "sources, a part": sources(max_samples=0.7),
    "sources, by landmarks": sources(max_samples=0.7, symmetric=False, eta=0.3),
    "sources, divergence": sources(criterion="kl"),
}


@pytest.mark.parametrize("name", ALL)
def test_order_of_rows_does_not_matter(name):
    for seed in range(2):
        moved = np.random.default_rng(seed).permutation(N)
        expected, found = (ALL[name](rows, seed) for rows in (np.arange(N), moved))
        assert len(np.unique(expected.labels_)) > 1
        assert_array_equal(found.labels_, expected.labels_[moved])
        for attribute in ("membership_", "confidence_", "partitions_", "factor_"):
            if getattr(expected, attribute, None) is not None:
                of_rows = getattr(expected, attribute)
                assert_array_equal(getattr(found, attribute), of_rows[moved], attribute)
        if hasattr(expected, "loss_"):
            assert found.loss_ == expected.loss_
