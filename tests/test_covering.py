from itertools import product

import pytest

from tests.covering import covering


@pytest.mark.parametrize("sizes", [(3, 2), (6, 4, 5), (4, 6, 4, 2)])
def test_any_two_choices_meet(sizes):
    choices = [[f"{kind}{number}" for number in range(size)] for kind, size in enumerate(sizes)]
    rows = covering(*choices)
    assert all(one in kind for row in rows for one, kind in zip(row, choices, strict=True))
    for first in range(len(sizes)):
        for second in range(first):
            met = {(row[first], row[second]) for row in rows}
            assert met == set(product(choices[first], choices[second]))
    largest, next_largest = sorted(sizes)[-1:-3:-1]
    assert len(rows) <= 1.25 * largest * next_largest
