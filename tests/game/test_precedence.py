from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dupre
from dupre import estimators, shapley
from dupre.errors import InputError
from dupre.game.coalitions import all_coalitions
from dupre.game.estimators import exact, permutation, regression
from dupre.game.precedence import LISTED_UP_TO, MOST_LISTED, most_listed, weigh_in_turn
from owners_and_games import by_code

quick = settings(deadline=None, max_examples=25)
NAMES = tuple("ABCDE")


def cohorts_of(places):
    """Positions of the owners of each cohort, from the place of each owner."""
    return tuple(np.flatnonzero(np.array(places) == k) for k in sorted(set(places)))


def in_turn(places, draw=lambda m: exact(shapley, m)):
    return weigh_in_turn(cohorts_of(places), draw)


def values(weights, table):
    """Of a table of 2^n utilities by code, the empty coalition first."""
    return by_code(weights) @ table


def over_all_orders(places, table):
    """The mean contribution over all orders in which no cohort comes before an earlier one."""
    n = len(places)
    total, count = np.zeros(n), 0
    for order in permutations(range(n)):
        if any(places[a] > places[b] for a, b in pairwise(order)):
            continue
        count, before = count + 1, 0
        for i in order:
            total[i] += table[before | 1 << i] - table[before]
            before |= 1 << i
    return total / count


@given(
    st.integers(2, 5).flatmap(lambda n: st.lists(st.integers(0, 3), min_size=n, max_size=n)),
    st.integers(0, 2**32 - 1),
)
@quick
def test_values_are_the_mean_over_all_orders_in_which_cohorts_come_in_turn(places, seed):
    table = np.random.default_rng(seed).normal(size=2 ** len(places))
    expected = over_all_orders(places, table)
    np.testing.assert_allclose(values(in_turn(places), table), expected, atol=1e-12)


@given(arrays(np.float64, 2**5, elements=st.floats(-10, 10)), st.permutations([0, 0, 1, 1, 2]))
@quick
def test_the_values_of_a_cohort_add_up_to_what_it_adds_to_all_before(table, places):
    found, before = values(in_turn(places), table), 0
    for cohort in cohorts_of(places):
        after = before | sum(1 << int(i) for i in cohort)
        assert found[cohort].sum() == pytest.approx(table[after] - table[before], abs=1e-9)
        before = after
    assert found.sum() == pytest.approx(table[-1] - table[0], abs=1e-9)


def test_one_cohort_is_shapley_itself_and_cohorts_of_one_are_contributions_in_that_order():
    one = exact(shapley, 4)
    assert weigh_in_turn((np.arange(4),), lambda _: one) is one
    table = np.random.default_rng(0).normal(size=16)
    order = [2, 0, 3, 1]
    codes = np.cumsum([0, *(1 << i for i in order)])
    found = values(in_turn(np.argsort(order)), table)
    np.testing.assert_allclose(found[order], np.diff(table[codes]), atol=1e-12)
    assert len(in_turn(np.argsort(order)).members) == 4


def test_there_is_one_column_for_each_coalition_of_a_cohort_with_all_before():
    found = in_turn([1, 0, 1, 0, 2])
    assert len(found.members) == 3 + 3 + 1
    before = np.array([[True, False], [False, True], [True, True]])
    first = {tuple(row) for row in found.members[:, [1, 3]].tolist()}
    assert first == {tuple(row) for row in before.tolist()}
    later = found.members[found.members[:, [0, 2, 4]].any(axis=1)]
    assert later[:, [1, 3]].all()
    assert found.members.all(axis=1).sum() == 1
    assert not found.drawn
    assert not found.sampling_covariance(np.ones(7), 0.0).any()


@pytest.mark.parametrize("estimator", [permutation, regression, estimators.svarm])
def test_a_cohort_that_is_drawn_has_the_values_and_the_error_that_it_has_alone(estimator):
    m, n = 7, 10
    places = np.array([1, 0, 1, 0, 1, 2, 1, 1, 1, 1])
    own = cohorts_of(places)
    alone = estimator(shapley, m, 60, np.random.default_rng(1))
    found = in_turn(places, lambda k: alone if k == m else exact(shapley, k))
    game = np.random.default_rng(2).normal(size=2**n)

    def utilities(rows):
        return game[rows @ (1 << np.arange(n))]

    before = np.zeros(n, dtype=bool)
    before[own[0]] = True
    given_them = np.tile(before, (len(alone.members), 1))
    given_them[:, own[1]] = alone.members
    of_alone, empty = utilities(given_them), float(utilities(before[None])[0])
    u = utilities(found.members)
    expected = alone.W @ of_alone + alone.empty * empty
    np.testing.assert_allclose((found.W @ u + found.empty * game[0])[own[1]], expected, atol=1e-12)
    assert found.drawn
    rough = np.full(len(u), 0.5)
    for some in (None, rough):
        error = found.sampling_covariance(u, game[0], some)
        own_error = alone.sampling_covariance(
            of_alone, empty, None if some is None else some[: len(of_alone)]
        )
        np.testing.assert_allclose(error[np.ix_(own[1], own[1])], own_error, atol=1e-12)
        rest = np.setdiff1d(np.arange(n), own[1])
        assert not error[rest].any(), "cohorts that are enumerated have no error of sampling"
        assert not error[:, rest].any()


def test_cohorts_of_up_to_16_are_enumerated_unless_all_together_are_too_many():
    assert most_listed([16]) == most_listed([16, 1, 16]) == 16
    assert most_listed([16, 16, 8]) == 8, "both of 16 are too many then"
    assert most_listed([15, 15, 15, 15]) == 15
    assert most_listed([300, 12]) == 12
    assert most_listed([17]) == most_listed([20]) == 1
    assert 2 * len(all_coalitions(LISTED_UP_TO)) <= MOST_LISTED


def test_precedence_is_a_record_of_names():
    asked = dupre.precedence([["A", "B"], ("C",), {4}])
    assert asked.cohorts == (("A", "B"), ("C",), ("4",))
    assert asked == dupre.precedence([["A", "B"], ["C"], [4]])
    found = dupre.precedence([["E", "B"], ["A"], ["D", "C"]]).positions(NAMES)
    assert [cohort.tolist() for cohort in found] == [[1, 4], [0], [2, 3]]


@pytest.mark.parametrize(
    ("cohorts", "words"),
    [
        ([], "the order is empty"),
        ([["A"], []], "cohort 2 is empty; expected owners in every cohort: leave it out"),
        ([["A", "B"], ["A"]], "'A' is named twice in the order of joining"),
        (["A", "B"], r"list of cohorts, each a list of owner names .* got 'A'; put an owner"),
        ("AB", r"list of cohorts, each a list of owner names .* got 'AB'"),
        (3, "got 3"),
        ([["A"], 3], "got 3"),
    ],
)
def test_what_is_no_order_of_joining_is_refused(cohorts, words):
    with pytest.raises(InputError, match=words):
        dupre.precedence(cohorts)


@pytest.mark.parametrize(
    ("cohorts", "words"),
    [
        ([["Adda", "Ben"], ["Cleo"]], "unknown owner 'Adda' in the order of joining.*'Ada'"),
        ([["Ada"], ["Cleo"]], "does not name 'Ben'; expected every owner in one cohort"),
    ],
)
def test_an_order_of_other_owners_is_refused(cohorts, words):
    with pytest.raises(InputError, match=words):
        dupre.precedence(cohorts).positions(("Ada", "Ben", "Cleo"))
