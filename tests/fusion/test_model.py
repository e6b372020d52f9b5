"""The updates of fusion against loops over sources, objects and clusters, and what they promise."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.fusion.model import (
    FusionObjective,
    _accelerated,
    em_step,
    entropy,
    eta_of_perplexity,
    fusion_nmf,
    gibbs_weights,
)

law = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)
both_forms = pytest.mark.parametrize("n_factors", [1, 2], ids=["symmetric", "two factors"])


# The oracles: loops over dense arrays.


def literal_model(W, H):
    return sum(np.outer(W[:, c], H[:, c]) for c in range(W.shape[1]))


def literal_losses(arrays, seen, offsets, W, H):
    """Return ``b_l - sum p_ij log(m_ij / M_l)``, M_l the model's mass on what source l saw."""
    model, found = literal_model(W, H), []
    for A, here, offset in zip(arrays, seen.T, offsets, strict=True):
        P, mass, loss = A / A.sum(), model[here][:, here].sum(), offset
        for i, j in np.argwhere(P > 0):
            loss -= P[i, j] * np.log(model[i, j] / mass)
        found.append(loss)
    return np.array(found)


def literal_step(arrays, seen, weights, W, H):
    """Return W and V = H diag(q) of eqs. 3 and 5; what was not seen is imputed from the model."""
    (n, k), model = W.shape, literal_model(W, H)
    new_w, new_v = np.zeros((n, k)), np.zeros((n, k))
    masses = [model[here][:, here].sum() for here in seen.T]
    for i in range(n):
        for j in range(n):
            tau = W[i] * H[j] / sum(W[i] * H[j])
            for source, A in enumerate(arrays):
                known = seen[i, source] and seen[j, source]
                p = A[i, j] / A.sum() if known else model[i, j] / masses[source]
                new_w[i] += weights[source] * p * tau
                new_v[j] += weights[source] * p * tau
    return new_w / new_w.sum(), new_v / new_v.sum()


def literal_weights(losses, eta):
    shares = np.exp(-(losses - losses.min()) / eta)
    return shares / shares.sum()


def literal_objective(losses, eta):
    """Return ``-eta log mean exp(-c / eta)``, and its limits: sums without the entropy."""
    if eta in (0, np.inf):
        return losses.min() if eta == 0 else losses.mean()
    return losses.min() - eta * np.log(np.exp(-(losses - losses.min()) / eta).mean())


# The problems.


def kernel(rng, n, gamma):
    X = rng.normal(size=(n, 2)) + 3 * rng.integers(0, 3, size=(n, 1))
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def graph(rng, n, density=0.2):
    A = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    A[0, 1] = 0.5
    return A + A.T


def bipartite(rng, n):
    A = np.zeros((n, n))
    A[: n // 3, n // 3 :] = rng.uniform(size=(n // 3, n - n // 3))
    return A + A.T


def planted(rng, n):
    labels = rng.permutation(np.arange(n) % 3)
    return (labels[:, None] == labels).astype(float)


def partial(rng, n, arrays):
    """Return the arrays with 0 where an object was not seen, and what was: one object by none."""
    seen = rng.uniform(size=(n, len(arrays))) < 0.75
    seen[:3], seen[3] = True, False
    seen[:, 0] |= np.arange(n) != 3
    return [np.where(np.outer(s, s), A, 0) for A, s in zip(arrays, seen.T, strict=True)], seen


def problem(kind, rng, n):
    """Return sources as they are stored, as arrays, and what they saw."""
    arrays = {
        "kernels": lambda: [kernel(rng, n, gamma) for gamma in (0.02, 0.3, 3.0)],
        "graphs": lambda: [graph(rng, n) for _ in range(3)],
        "bipartite": lambda: [bipartite(rng, n), graph(rng, n)],
        "blocks": lambda: [planted(rng, n), planted(rng, n) + 0.1],
        "hollow": lambda: [kernel(rng, n, 0.1) * (1 - np.eye(n)), np.ones((n, n)) - np.eye(n)],
        "mixed": lambda: [kernel(rng, n, 0.2), graph(rng, n), planted(rng, n)],
        "missing": lambda: [kernel(rng, n, gamma) for gamma in (0.02, 0.2, 1.0)],
        "missing graphs": lambda: [graph(rng, n, 0.5) for _ in range(2)],
    }[kind]()
    seen = np.ones((n, len(arrays)), dtype=bool)
    if kind.startswith("missing"):
        arrays, seen = partial(rng, n, arrays)
    sparse = {"graphs": (0, 1, 2), "mixed": (1, 2), "missing graphs": (0, 1)}.get(kind, ())
    stored = [sp.csr_array(A) if i in sparse else A for i, A in enumerate(arrays)]
    return make_mixture(stored, seen), arrays, seen


KINDS = [
    *["kernels", "graphs", "bipartite", "blocks", "hollow", "mixed"],
    *["missing", "missing graphs"],
]
each_kind = pytest.mark.parametrize("kind", KINDS)


def starts_of(rng, n_starts, n_factors, n, k):
    Z = rng.uniform(0.05, 1, size=(n_starts, n_factors, n, k))
    return Z / Z.sum(axis=(2, 3), keepdims=True)


def split(Z):
    """Return W and H of the factors W and V = H diag(q)."""
    return Z[0], Z[-1] / Z[-1].sum(axis=0)


def objective_of(mixture, eta, perplexity=None):
    return FusionObjective(mixture, -mixture.entropies(), eta, perplexity)


def run(objective, Z, n_updates):
    """Return what is yielded after every update."""
    return list(islice(fusion_nmf(objective, Z), n_updates + 1))


# The weights.


@law
@given(seeds, st.integers(2, 3), st.floats(0.05, 20))
def test_gibbs_weights_are_those_that_a_general_solver_finds(seed, n_sources, eta):
    losses = np.random.default_rng(seed).uniform(-3, 3, size=n_sources)

    def value(a):
        return a @ losses + eta * float(np.sum(a * np.log(np.maximum(a, 1e-300))))

    found = minimize(
        value,
        np.full(n_sources, 1 / n_sources),
        bounds=[(1e-12, 1)] * n_sources,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    weights = gibbs_weights(losses, eta)
    assert value(weights) <= found.fun + 1e-9
    assert_allclose(weights, found.x, atol=2e-4)
    one = np.linspace(0, 1, 201)
    grid = np.stack(np.meshgrid(*[one] * (n_sources - 1), indexing="ij"), axis=-1)
    grid = grid.reshape(-1, n_sources - 1)
    grid = np.column_stack([grid, 1 - grid.sum(axis=1)])
    grid = grid[grid[:, -1] >= 0]
    logs = np.log(np.maximum(grid, 1e-300))
    assert value(weights) <= (grid @ losses + eta * (grid * logs).sum(axis=1)).min() + 1e-12


def test_gibbs_weights_at_the_limits_of_eta():
    losses = np.array([2.0, 1.0, 1.5, 1.0])
    assert_array_equal(gibbs_weights(losses, 0), [0, 1, 0, 0])
    for tiny in (5e-324, 1e-300, 1e-10):
        assert_array_equal(gibbs_weights(losses, tiny), [0, 0.5, 0, 0.5])
    for huge in (1e20, 1e300, np.inf):
        assert_allclose(gibbs_weights(losses, huge), 0.25, rtol=1e-15)
    for eta in (0, 1e-300, 1.0, np.inf):
        assert_array_equal(gibbs_weights(np.array([7.0]), eta), [1.0])
    assert_allclose(gibbs_weights(losses + 1e6, 0.5), gibbs_weights(losses, 0.5), rtol=1e-9)


@law
@given(seeds, st.integers(2, 9), st.floats(0, 1))
def test_eta_of_perplexity_hits_the_perplexity(seed, n_sources, share):
    losses = np.random.default_rng(seed).exponential(size=n_sources) * 10.0 ** (seed % 7 - 3)
    wanted = 1 + share * (n_sources - 1)
    weights = gibbs_weights(losses, eta_of_perplexity(losses, wanted))
    assert_allclose(np.exp(entropy(weights)), wanted, rtol=1e-7)


@law
@given(seeds, st.integers(2, 9), st.floats(1, 9), st.floats(1, 9))
def test_eta_of_perplexity_grows_with_it(seed, n_sources, one, other):
    losses = np.random.default_rng(seed).uniform(size=n_sources)
    low, high = np.clip(sorted([one, other]), 1, n_sources)
    assert eta_of_perplexity(losses, low) <= eta_of_perplexity(losses, high) * (1 + 1e-9)


@pytest.mark.parametrize("n_sources", range(1, 30))
def test_eta_of_perplexities_at_the_ends(n_sources):
    losses = np.linspace(0, 2, n_sources)
    assert eta_of_perplexity(losses, n_sources) == np.inf
    assert_array_equal(gibbs_weights(losses, eta_of_perplexity(losses, 1)), np.eye(n_sources)[0])
    almost = np.nextafter(n_sources, 0) if n_sources > 1 else 1.0
    weights = gibbs_weights(losses, eta_of_perplexity(losses, almost))
    assert_allclose(weights, 1 / n_sources, rtol=1e-5)


@pytest.mark.parametrize("n_tied", [2, 3, 5])
@pytest.mark.parametrize("n_others", [0, 1, 4])
@pytest.mark.parametrize("perplexity", [1.0, 1.5, 1.999])
def test_sources_that_tie_share_even_where_they_are_more_than_the_perplexity(
    n_tied, n_others, perplexity
):
    """Then the entropy is larger than asked for, and the mean loss is as small as it can be."""
    losses = np.repeat([1.0, 2.0], [n_tied, n_others])
    weights = gibbs_weights(losses, eta_of_perplexity(losses, perplexity))
    assert_allclose(weights, np.repeat([1 / n_tied, 0], [n_tied, n_others]), atol=1e-12)


# One step.


@both_forms
@pytest.mark.parametrize("storage", ["dense", "sparse", "mixed"])
@pytest.mark.parametrize("n_sources", [1, 2, 3, 4])
def test_step_is_that_of_loops_over_all_sources(n_factors, storage, n_sources):
    rng = np.random.default_rng(n_sources)
    n = 9
    for k, complete in [(1, True), (3, True), (1, False), (3, False), (9, False)]:
        arrays = [graph(rng, n, 0.6) + np.diag(rng.uniform(size=n)) for _ in range(n_sources)]
        seen = np.ones((n, n_sources), dtype=bool)
        if not complete:
            arrays, seen = partial(rng, n, arrays)
        sparse = {"dense": [], "sparse": range(n_sources), "mixed": [0, 2]}[storage]
        stored = [sp.csr_array(A) if i in sparse else A for i, A in enumerate(arrays)]
        mixture = make_mixture(stored, seen)
        weights = rng.dirichlet(np.ones(n_sources))
        Z = starts_of(rng, 1, n_factors, n, k)[0]
        W, H = split(Z)
        found = em_step(objective_of(mixture, 1.0), mixture.mixed(weights), weights, Z)
        assert found.shape == Z.shape
        W, V = literal_step(arrays, seen, weights, W, H)
        assert_allclose(found[0], W, atol=1e-10, rtol=1e-10)
        assert_allclose(found[-1], V, atol=1e-10, rtol=1e-10)
        assert_allclose(found.sum(axis=(1, 2)), 1, rtol=1e-14)


def test_step_of_two_equal_factors_is_that_of_one():
    rng = np.random.default_rng(0)
    for kind in KINDS:
        mixture, arrays, _ = problem(kind, rng, 15)
        weights = rng.dirichlet(np.ones(len(arrays)))
        P, objective = mixture.mixed(weights), objective_of(mixture, 1.0)
        one = starts_of(rng, 1, 1, 15, 3)[0]
        two = np.concatenate([one, one])
        for _ in range(5):
            one, two = (em_step(objective, P, weights, Z) for Z in (one, two))
            assert_allclose(two, np.concatenate([one, one]), rtol=1e-9, atol=1e-15)


@both_forms
def test_step_keeps_both_marginals(n_factors):
    rng = np.random.default_rng(1)
    for kind in ("kernels", "graphs", "bipartite", "mixed"):
        mixture, arrays, _ = problem(kind, rng, 20)
        weights = rng.dirichlet(np.ones(len(arrays)))
        P = sum(w * A / A.sum() for w, A in zip(weights, arrays, strict=True))
        Z = starts_of(rng, 1, n_factors, 20, 4)[0]
        Z = em_step(objective_of(mixture, 1.0), mixture.mixed(weights), weights, Z)
        W, H = split(Z)
        assert_allclose(literal_model(W, H).sum(axis=1), P.sum(axis=1), atol=1e-15)
        assert_allclose(literal_model(W, H).sum(axis=0), P.sum(axis=0), atol=1e-15)


@both_forms
@each_kind
@law
@given(seeds)
def test_step_never_raises_the_objective_at_its_weights(n_factors, kind, seed):
    rng = np.random.default_rng(seed)
    mixture, arrays, seen = problem(kind, rng, 12)
    n_sources = len(arrays)
    weights = rng.dirichlet(np.full(n_sources, 0.5))
    Z = starts_of(rng, 1, n_factors, 12, int(rng.integers(1, 5)))[0] ** 3
    Z /= Z.sum(axis=(1, 2), keepdims=True)
    objective, P, last = objective_of(mixture, 1.0), mixture.mixed(weights), np.inf
    for _ in range(4):
        loss = weights @ literal_losses(arrays, seen, np.zeros(n_sources), *split(Z))
        assert loss <= last + 1e-12
        last, Z = loss, em_step(objective, P, weights, Z)


def test_object_that_no_source_saw_keeps_its_share():
    rng = np.random.default_rng(2)
    for kind in ("missing", "missing graphs"):
        mixture, arrays, seen = problem(kind, rng, 14)
        assert_array_equal(np.flatnonzero(~seen.any(axis=1)), [3])
        weights = rng.dirichlet(np.ones(len(arrays)))
        Z = starts_of(rng, 1, 1, 14, 3)[0]
        new = em_step(objective_of(mixture, 1.0), mixture.mixed(weights), weights, Z)
        assert_allclose(new[0, 3], Z[0, 3], rtol=1e-10)


# The objective and its descent.


@each_kind
def test_losses_are_those_of_loops_over_pairs(kind):
    rng = np.random.default_rng(3)
    mixture, arrays, seen = problem(kind, rng, 13)
    offsets = rng.normal(size=len(arrays))
    objective = FusionObjective(mixture, offsets, 1.0)
    for n_factors, k in [(1, 1), (1, 4), (2, 3)]:
        Z = starts_of(rng, 1, n_factors, 13, k)[0]
        want = literal_losses(arrays, seen, offsets, *split(Z))
        assert_allclose(objective.source_losses(Z), want, rtol=1e-10)
        for eta in (0, 0.1, 1.0, 1e3, np.inf):
            weights, loss, used = FusionObjective(mixture, offsets, eta).weigh(want)
            assert_allclose(loss, literal_objective(want, eta), rtol=1e-10)
            assert_array_equal(weights, gibbs_weights(want, eta))
            assert used == eta
    share = np.mean([A.sum(axis=0) / A.sum() for A in arrays], axis=0)
    apart = [
        np.sum(P[P > 0] * np.log(P[P > 0] / np.outer(share, share)[P > 0]))
        for P in (A / A.sum() for A in arrays)
    ]
    assert_allclose(objective.margin, share, atol=1e-16)
    assert_allclose(objective.constant, np.mean(apart), atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 14, 17, 32, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_of_sources_without_structure_is_not_below_zero(n, dtype):
    """A scale below 0, if only by rounding, would make every decrease of the loss too small."""
    share = np.random.default_rng(n).uniform(0.5, 1, size=n)
    for A in (np.ones((n, n)), np.outer(share, share)):
        mixture = make_mixture([A.astype(dtype)], np.ones((n, 1), dtype=bool))
        constant = objective_of(mixture, 1.0).constant
        assert 0 <= constant < 1e-5 if dtype == np.float32 else 0 <= constant < 1e-13


SETTINGS = [*[{"eta": eta} for eta in (0, 0.03, 0.3, 1, 10, 1e6, np.inf)], {"perplexity": 1.7}]


@both_forms
@each_kind
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_objective_never_rises_and_the_weights_are_gibbs(n_factors, kind, setting):
    rng = np.random.default_rng(4)
    mixture, arrays, seen = problem(kind, rng, 15)
    objective = objective_of(mixture, **{"eta": 1.0, **setting})
    offsets, last = objective.offsets, np.inf
    for number, ((Z, weights), loss) in enumerate(
        run(objective, starts_of(rng, 1, n_factors, 15, 3), 200)
    ):
        assert (loss <= last).all()
        last = loss
        assert_allclose(Z.sum(axis=(2, 3)), 1, rtol=1e-12)
        assert Z.min() > 0
        if number % 100:
            continue
        for factors, mine, value in zip(Z, weights, loss, strict=True):
            losses = literal_losses(arrays, seen, offsets, *split(factors))
            if "perplexity" in setting:
                assert_allclose(np.exp(entropy(mine)), 1.7, rtol=1e-6)
                assert_allclose(value, mine @ losses, rtol=1e-9, atol=1e-12)
                continue
            want = literal_objective(losses, setting["eta"])
            assert_allclose(value, want, rtol=1e-9, atol=1e-11)
            if 0 < setting["eta"] < np.inf:
                assert_allclose(mine, literal_weights(losses, setting["eta"]), atol=1e-9)


@both_forms
def test_runs_end_where_entries_do_not_want_to_change(n_factors):
    """Next to 0 an entry can still want to grow, where that gains less than the loss resolves."""
    rng, growing = np.random.default_rng(5), []
    for kind in KINDS * 2:
        mixture, arrays, seen = problem(kind, rng, 15)
        Z = starts_of(rng, 1, n_factors, 15, 3)
        *_, ((Z, weights), _) = run(objective_of(mixture, 0.3), Z, 400)
        after = np.stack(literal_step(arrays, seen, weights[0], *split(Z[0])))[:n_factors]
        assert_allclose(after, Z[0], atol=1e-5, err_msg=kind)
        growing.append((after / Z[0]).max() > 1.01)
    assert np.mean(growing) <= 0.25


@pytest.mark.parametrize("kind", ["kernels", "graphs", "missing"])
def test_starts_side_by_side_are_what_each_is_alone(kind):
    rng = np.random.default_rng(6)
    mixture, _, _ = problem(kind, rng, 15)
    objective = objective_of(mixture, 0.3)
    Z = starts_of(rng, 3, 1, 15, 3)
    alone = [run(objective, Z[i : i + 1], 12) for i in range(3)]
    steps = fusion_nmf(objective, Z)
    running = np.arange(3)
    (factors, weights), loss = next(steps)
    for number in range(12):
        for place, start in enumerate(running):
            (want, shares), value = alone[start][number]
            assert_array_equal(factors[place], want[0])
            assert_array_equal(weights[place], shares[0])
            assert loss[place] == value[0]
        keep = {4: [True, False, True], 8: [False, True]}.get(number)
        running = running if keep is None else running[keep]
        (factors, weights), loss = steps.send(None if keep is None else np.array(keep))
    assert_array_equal(running, [2])


def test_run_begins_with_a_few_steps_on_equal_weights():
    rng = np.random.default_rng(10)
    mixture, arrays, _ = problem("mixed", rng, 15)
    equal = np.full(len(arrays), 1 / len(arrays))
    objective, P = objective_of(mixture, 0.0), mixture.mixed(equal)
    start = starts_of(rng, 1, 1, 15, 3)
    [((found, _), _)] = run(objective, 7 * start, 0)  # of any scale
    want = start[0]
    for _ in range(5):
        want = em_step(objective, P, equal, want)
    assert_allclose(found[0], want, rtol=1e-12)


def test_yielded_factors_are_not_written_to_later():
    rng = np.random.default_rng(7)
    mixture, _, _ = problem("kernels", rng, 15)
    steps, copies, yielded = (
        fusion_nmf(objective_of(mixture, 0.3), starts_of(rng, 2, 1, 15, 3)),
        [],
        [],
    )
    for found in islice(steps, 6):
        yielded.append(found)
        copies.append([found[0][0].copy(), found[0][1].copy(), found[1].copy()])
    for ((Z, weights), loss), copy in zip(yielded, copies, strict=True):
        assert_array_equal(Z, copy[0])
        assert_array_equal(weights, copy[1])
        assert_array_equal(loss, copy[2])


def test_acceleration_jumps_to_the_limit_of_a_geometric_sequence():
    rng = np.random.default_rng(8)
    start = starts_of(rng, 1, 1, 6, 2)[0]
    limit = start * rng.uniform(0.8, 1.2, size=start.shape)
    limit /= limit.sum()
    far, plain = _accelerated(lambda Z: limit + 0.9 * (Z - limit), start)
    assert_allclose(far, limit, rtol=1e-12)
    assert_allclose(plain, limit + 0.81 * (start - limit), rtol=1e-14)


def test_acceleration_takes_no_entry_away():
    """An entry of 0 would stay 0, whatever comes: one that runs ahead to below it is halved."""
    start = np.full((1, 4, 1), 0.25)
    limit = np.array([0.5, 0.4, 0.2, -0.1]).reshape(1, 4, 1)
    visited = []

    def step(Z):
        visited.append(Z)
        return limit + 0.9 * (Z - limit)

    _, plain = _accelerated(step, start)
    want = np.maximum(limit, plain / 2)
    assert_allclose(visited[-1], want / want.sum())


def test_acceleration_stays_among_factors_and_ends_with_two_plain_steps():
    rng = np.random.default_rng(9)
    for seed in range(20):
        mixture, arrays, _ = problem(KINDS[seed % len(KINDS)], rng, 15)
        weights = np.full(len(arrays), 1 / len(arrays))
        P, objective, visited = mixture.mixed(weights), objective_of(mixture, 1.0), []

        def step(Z, P=P, objective=objective, weights=weights, visited=visited):
            visited.append(Z)
            return em_step(objective, P, weights, Z)

        Z = starts_of(rng, 1, 1, 15, 3)[0] ** 4
        Z /= Z.sum()
        *_, plain = found = _accelerated(step, Z)
        twice = em_step(objective, P, weights, em_step(objective, P, weights, Z))
        assert_array_equal(plain, twice)
        for candidate in (*found, *visited):
            assert candidate.min() > 0
            assert_allclose(candidate.sum(), 1, rtol=1e-12)


@pytest.mark.parametrize("eta", [1e6, 1e12, 1e18, 1e300])
def test_a_huge_eta_is_as_good_as_infinity(eta):
    losses = np.array([3.0, 1.0, 2.5])
    found, value, _ = FusionObjective(None, None, eta).weigh(losses)
    assert_allclose(found, 1 / 3, rtol=1e-5)
    assert_allclose(value, losses.mean(), rtol=1e-5)
