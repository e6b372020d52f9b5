"""Standard errors against leaving out labellings one by one."""

from itertools import combinations

import numpy as np
import pytest

from nmfcluster.metrics import disagreement
from nmfcluster.metrics.agreement import disagreements, jackknife, mean_of_pairs


@pytest.mark.parametrize("seed", range(3))
def test_standard_errors_are_those_of_leaving_out_a_labelling(seed):
    rng = np.random.default_rng(seed)
    B = 6
    codes = np.stack([rng.permutation(np.arange(40) % 3) for _ in range(B)])
    left_out = []
    for i in range(B):
        others = [codes[j] for j in range(B) if j != i]
        left_out.append(np.mean([disagreement(a, b) for a, b in combinations(others, 2)]))
    value, error = jackknife(mean_of_pairs, disagreements(codes))
    assert value == pytest.approx(np.mean([disagreement(a, b) for a, b in combinations(codes, 2)]))
    assert error == pytest.approx(np.sqrt((B - 1) * np.var(left_out)))
