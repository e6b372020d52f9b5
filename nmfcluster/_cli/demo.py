"""The library at work: a consensus of fifty runs on the handwritten digits of scikit-learn.

``nmfcluster demo [picture.png]`` prints what came out and saves the consensus matrix, where there
is no file yet.
"""

from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from nmfcluster.consensus import NMFConsensus
from nmfcluster.display import ConsensusMatrixDisplay
from nmfcluster.metrics import clustering_accuracy


def main(picture: str = "consensus-digits.png") -> None:
    """Cluster the digits, compare with plain k-means, and save a picture.

    Parameters
    ----------
    picture : str, default="consensus-digits.png"
        Where to save it, if nothing is there.
    """
    X, y = load_digits(return_X_y=True)
    print(f"{len(X)} handwritten digits, {X.shape[1]} pixels, 10 classes")
    began = perf_counter()
    model = NMFConsensus(10, random_state=0).fit(X)
    seconds = perf_counter() - began
    single_runs = [
        KMeans(10, n_init=1, random_state=seed).fit_predict(X) for seed in range(20)
    ]
    best_run = KMeans(10, n_init=10, random_state=0).fit_predict(X)
    rows = {
        "k-means, mean of 20 single runs": single_runs,
        "k-means, best of 10 starts": [best_run],
        "NMFConsensus of 50 runs": [model.labels_],
    }
    print(f"\n{'':38}{'accuracy':>10}{'adjusted Rand':>15}")
    for name, runs in rows.items():
        accuracy = np.mean([clustering_accuracy(y, run) for run in runs])
        rand = np.mean([adjusted_rand_score(y, run) for run in runs])
        print(f"{name:38}{accuracy:10.3f}{rand:15.3f}")
    # A digit is misplaced if its class is not the commonest one of its cluster.
    clusters = range(model.labels_.max() + 1)
    commonest = [np.bincount(y[model.labels_ == c]).argmax() for c in clusters]
    is_wrong = np.take(commonest, model.labels_) != y
    is_unsure = model.confidence_ < np.quantile(model.confidence_, 0.1)
    print(
        f"\nclustered in {seconds:.1f} s; of the tenth of the digits with the least confidence "
        f"{is_wrong[is_unsure].mean():.0%} are misplaced, of the others "
        f"{is_wrong[~is_unsure].mean():.0%}"
    )
    try:
        display = ConsensusMatrixDisplay.from_estimator(model)
        display.ax_.set_title("Consensus of 50 runs on the digits")
        with Path(picture).open("xb") as file:
            display.figure_.savefig(file, format="png", dpi=150, bbox_inches="tight")
        print(f"saved {Path(picture).resolve()}")
    except (ImportError, OSError) as error:
        print(f"no picture: {error}")
