"""How sure an answer is, in words."""

import numpy as np

from measureflow.estimators.stability import Stability
from measureflow.report.summary import _each
from measureflow.report.words import again, listed, more_probable, odds


def test_where_no_number_is_probable_a_range_is_told():
    assert odds(dict.fromkeys(range(1, 11), 0.1), 5) == "K = 5 has probability 0.10, K from 3 to 10 has 0.80"
    assert odds({1: 0.2, 2: 0.3, 3: 0.5}, 1) == "K = 1 has probability 0.20, K from 1 to 3 has 1.00"
    assert odds({4: 0.9, 5: 0.1}, 4) == "K = 4 has probability 0.90"
    assert odds({4: 0.9, 5: 0.1}, 7).startswith("K = 7 has probability 0.00, K from 4 to 7")


def test_what_was_found_instead_of_k_is_told():
    assert again({3: 0.5, 2: 0.3, 4: 0.2}, 3, 10).endswith("K = 3 came back 5 times; the others found 2 or 4")
    assert again({1: 0.2, 2: 0.2, 4: 0.2, 5: 0.2, 7: 0.2}, 3, 5).endswith(
        "K = 3 came back in none of them; they found 1 to 7"
    )
    assert again({3: 0.1, 4: 0.9}, 3, 10).endswith("K = 3 came back once; the others found 4")


def test_clusters_that_outlast_their_number_are_told():
    stable = Stability({3: 0.2, 4: 0.8}, np.array([1.0, 0.9, 1.0]), np.ones(3))
    assert _each(stable, 3, 10) == ". Each of these 3 clusters came back at least 9 times"
    assert _each(Stability({3: 1.0}, np.ones(3), np.ones(3)), 3, 10) == ""
    assert _each(Stability({1: 0.5, 2: 0.5}, np.ones(1), np.ones(1)), 1, 10) == ""


def test_another_number_that_is_more_probable_is_told():
    assert more_probable({3: 0.39, 4: 0.22}, 4)[0].startswith("K = 3 is more probable (0.39): ")
    assert more_probable({3: 0.221, 4: 0.219}, 4) == []  # the same to the two figures that are printed
    assert more_probable({3: 0.2, 4: 0.8}, 4) == more_probable({}, 4) == []


def test_many_names_are_cut_short():
    names = [f"pixel_{i}" for i in range(64)]
    assert listed(names, 3) == "pixel_0, pixel_1, pixel_2 and 61 more"
    assert listed(names[:3], 3) == "pixel_0, pixel_1, pixel_2"
