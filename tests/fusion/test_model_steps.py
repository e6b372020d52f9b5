"""The updates of fusion against loops over sources, objects and clusters, and what they promise."""

from itertools import islice, product

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.cases import (
    KINDS,
    both_forms,
    each_kind,
    graph,
    literal_losses,
    literal_model,
    literal_objective,
    literal_step,
    literal_weights,
    objective_of,
    partial,
    problem,
    run,
    seeds,
    split,
    starts_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.fusion.model import _extrapolated_and_plain, em_step, fusion_nmf


@both_forms
@pytest.mark.parametrize("storage", ["dense", "sparse", "mixed"])
def test_step_is_that_of_loops_over_all_sources(n_factors, storage):
    rng, n = np.random.default_rng(0), 9
    for n_sources, k, complete in [(1, 3, True), (3, 1, True), (2, 3, False), (3, 9, False)]:
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
        after = em_step(objective_of(mixture, 1.0), mixture.mixed(weights), weights, Z)
        assert after.shape == Z.shape
        W, V = literal_step(arrays, seen, weights, W, H)
        assert_allclose(after[0], W, atol=1e-10, rtol=1e-10)
        assert_allclose(after[-1], V, atol=1e-10, rtol=1e-10)
        assert_allclose(after.sum(axis=(1, 2)), 1, rtol=1e-14)


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


@each_kind
@settings(max_examples=8)
@given(seeds, st.integers(1, 2))
def test_step_never_raises_the_objective_at_its_weights(kind, seed, n_factors):
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


# --- the descent ---------------------------------------------------------------------------------


@each_kind
def test_objective_never_rises_and_the_weights_are_gibbs(kind):
    rng = np.random.default_rng(4)
    mixture, arrays, seen = problem(kind, rng, 10)
    for n_factors, eta in product((1, 2), (0, 0.03, 1, np.inf)):
        objective, last = objective_of(mixture, eta), np.inf
        updates = run(objective, starts_of(rng, 1, n_factors, 10, 3), 8)
        for (Z, _), loss in updates:
            assert (loss <= last).all()
            last = loss
            assert_allclose(Z.sum(axis=(2, 3)), 1, rtol=1e-12)
            assert Z.min() > 0
        for (Z, weights), loss in (updates[0], updates[-1]):
            losses = literal_losses(arrays, seen, objective.offsets, *split(Z[0]))
            assert_allclose(loss[0], literal_objective(losses, eta), rtol=1e-9, atol=1e-11)
            if 0 < eta < np.inf:
                assert_allclose(weights[0], literal_weights(losses, eta), atol=1e-9)


@both_forms
def test_runs_end_where_entries_do_not_want_to_change(n_factors):
    """Next to 0 an entry can still want to grow, where that gains less than the loss resolves."""
    rng, growing = np.random.default_rng(5), []
    for kind in ("kernels", "mixed", "missing graphs"):
        mixture, arrays, seen = problem(kind, rng, 12)
        steps = run(objective_of(mixture, 0.3), starts_of(rng, 1, n_factors, 12, 3), 120)
        (Z, weights), _ = steps[-1]
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
    [((Z, _), _)] = run(objective, 7 * start, 0)  # of any scale
    want = start[0]
    for _ in range(5):
        want = em_step(objective, P, equal, want)
    assert_allclose(Z[0], want, rtol=1e-12)


def test_yielded_factors_are_not_written_to_later():
    rng = np.random.default_rng(7)
    mixture, _, _ = problem("kernels", rng, 15)
    steps, copies, yielded = (
        fusion_nmf(objective_of(mixture, 0.3), starts_of(rng, 2, 1, 15, 3)),
        [],
        [],
    )
    for state in islice(steps, 6):
        yielded.append(state)
        copies.append([state[0][0].copy(), state[0][1].copy(), state[1].copy()])
    for ((Z, weights), loss), copy in zip(yielded, copies, strict=True):
        assert_array_equal(Z, copy[0])
        assert_array_equal(weights, copy[1])
        assert_array_equal(loss, copy[2])


def test_acceleration_jumps_to_the_limit_of_a_geometric_sequence():
    rng = np.random.default_rng(8)
    start = starts_of(rng, 1, 1, 6, 2)[0]
    limit = start * rng.uniform(0.8, 1.2, size=start.shape)
    limit /= limit.sum()
    far, plain = _extrapolated_and_plain(lambda Z: limit + 0.9 * (Z - limit), start)
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

    _, plain = _extrapolated_and_plain(step, start)
    want = np.maximum(limit, plain / 2)
    assert_allclose(visited[-1], want / want.sum())


def test_acceleration_stays_among_factors_and_ends_with_two_plain_steps():
    rng = np.random.default_rng(9)
    for kind in KINDS:
        mixture, arrays, _ = problem(kind, rng, 15)
        weights = np.full(len(arrays), 1 / len(arrays))
        P, objective, visited = mixture.mixed(weights), objective_of(mixture, 1.0), []

        def step(Z, P=P, objective=objective, weights=weights, visited=visited):
            visited.append(Z)
            return em_step(objective, P, weights, Z)

        Z = starts_of(rng, 1, 1, 15, 3)[0] ** 4
        Z /= Z.sum()
        *_, plain = candidates = _extrapolated_and_plain(step, Z)
        twice = em_step(objective, P, weights, em_step(objective, P, weights, Z))
        assert_array_equal(plain, twice)
        for candidate in (*candidates, *visited):
            assert candidate.min() > 0
            assert_allclose(candidate.sum(), 1, rtol=1e-12)
