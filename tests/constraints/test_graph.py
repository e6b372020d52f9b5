"""The graph of links, against literal loops over all paths, cliques and colourings."""

import time
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from nmfcluster.constraints import graph as links_graph
from nmfcluster.constraints.graph import colouring, components, shortest_chain

MANY = settings(max_examples=80)


@st.composite
def edges_of(draw, n, at_most=12):
    """Draw edges with two ends, some of them perhaps more than once, in either order."""
    if n < 2:
        return np.empty((0, 2), dtype=np.intp)
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 2))
    chosen = draw(st.lists(ends, max_size=at_most))
    return pairs([(one, other + (other >= one)) for one, other in chosen])


@st.composite
def graphs(draw, largest=7, kinds=1, at_most=12):
    n = draw(st.integers(0, largest))
    return (n, *(draw(edges_of(n, at_most)) for _ in range(kinds)))


def pairs(listed):
    return np.array(listed, dtype=np.intp).reshape(-1, 2)


def distances(n, edges):
    """Lengths of shortest paths by relaxing all edges until nothing changes."""
    length = [[0 if i == j else np.inf for j in range(n)] for i in range(n)]
    for _ in range(n):
        for i, j in edges.tolist():
            for source in range(n):
                for one, other in ((i, j), (j, i)):
                    length[source][other] = min(length[source][other], length[source][one] + 1)
    return length


def can_be_coloured(n, edges, n_colours):
    return any(
        all(colours[i] != colours[j] for i, j in edges.tolist())
        for colours in product(range(n_colours), repeat=n)
    )


def linked(edges):
    return {frozenset(edge) for edge in edges.tolist()}


def assert_proves(edges, n_nodes, n_colours, verdict, witness):
    """Assert that the witness is valid."""
    joined = linked(edges)
    if verdict == "feasible":
        assert witness.shape == (n_nodes,)
        assert ((witness >= 0) & (witness < n_colours)).all()
        assert all(witness[i] != witness[j] for i, j in edges.tolist())
    elif verdict == "infeasible":
        assert len(set(witness)) == len(witness)
        if n_colours == 2:
            assert len(witness) % 2 == 1
            around = zip(witness, [*witness[1:], witness[0]], strict=True)
            assert all(frozenset(edge) in joined for edge in around)
        else:
            assert len(witness) == n_colours + 1
            assert all(frozenset(edge) in joined for edge in combinations(witness, 2))
    else:
        assert (verdict, witness) == ("undecided", None)
        assert n_colours > 2


# components


@MANY
@given(graphs())
def test_components_are_the_samples_that_paths_join(graph):
    n, edges = graph
    length, group = distances(n, edges), components(n, edges)
    assert group.shape == (n,)
    assert group.dtype.kind == "i"
    for i, j in product(range(n), repeat=2):
        assert (group[i] == group[j]) == (length[i][j] < np.inf)


@MANY
@given(graphs())
def test_components_are_numbered_by_first_appearance(graph):
    seen = -1
    for number in components(*graph).tolist():
        assert number <= seen + 1
        seen = max(seen, number)


def test_components_of_known_graphs():
    assert_array_equal(components(5, pairs([(4, 0), (2, 4)])), [0, 1, 0, 2, 0])
    assert_array_equal(components(3, pairs([])), [0, 1, 2])
    assert components(0, pairs([])).shape == (0,)


# chains


@MANY
@given(graphs(kinds=2))
@example((3, pairs([(0, 1), (1, 2)]), pairs([(0, 2)])))
@example((2, pairs([(0, 1)]), pairs([(1, 0)])))
@example((4, pairs([]), pairs([(1, 0)])))
def test_the_chain_is_a_shortest_one_and_belongs_to_the_first_such_pair(graph):
    n, must, cannot = graph
    length = distances(n, must)
    lengths = [length[i][j] for i, j in cannot.tolist()]
    chain = shortest_chain(n, must, cannot)
    if not lengths or min(lengths) == np.inf:
        assert chain is None
        return
    first = cannot[int(np.argmin(lengths))].tolist()
    assert [chain[0], chain[-1]] == first
    assert len(chain) == min(lengths) + 1
    assert all(frozenset(link) in linked(must) for link in pairwise(chain))
    assert all(type(sample) is int for sample in chain)


@pytest.mark.parametrize("block", [1, 2, 3])
def test_the_chain_does_not_depend_on_how_many_pairs_are_searched_at_a_time(monkeypatch, block):
    rng = np.random.RandomState(0)
    graph = [(40, rng.randint(40, size=(60, 2)), rng.randint(40, size=(9, 2))) for _ in range(20)]
    graph = [(n, *(e[e[:, 0] != e[:, 1]] for e in edges)) for n, *edges in graph]
    expected = [shortest_chain(*one) for one in graph]
    assert sum(chain is not None for chain in expected) > 10
    monkeypatch.setattr(links_graph, "_BLOCK", block)
    assert [shortest_chain(*one) for one in graph] == expected


def test_the_chain_of_a_long_path_goes_all_along():
    path = np.column_stack([np.arange(299), np.arange(1, 300)])
    assert shortest_chain(300, path, pairs([(299, 0)])) == list(range(299, -1, -1))
    assert shortest_chain(300, path, pairs([(299, 0), (7, 5)])) == [7, 6, 5]


# colourings


@MANY
@given(graphs(largest=6, at_most=16), st.integers(1, 5))
@example((0, pairs([])), 1)
@example((1, pairs([])), 1)
@example((5, pairs([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])), 2)
@example((4, pairs(list(combinations(range(4), 2)))), 3)
def test_colourings_are_never_wrong(graph, n_colours):
    n, edges = graph
    verdict, witness = colouring(n, edges, n_colours)
    assert_proves(edges, n, n_colours, verdict, witness)
    possible = can_be_coloured(n, edges, n_colours)
    assert verdict in {"feasible" if possible else "infeasible", "undecided"}


@pytest.mark.parametrize("n_nodes", [4, 5])
def test_all_small_graphs_are_decided(n_nodes):
    """Wheels have at least six vertices: below, a graph lacks colours by a clique or a cycle."""
    everything = list(combinations(range(n_nodes), 2))
    for chosen in product([False, True], repeat=len(everything)):
        edges = pairs([edge for edge, there in zip(everything, chosen, strict=True) if there])
        for n_colours in range(1, n_nodes + 1):
            verdict, witness = colouring(n_nodes, edges, n_colours)
            assert_proves(edges, n_nodes, n_colours, verdict, witness)
            assert verdict != "undecided"


def wheel(n_around):
    around = [(i, (i + 1) % n_around) for i in range(n_around)]
    return n_around + 1, pairs([*around, *((n_around, i) for i in range(n_around))])


def test_an_odd_wheel_lacks_a_colour_but_has_no_clique_that_says_so():
    n, edges = wheel(5)
    assert not can_be_coloured(n, edges, 3)
    assert colouring(n, edges, 3) == ("undecided", None)
    assert colouring(n, edges, 4)[0] == "feasible"
    assert colouring(*wheel(6), 3)[0] == "feasible"


def test_an_edge_needs_two_colours():
    assert colouring(4, pairs([]), 1)[0] == "feasible"
    verdict, witness = colouring(4, pairs([(3, 1)]), 1)
    assert verdict == "infeasible"
    assert set(witness) == {1, 3}


@pytest.mark.parametrize("length", [3, 5, 31, 301])
def test_an_odd_cycle_among_even_ones_is_found(length):
    even = [(i, i + 1) for i in range(500)] + [(500, 501), (501, 0)]
    odd = [(600 + i, 600 + (i + 1) % length) for i in range(length)]
    edges = pairs([*even, (10, 600), *odd])
    verdict, witness = colouring(1000, edges, 2)
    assert_proves(edges, 1000, 2, verdict, witness)
    assert set(witness) == set(range(600, 600 + length))
    assert colouring(1000, pairs([*even, (10, 600), *odd[:-1]]), 2)[0] == "feasible"


def test_a_planted_clique_is_found():
    rng = np.random.RandomState(0)
    group = rng.randint(3, size=400)
    edges = rng.randint(400, size=(1500, 2))
    edges = edges[group[edges[:, 0]] != group[edges[:, 1]]]
    planted = pairs(list(combinations([17, 40, 90, 222], 2)))
    verdict, witness = colouring(400, np.concatenate([edges, planted]), 3)
    assert_proves(np.concatenate([edges, planted]), 400, 3, verdict, witness)
    assert verdict == "infeasible"


def test_the_search_for_a_clique_gives_up_in_time(monkeypatch):
    edges = pairs(list(combinations(range(6), 2)))
    assert colouring(6, edges, 5)[0] == "infeasible"
    monkeypatch.setattr(links_graph, "_CLIQUE_BUDGET", 54)  # 55 = 25 + 16 + 9 + 4 + 1 are needed
    assert colouring(6, edges, 5) == ("undecided", None)
    monkeypatch.setattr(links_graph, "_CLIQUE_BUDGET", 55)
    assert colouring(6, edges, 5)[0] == "infeasible"


def test_a_clique_grows_by_the_node_with_the_most_neighbours_among_the_others():
    among = "01 02 04 05 13 14 15 16 23 25 26 35 36 45 46".split()  # node 6 has as many neighbours
    edges = pairs([(int(i), int(j)) for i, j in among])
    assert colouring(7, edges, 3) == ("infeasible", [0, 1, 4, 5])


@pytest.mark.parametrize(
    "among",
    [
        "03 04 05 06 12 13 16 23 24 35 46 56",  # node 0 has to come first, of most neighbours
        "02 03 06 12 14 15 23 26 35 45 46 56",  # of equally constrained nodes, too
    ],
)
def test_nodes_of_many_neighbours_are_coloured_first(among):
    edges = pairs([(int(i), int(j)) for i, j in among.split()])
    verdict, witness = colouring(7, edges, 3)
    assert_proves(edges, 7, 3, verdict, witness)
    assert verdict == "feasible"


def test_the_most_constrained_node_is_coloured_next():
    """Two by two in the order of their numbers, these nodes would need five colours."""
    edges = pairs([(2 * i, 2 * j + 1) for i in range(5) for j in range(5) if i != j])
    verdict, witness = colouring(10, edges, 3)
    assert_proves(edges, 10, 3, verdict, witness)
    assert set(witness) == {0, 1}


def test_no_more_colours_than_needed_are_asked_for():
    """Trees and cycles hang on a clique: peeled off, they are coloured after it."""
    rng = np.random.RandomState(0)
    tree = [(rng.randint(i), i) for i in range(5, 300)]
    edges = pairs([*combinations(range(5), 2), *tree])
    verdict, witness = colouring(300, edges, 5)
    assert_proves(edges, 300, 5, verdict, witness)
    assert verdict == "feasible"
    assert colouring(300, edges, 4)[0] == "infeasible"


def test_the_same_edges_give_the_same_answer_in_any_order():
    rng = np.random.RandomState(0)
    edges = rng.randint(60, size=(150, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    shuffled = rng.permutation(np.concatenate([edges, edges[:20]]))[:, ::-1]
    for n_colours in range(1, 8):
        one, two = (colouring(60, listed, n_colours) for listed in (edges, shuffled))
        assert one[0] == two[0]
        assert_array_equal(one[1], two[1])


# size


@pytest.mark.slow
def test_large_graphs_take_seconds():
    rng = np.random.RandomState(0)
    n, started = 20_000, time.process_time()
    edges = rng.randint(n, size=(100_000, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    group = rng.randint(6, size=n)
    apart = edges[group[edges[:, 0]] != group[edges[:, 1]]]
    for n_colours in (2, 3, 6):
        verdict, witness = colouring(n, apart, n_colours)
        assert_proves(apart, n, n_colours, verdict, witness)
    together = edges[group[edges[:, 0]] == group[edges[:, 1]]]
    assert shortest_chain(n, together, apart) is None
    wrong = np.concatenate([together, apart[:1]])  # joins two groups: many pairs contradict it
    assert len(shortest_chain(n, wrong, apart[1:])) > 2
    assert time.process_time() - started < 20
