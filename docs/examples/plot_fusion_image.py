"""
Regions of a photograph by brightness and texture
=================================================

Patches of a photograph can be compared by their brightness, and by their stripes, which can be fine
or coarse, and have different directions. This gives thirteen similarities of the same patches.
Lange and Buhmann fuse such similarities to divide images into regions (Figures 2 and 3 of their
paper). Their images are not available, so this example divides the two photographs that come with
scikit-learn. The true regions are not known, so judge by the pictures.
"""

import warnings
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.signal import fftconvolve
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_sample_image
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from nmfcluster import KernelStack, SimilarityFusionNMF
from nmfcluster.display import SourceWeightsDisplay, StabilityDisplay
from nmfcluster.metrics import clustering_accuracy, match_labels
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

# %%
# Histograms around sites
# -----------------------
# A Gabor filter is a wave in a Gaussian window. It responds to stripes of its own wavelength and
# direction. The patches are the neighbourhoods of *sites*, which are the points of a grid, 8 pixels
# apart. Each site has thirteen histograms of ten bins. One describes the intensities around the
# site. The others describe the responses of twelve filters, with three wavelengths and four
# directions.

# pixels between sites, bins, standard deviation of a neighbourhood
STEP, BINS, REACH = (8, 10, 6)
NAMES = ["intensity"] + [f"{w} px, {a}°" for w in (4, 8, 16) for a in (0, 45, 90, 135)]


def gabor(wavelength, degrees):
    """Return a filter whose response to a constant is 0."""
    size, angle = int(1.2 * wavelength), np.deg2rad(degrees)
    y, x = np.mgrid[-size : size + 1, -size : size + 1]
    window = np.exp(-2 * (x**2 + y**2) / wavelength**2)
    wave = np.exp(2j * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / wavelength)
    return window * (wave - (window * wave).sum() / window.sum())


def histograms(image):
    """Return local histograms, (rows, columns, bins); each bin holds a tenth of the image."""
    bins = np.searchsorted(np.quantile(image, np.arange(1, BINS) / BINS), image)
    here = slice(STEP // 2, None, STEP)
    rows = [
        gaussian_filter1d((bins == b).astype(np.float32), REACH, axis=0)
        for b in range(BINS)
    ]
    return np.stack(
        [gaussian_filter1d(r[here], REACH, axis=1)[:, here] for r in rows], axis=-1
    )


def describe(photo):
    """Return all histograms of all sites, (sites, 13 * bins), and the shape of the grid."""
    grey = photo @ [0.299, 0.587, 0.114]
    mirrored = np.pad(grey, 40, mode="reflect")
    images = [grey]
    for wavelength in (4, 8, 16):
        for degrees in (0, 45, 90, 135):
            response = fftconvolve(mirrored, gabor(wavelength, degrees), mode="same")
            images.append(abs(response[40:-40, 40:-40]))
    found = np.stack([histograms(image) for image in images], axis=2)
    return found.reshape(-1, 13 * BINS), found.shape[:2]


# %%
# Similarities
# ------------
# The similarity of two histograms is exp(-JS), where JS is their Jensen-Shannon divergence. This
# similarity is never below a half, so even different patches are similar. To separate them, this
# example uses a power of the similarity, with the exponent 30. The paper uses the exponent 1, and
# the last section shows that result. Each of the thirteen similarities is a *source* of the fusion.
# It compares one histogram, which is ten columns of the features.


def jensen_shannon(P, Q, power=30):
    """Return exp(-power * JS) of the rows of P and those of Q."""
    own = -xlogy(P, P).sum(axis=1)[:, None] - xlogy(Q, Q).sum(axis=1)
    both = np.empty_like(own)
    for i in range(0, len(P), 64):  # blocks that fit into the cache
        M = (P[i : i + 64, None] + Q) / 2
        both[i : i + 64] = -np.einsum("ijb,ijb->ij", M, np.log(np.maximum(M, 1e-30)))
    return np.exp(-power * np.maximum(both - own / 2, 0))


columns = [slice(BINS * i, BINS * (i + 1)) for i in range(13)]
kernels = KernelStack(
    [(n, jensen_shannon, c) for n, c in zip(NAMES, columns, strict=True)]
)

# %%
# Fit 500 sites, predict 4,240
# ----------------------------
# As in the paper, 500 random sites are fitted, and all sites are predicted. This example compares
# three methods:
#
# - The defaults. They compare the similarity of two sites with the value that is expected by
#   chance, which is large if both sites are similar to many others.
# - The criterion of the paper, ``criterion="kl"``, which uses the similarities as they are. It
#   needs an `eta`. A search chooses the most stable one: for each value, the model is fitted to 20
#   random fifths of the 500 sites.
# - Normalised cut of the mean similarity. It clusters the 500 sites, but cannot predict. Each site
#   therefore gets the cluster whose members have the largest mean similarity to it.

warnings.filterwarnings("ignore", category=ConvergenceWarning)
ETAS = [np.inf, 1, 0.3, 0.1]


def draw(sites):
    """Return 500 of the sites."""
    return np.sort(np.random.default_rng(0).choice(len(sites), 500, replace=False))


def search_eta(stack, n_clusters, etas):
    """Return a search for the most stable eta."""
    search = GridSearchCV(
        SimilarityFusionNMF(n_clusters, criterion="kl", n_init=1, random_state=0),
        {"eta": etas},
        scoring=StabilityScorer(20, subsample_size=0.2, details=True),
        cv=FullSampleSplit(),
        refit="stability",
    )
    return search.fit(stack)


def normalised_cut(stack, to_all, n_clusters):
    """Return clusters of all sites by spectral clustering of the fitted ones."""
    cut = SpectralClustering(n_clusters, affinity="precomputed", random_state=0)
    members = np.eye(n_clusters)[cut.fit_predict(np.mean(stack.sources, axis=0))]
    return (np.mean(to_all.sources, axis=0) @ (members / members.sum(axis=0))).argmax(
        axis=1
    )


def segment(sites, n_clusters):
    """Return a model with the defaults, the search, and three segmentations."""
    drawn = draw(sites)
    stack = kernels.fit_transform(sites[drawn])
    to_all = kernels.transform(sites)
    search = search_eta(stack, n_clusters, ETAS)
    model = SimilarityFusionNMF(n_clusters).fit(stack)
    found = {
        "the defaults": model.predict(to_all),
        f"kl, eta = {search.best_params_['eta']:g}": search.predict(to_all),
        "normalised cut": normalised_cut(stack, to_all, n_clusters),
    }
    return model, search, found


photos = [load_sample_image(name) / 255 for name in ("china.jpg", "flower.jpg")]
described = [describe(photo) for photo in photos]
results = [segment(sites, k) for (sites, _), k in zip(described, (4, 3), strict=True)]

# %%
# The regions
# -----------
# The figure shows each photograph and three clusterings of it: by the defaults, by the criterion of
# the paper with the most stable `eta`, and by normalised cut. Colours are matched between the three
# clusterings, and have no other meaning.

COLOURS = np.array([[0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167]]) / 255


def tinted(photo, labels, like, grid):
    """Return the photograph in grey, with colours that match the clusters of `like`."""
    matched = match_labels(labels, like).reshape(grid)
    large = matched.repeat(STEP, axis=0).repeat(STEP, axis=1)
    grey = photo[: large.shape[0]].mean(axis=2, keepdims=True)
    return 0.4 * grey + 0.6 * COLOURS[large]


figure, axes = plt.subplots(2, 4, figsize=(7, 2.7), layout="constrained")
for row, photo, (_, grid), (*_, found) in zip(
    axes, photos, described, results, strict=True
):
    row[0].imshow(photo)
    like = next(iter(found.values()))
    for ax, (title, labels) in zip(row[1:], found.items(), strict=True):
        ax.imshow(tinted(photo, labels, like, grid))
        ax.set_title(title, fontsize="medium")
for ax in axes.ravel():
    ax.set_axis_off()
plt.show()

# %%
# With the defaults, the temple with its roofs and walls is one region, and so is the flower. The
# other regions are sky, water and trees. All thirteen similarities agree: if two patches are
# similar by one of them, they tend to be similar by the others, too. The similarities therefore
# have equal weights:

(model, temple, of_temple), (_, flower, of_flower) = results
SourceWeightsDisplay.from_estimator(model)
plt.show()

# %%
# The criterion of the paper weights the sources by how well one model explains them. This is the
# stability of the values of `eta` for the temple:


def show_stability(search):
    """Draw the stability of every eta."""
    ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")[1]
    StabilityDisplay.from_estimator(search, ax=ax)
    plt.show()


show_stability(temple)

# %%
# The weights of the most stable `eta` follow. Nearly all the weight is on fine stripes of one
# direction, so the temple is divided into patches with and without such stripes. Normalised cut
# assigns the outline of the temple to the trees.

SourceWeightsDisplay.from_estimator(temple.best_estimator_)
plt.show()

# %%
# This is how much the other two results differ from those of the defaults:

for name, found in (("temple", of_temple), ("flower", of_flower)):
    first, kl, cut = found.values()
    told = [1 - clustering_accuracy(first, other) for other in (kl, cut)]
    print(
        f"{name}: {told[0]:.1%} of the sites differ from kl, {told[1]:.1%} from the cut"
    )

# %%
# The stability of the values of `eta` for the flower:

show_stability(flower)

# %%
# Equal weights are the most stable. With equal weights, the flower is divided by light and shade,
# much as by normalised cut. With a smaller `eta`, the finest filters have more weight:

drawn = [sites[draw(sites)] for sites, _ in described]
stack = kernels.fit_transform(drawn[1])
for eta in ETAS:
    weights = clone(flower.best_estimator_).set_params(eta=eta).fit(stack).weights_[1:]
    shares = ", ".join(f"{share:.2f}" for share in weights.reshape(3, 4).sum(axis=1))
    print(f"eta = {eta:3}: weights of stripes of 4, 8 and 16 pixels {shares}")

# %%
# In a blurred background, the finest filters respond to noise. The noise is nearly the same
# everywhere, so every clustering explains it equally well. With the criterion of the paper, a large
# weight therefore does not prove that a source is right.

# %%
# The similarity of the paper
# ---------------------------
# With the exponent 1, the losses of the sources are about a hundred times smaller, so `eta` has to
# be smaller by the same factor. These are the results for the temple:

flat = [
    (n, partial(jensen_shannon, power=1), c)
    for n, c in zip(NAMES, columns, strict=True)
]
stack = KernelStack(flat).fit_transform(drawn[0])
equal = SimilarityFusionNMF(4, criterion="kl", eta=np.inf, n_init=1, random_state=0)
for power, sources in {30: kernels.fit_transform(drawn[0]), 1: stack}.items():
    losses = clone(equal).fit(sources).source_losses_
    print(f"power {power:2}: losses from {losses.min():.4f} to {losses.max():.4f}")
table = search_eta(stack, 4, [np.inf, 0.001]).cv_results_
for i, params in enumerate(table["params"]):
    mean, error = table["mean_test_stability"][i], table["mean_test_stability_se"][i]
    print(f"eta = {params['eta']:5}: stability {mean:.3f} ± {error:.3f}")
