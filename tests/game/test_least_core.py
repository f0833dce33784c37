from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, lsq_linear

from closed_form import additive, airport, glove, majority, unanimity, unanimity_sum
from dupre import DupreError
from dupre.game import least_core as module
from dupre.game.coalitions import all_coalitions
from dupre.game.least_core import draw_cores, least_core, search_core

WORTHS = [3.0, -1.0, 0.0, 0.5]


def proper(n):
    return all_coalitions(n)[:-1]


def listed(game):
    """The least core of a game with all coalitions listed."""
    return least_core(proper(game.n), game.utility(proper(game.n)), grand=worth(game))


def worth(game):
    return float(game.utility(np.ones((1, game.n), dtype=bool))[0])


def noisy(n, seed=0, spread=0.05):
    """Coalitions, utilities with diminishing returns, and the utility of all."""
    rng = np.random.default_rng(seed)
    rows, members = rng.random(n), proper(n)
    utilities = np.sqrt(members @ rows) + spread * rng.normal(size=len(members))
    return members, utilities, float(np.sqrt(rows.sum()))


def lowest_subsidy(members, gains, total):
    """The linear program with all rows at once."""
    rows = -np.column_stack([members, np.ones(len(members))]).astype(float)
    n = members.shape[1]
    solved = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=rows,
        b_ub=-gains,
        A_eq=[np.append(np.ones(n), 0.0)],
        b_eq=[total],
        bounds=(None, None),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0
    return solved.fun


def shortest_payments(members, floor, total):
    """The shortest x with x(N) = total and x(S) >= floor(S), by trying every active set."""
    n, best = members.shape[1], None
    for size in range(n):
        for active in combinations(range(len(members)), size):
            E = np.vstack([np.ones(n), members[list(active)]])
            f = np.append(total, floor[list(active)])
            x = np.linalg.lstsq(E, f)[0]
            feasible = np.abs(E @ x - f).max() < 1e-9 and np.all(members @ x >= floor - 1e-9)
            if feasible and (best is None or x @ x < best @ best):
                best = x
    return best


def not_shortest(core):
    """How far x is from a sum of the all-ones row and tight coalitions with weights >= 0.

    Such a sum is the condition of Karush, Kuhn and Tucker for the shortest payments.
    """
    n = len(core.payments)
    signs = np.vstack([core.tight, np.ones(n), -np.ones(n)]).astype(float)
    return distance_from_cone(signs, core.payments)


def distance_from_cone(rows, x):
    """Of x from sums of rows with weights >= 0; not by nnls, which SciPy 1.17 gets wrong."""
    solved = lsq_linear(rows.T, x, (0.0, np.inf), method="bvls", tol=1e-14)
    return np.linalg.norm(rows.T @ solved.x - x)


def assert_egalitarian(core, members, gains, total):
    scale = max(np.abs(gains).max(), abs(total), 1e-300)
    assert core.payments.sum() == pytest.approx(total, abs=1e-12 * scale * members.shape[1])
    assert np.max(gains - members @ core.payments) <= core.subsidy + 1e-9 * scale
    lowest = lowest_subsidy(members, gains / scale, total / scale)
    assert core.subsidy / scale == pytest.approx(lowest, abs=1e-9)
    assert not_shortest(core) < 1e-9 * scale


# Games whose least core is known


def airport_core(costs):
    """Nobody is paid less than nothing, so each alone is the constraint: c_i - e, or 0.

    The payments add up to the highest cost: e is the largest of (c_2 + ... + c_k) / k over
    k >= 2, with costs from the highest down.
    """
    down = np.sort(costs)[::-1]
    e = max(down[1:k].sum() / k for k in range(2, len(costs) + 1))
    return np.maximum(np.asarray(costs) - e, 0.0), e


KNOWN = {
    "additive": (additive(WORTHS), WORTHS, 0.0),
    "additive, all worth the same": (additive([2.0] * 5), [2.0] * 5, 0.0),
    "worth nothing": (additive([0.0] * 6), [0.0] * 6, 0.0),
    "two owners, additive": (additive([1.0, 4.0]), [1.0, 4.0], 0.0),
    "two owners who need each other": (glove(1), [0.5, 0.5], -0.5),
    "glove": (glove(2), [1.0, 0.0, 0.0], 0.0),
    "glove of many": (glove(9), [1.0] + [0.0] * 9, 0.0),
    "majority of 3": (majority(3), [1 / 3] * 3, 1 / 3),
    "majority of 4": (majority(4), [1 / 4] * 4, 1 / 4),
    "majority of 9": (majority(9), [1 / 9] * 9, 4 / 9),
    "majority of 12": (majority(12), [1 / 12] * 12, 5 / 12),
    "unanimity of some": (unanimity(5, [1, 3]), [0, 0.5, 0, 0.5, 0], 0.0),
    "unanimity of one": (unanimity(4, [2]), [0, 0, 1, 0], 0.0),
    "unanimity of all": (unanimity(6, range(6)), [1 / 6] * 6, -1 / 6),
    "airport": (airport([4.0, 1.0, 7.0, 2.5, 5.0]), *airport_core([4.0, 1.0, 7.0, 2.5, 5.0])),
    "airport, one far": (airport([1.0, 9.0, 0.1]), *airport_core([1.0, 9.0, 0.1])),
    "airport, equal": (airport([2.0] * 4), *airport_core([2.0] * 4)),
}


@pytest.mark.parametrize(("game", "payments", "subsidy"), KNOWN.values(), ids=KNOWN.keys())
def test_known_games_have_their_known_least_core(game, payments, subsidy):
    core = listed(game)
    np.testing.assert_allclose(core.payments, payments, atol=1e-12)
    assert core.subsidy == pytest.approx(subsidy, abs=1e-12)
    assert core.looked == 2**game.n - 2
    assert 0 <= core.violation < 1e-12


@pytest.mark.parametrize("f", [np.sqrt, np.square, np.sin, np.ones_like], ids=lambda f: f.__name__)
def test_a_game_of_sizes_pays_all_alike_at_the_subsidy_of_the_worst_size(f):
    for n in (2, 3, 7):
        members, k = proper(n), np.arange(1.0, n)
        grand = float(f(np.float64(n)))
        core = least_core(members, f(members.sum(axis=1).astype(float)), grand=grand)
        np.testing.assert_allclose(core.payments, grand / n, atol=1e-12)
        assert core.subsidy == pytest.approx(np.max(f(k) - k * grand / n), abs=1e-12)


def test_small_games_are_solved_as_by_hand():
    members = proper(4)
    both = unanimity(4, [0, 1])  # one of them has a good offer elsewhere, and is paid no more
    utilities = np.maximum(both.utility(members), np.where(members[:, 0], 0.9, 0.0))
    core = least_core(members, utilities, grand=1.0)
    np.testing.assert_allclose(core.payments, [0.9, 0.1, 0, 0], atol=1e-12)
    assert core.subsidy == pytest.approx(0, abs=1e-12)
    members = np.array([[True, False, False, False], [False, True, True, True]])
    core = least_core(members, np.array([1.0, 0.0]), grand=4.0)
    # x_0 - 1 = x_1 + x_2 + x_3 = 1.5: what the constraints leave open is shared equally.
    np.testing.assert_allclose(core.payments, [2.5, 0.5, 0.5, 0.5], atol=1e-12)
    assert core.subsidy == pytest.approx(-1.5)
    members = proper(6)  # an owner who adds nothing is paid nothing: the core is not empty
    others = members[:, :5].sum(axis=1)
    core = least_core(members, others**2.0, grand=25.0)
    assert core.subsidy == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(core.payments, [5, 5, 5, 5, 5, 0], atol=1e-12)


# Any game


@st.composite
def games(draw, least=2, most=6):
    """Coalitions, gains and total, many of them with ties."""
    n = draw(st.integers(least, most))
    members = proper(n)
    high = draw(st.sampled_from([1, 3, 1000]))
    whole = st.integers(-high, high)
    gains = np.array(draw(st.lists(whole, min_size=len(members), max_size=len(members))))
    return members, gains / min(high, 10), float(draw(st.integers(-2, 6)))


@settings(deadline=None, max_examples=80)
@given(games())
def test_payments_are_efficient_feasible_optimal_and_shortest(game):
    members, gains, total = game
    assert_egalitarian(least_core(members, gains, grand=total), members, gains, total)


@settings(deadline=None, max_examples=40)
@given(games(least=3, most=4))
def test_payments_are_the_shortest_of_all_active_sets(game):
    members, gains, total = game
    core = least_core(members, gains, grand=total)
    shortest = shortest_payments(members, gains - lowest_subsidy(members, gains, total), total)
    np.testing.assert_allclose(core.payments, shortest, atol=1e-7)


@settings(deadline=None, max_examples=40)
@given(games(least=3, most=5), st.floats(0.1, 0.9), st.integers(0, 2**32 - 1))
def test_some_of_the_coalitions_are_solved_as_exactly_or_refused(game, part, seed):
    members, gains, total = game
    some = np.random.default_rng(seed).random(len(members)) < part
    some[0] = True  # at least one
    try:
        core = least_core(members[some], gains[some], grand=total)
    except DupreError:
        rows = members[some].astype(float)
        # Farkas: no weights of the rows sum to the row of ones.
        assert distance_from_cone(rows, np.ones(members.shape[1])) > 1e-6
    else:
        assert_egalitarian(core, members[some], gains[some], total)
        assert core.subsidy <= least_core(members, gains, grand=total).subsidy + 1e-9


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 4), min_size=3, max_size=7), st.integers(1, 12))
def test_weighted_votes_are_efficient_feasible_optimal_and_shortest(votes, quota):
    members = proper(len(votes))
    utilities = np.where(members @ votes >= quota, 0.7, 0.0)
    grand = 0.7 if sum(votes) >= quota else 0.0
    assert_egalitarian(least_core(members, utilities, grand=grand), members, utilities, grand)


@pytest.mark.parametrize("seed", range(3))
def test_many_coalitions_are_solved_as_all_at_once(seed):
    members, utilities, grand = noisy(12, seed=12, spread=(0.0, 0.02, 1.0)[seed])
    assert_egalitarian(least_core(members, utilities, grand=grand), members, utilities, grand)
    game = unanimity_sum(8, 20, np.random.default_rng(seed))
    assert_egalitarian(listed(game), proper(8), game.utility(proper(8)), worth(game))


def test_tight_coalitions_are_those_paid_their_gain_less_the_subsidy():
    game = airport([4.0, 1.0, 7.0, 2.5])
    core = listed(game)
    slack = core.tight @ core.payments + core.subsidy - game.utility(core.tight)
    np.testing.assert_allclose(slack, 0, atol=1e-12)
    members = proper(4)
    all_slack = members @ core.payments + core.subsidy - game.utility(members)
    assert len(core.tight) == np.count_nonzero(all_slack < 1e-9)

    members = proper(6)
    utilities = np.where(members @ [2, 0, 1, 3, 2, 0] >= 5, 1.0, 0.0)
    core = least_core(members, utilities, grand=1.0)
    np.testing.assert_allclose(core.payments, [1 / 3, 0, 0, 1 / 3, 1 / 3, 0], atol=1e-12)
    assert_egalitarian(core, members, utilities, 1.0)


@settings(deadline=None, max_examples=60)
@given(games(least=3), st.integers(0, 2**32 - 1))
def test_two_owners_made_interchangeable_are_paid_the_same(game, seed):
    members, gains, total = game
    one, other = np.random.default_rng(seed).choice(members.shape[1], 2, replace=False)
    swapped = members.copy()
    swapped[:, [one, other]] = members[:, [other, one]]
    codes = 2 ** np.arange(members.shape[1])
    even = (gains + gains[swapped @ codes - 1]) / 2
    payments = least_core(members, even, grand=total).payments
    assert payments[one] == pytest.approx(payments[other], abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(games(), st.floats(1e-6, 1e6), st.floats(-100, 100, width=16))
def test_units_and_the_utility_of_no_data_only_rescale_and_cancel(game, unit, empty):
    members, gains, total = game
    core = least_core(members, gains, grand=total)
    other = least_core(members, unit * gains, grand=unit * total)
    np.testing.assert_allclose(other.payments, unit * core.payments, atol=1e-8 * unit)
    assert other.subsidy == pytest.approx(unit * core.subsidy, abs=1e-8 * unit)
    moved = least_core(members, np.round(gains) + empty, grand=total + empty, empty=empty)
    still = least_core(members, np.round(gains), grand=total)
    np.testing.assert_allclose(moved.payments, still.payments, atol=1e-8)
    assert moved.subsidy == pytest.approx(still.subsidy, abs=1e-8)


@settings(deadline=None, max_examples=40)
@given(games(), st.integers(0, 2**32 - 1))
def test_an_additive_game_on_top_moves_the_least_core_by_it(game, seed):
    members, gains, total = game
    worths = np.random.default_rng(seed).integers(-3, 4, size=members.shape[1]).astype(float)
    core = least_core(members, gains, grand=total)
    moved = least_core(members, gains + members @ worths, grand=total + worths.sum())
    assert moved.subsidy == pytest.approx(core.subsidy, abs=1e-9)
    back = moved.payments - worths
    assert np.all(members @ back + core.subsidy >= gains - 1e-8)
    assert np.linalg.norm(core.payments) <= np.linalg.norm(back) + 1e-8


def test_order_repetition_and_blocks_of_rows_change_nothing_nor_arguments(monkeypatch):
    members, utilities, grand = noisy(7)
    core = least_core(members, utilities, grand=grand)
    rows = np.random.default_rng(1).integers(0, len(members), size=1000)
    rows = np.concatenate([rows, np.arange(len(members))[::-1]])
    again = least_core(members[rows], utilities[rows], grand=grand)
    np.testing.assert_allclose(again.payments, core.payments, atol=1e-12)
    lower = least_core(members[rows], utilities[rows] - (np.arange(len(rows)) < 1000), grand=grand)
    np.testing.assert_allclose(lower.payments, core.payments, atol=1e-12)
    monkeypatch.setattr(module, "BLOCK", 5)
    again = least_core(members, utilities, grand=grand)
    np.testing.assert_allclose(again.payments, core.payments, atol=1e-12)
    before = members.copy(), utilities.copy()
    draw_cores(members, utilities[None, :], grand=grand)
    np.testing.assert_array_equal(members, before[0])
    np.testing.assert_array_equal(utilities, before[1])


@pytest.mark.parametrize("one_grand", [True, False])
def test_each_draw_has_the_core_it_would_have_alone(one_grand):
    members, utilities, grand = noisy(7)
    rng = np.random.default_rng(0)
    draws = utilities + 0.1 * rng.normal(size=(12, len(members)))
    draws[3] = np.round(draws[3])
    grands = grand if one_grand else grand + rng.normal(size=12)
    payments, subsidies = draw_cores(members, draws, grand=grands, empty=0.25)
    assert payments.shape == (12, 7)
    assert subsidies.shape == (12,)
    for d, total in enumerate(np.broadcast_to(grands, 12)):
        core = least_core(members, draws[d], grand=total, empty=0.25)
        np.testing.assert_allclose(payments[d], core.payments, atol=1e-10)
        assert subsidies[d] == pytest.approx(core.subsidy, abs=1e-10)


# Searches

NONE = np.zeros((0, 60), dtype=bool)


def search(utility, grand, *, start, seed=0, limit=300_000):
    """A search with the generator of a seed."""
    rng = np.random.default_rng(seed)
    return search_core(utility, start=start, grand=grand, rng=rng, limit=limit)


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (3, 0), (10, 0), (10, 1), (12, 2)])
def test_a_search_finds_the_core_of_all_coalitions(n, seed, monkeypatch):
    game = unanimity_sum(n, 20, np.random.default_rng(seed))
    core = listed(game)
    monkeypatch.setattr(module, "MATTERS", 0.0)
    monkeypatch.setattr(module, "SEARCHES", 6)
    searched = search(game.utility, worth(game), start=proper(n)[:2], seed=seed)
    np.testing.assert_allclose(searched.payments, core.payments, atol=1e-9)
    assert searched.subsidy == pytest.approx(core.subsidy, abs=1e-9)
    assert searched.violation <= 1e-8 * max(1.0, np.abs(game.utility(proper(n))).max())


@pytest.mark.parametrize("f", [np.square, np.sqrt, np.zeros_like], ids=lambda f: f.__name__)
def test_forty_owners_with_worths_and_sizes_are_paid_as_known(f, monkeypatch):
    monkeypatch.setattr(module, "MATTERS", 0.0)
    n, k = 40, np.arange(1.0, 40)
    worths = np.random.default_rng(0).normal(size=n)
    grand = float(worths.sum() + f(np.float64(n)))

    def utility(C):
        return C @ worths + f(C.sum(axis=1).astype(float))

    core = search(utility, grand, start=NONE[:, :n], seed=1)
    share = float(f(np.float64(n))) / n
    np.testing.assert_allclose(core.payments, worths + share, atol=1e-8)
    assert core.subsidy == pytest.approx(np.max(f(k) - k * share), abs=1e-8)


def logged(game):
    """Its utility, and a list of what it is asked for."""
    seen = []

    def utility(members):
        seen.append(members)
        return game.utility(members)

    return utility, seen


def test_a_search_counts_what_it_looks_at_and_says_how_far_it_came():
    utility, seen = logged(majority(9))
    core = search(utility, 1.0, start=proper(9)[:3])
    every = np.concatenate(seen)
    assert core.looked == len(every)
    assert np.all(every.any(axis=1) & ~every.all(axis=1))
    assert {1, 2, 3, 4, 5, 6, 7, 8} <= set(every.sum(axis=1).tolist())
    game = majority(11)
    utility, seen = logged(game)
    core = search(utility, 1.0, start=NONE[:, :11], limit=1)  # cut short

    every = np.concatenate(seen)
    over = game.utility(every) - every @ core.payments - core.subsidy
    assert core.violation == pytest.approx(over.max())
    assert core.violation > 0.1
    assert core.subsidy <= 5 / 11


def test_a_search_climbs_and_stops_at_violations_that_do_not_matter(monkeypatch):
    peak = np.random.default_rng(3).random(60) < 0.5

    def utility(members):
        return (1 - (members ^ peak).mean(axis=1)) ** 4

    grand = float(peak.mean() ** 4)
    core = search(utility, grand, start=NONE, limit=1)
    assert core.violation >= 1 - core.payments[peak].sum() - core.subsidy - 1e-12

    members, utilities, grand = noisy(10)
    codes, found = 2 ** np.arange(10), []
    for matters in (0.2, 0.0):
        monkeypatch.setattr(module, "MATTERS", matters)
        found.append(search(lambda C: utilities[C @ codes - 1], grand, start=NONE[:, :10]))
    rough, exact = found
    assert rough.looked < exact.looked
    assert 0 < rough.violation <= 0.2 * utilities.max()
    assert rough.subsidy < exact.subsidy
    every = least_core(members, utilities, grand=grand)
    assert exact.subsidy == pytest.approx(every.subsidy, abs=1e-9)


def test_no_search_begins_beyond_the_limit_and_it_follows_the_generator(monkeypatch):
    game = unanimity_sum(15, 40, np.random.default_rng(0))
    first, again = (
        search(game.utility, worth(game), start=NONE[:, :15], seed=4, limit=5_000) for _ in range(2)
    )
    assert first.looked == again.looked
    np.testing.assert_array_equal(first.payments, again.payments)
    game, looked = additive(WORTHS), []
    for searches in (1, 20):
        monkeypatch.setattr(module, "SEARCHES", searches)
        looked.append(search(game.utility, worth(game), start=NONE[:, :4], limit=1).looked)
    assert looked[0] == looked[1]


# Refusals


def rows(*codes, n=3):
    return all_coalitions(n)[np.array(codes) - 1]


ALL = rows(1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("members", [rows(1, 2, 3), rows(4, 5, 6), rows(3, 5, 9, 1, 2, n=4)])
def test_coalitions_that_do_not_bound_the_subsidy_are_refused(members):
    with pytest.raises(DupreError, match="do not bound the subsidy"):
        least_core(members, np.zeros(len(members)), grand=1.0)


def test_a_program_that_is_not_solved_and_payments_not_found_are_errors(monkeypatch):
    failed = SimpleNamespace(status=4, message="numerical difficulties")
    monkeypatch.setattr(module, "linprog", lambda *_, **__: failed)
    with pytest.raises(DupreError, match="numerical difficulties"):
        least_core(ALL, np.zeros(6), grand=1.0)
    monkeypatch.undo()
    monkeypatch.setattr(module, "_shortest_vector", lambda *_: np.zeros(4))
    members = proper(4)
    utilities = np.maximum(members[:, :2].all(axis=1), np.where(members[:, 0], 0.9, 0.0))
    with pytest.raises(DupreError, match="found only up to an error"):
        least_core(members, utilities, grand=1.0)

    monkeypatch.undo()
    wrong = SimpleNamespace(x=np.ones(1), message="too many steps")
    monkeypatch.setattr(module, "_is_optimal", lambda *_: False)
    monkeypatch.setattr(module, "lsq_linear", lambda *_, **__: wrong)
    with pytest.raises(DupreError, match="too many steps"):
        least_core(members, utilities, grand=1.0)


def wrong_nnls(A, b):
    return np.ones(A.shape[1]), 0.0


def endless_nnls(A, b):
    raise RuntimeError("Maximum number of iterations reached.")


@pytest.mark.parametrize("solver", [wrong_nnls, endless_nnls])
def test_a_wrong_answer_of_nnls_is_found_and_solved_another_way(monkeypatch, solver):
    members, gains, total = noisy(5, seed=1)
    right = least_core(members, gains, grand=total)
    monkeypatch.setattr(module, "nnls", solver)
    np.testing.assert_allclose(
        least_core(members, gains, grand=total).payments, right.payments, atol=1e-12
    )
