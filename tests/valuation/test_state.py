import numpy as np
import pytest

import dupre
from dupre import estimators
from dupre.game.coalitions import from_names, keys, to_names
from dupre.game.draws import estimate_from_draws, guess_by_size, split_into_blocks
from dupre.game.estimators import Sample
from dupre.valuation import state
from dupre.valuation.first_design import add_sizes_between, first_design
from dupre.valuation.state import BLOCKS, widen_by_repeats
from dupre.valuation.strategies import Active, Drawn
from owners_and_games import make_owners

SIX = make_owners(6)
MANY = make_owners(24)


def new(owners=SIX, **how):
    return dupre.Valuer(owners, empty=0.0, **how)


def sampled(strategy=None):
    return new(MANY, estimator=Sample(estimators.permutation, 300), strategy=strategy)


def utility(row):
    """Diminishing returns, and a little of no pattern."""
    noise = np.random.default_rng([int(b) for b in row]).normal()
    return float(1 - np.exp(-4 * row.mean()) + 0.01 * noise)


def record(ours, positions):
    for i in positions:
        members = ours.question.weights.members[i]
        ours.record(to_names(members, ours.owners.names), utility(members))


def outside(ours, count):
    """Coalitions, by name, that do not enter the values."""
    rng, inside = np.random.default_rng([1, 0]), set(ours.question.columns)
    rows = rng.random((2 * count, ours.owners.n)) < rng.uniform(0.2, 0.8)
    fresh = [row for row in rows if keys(row[None])[0] not in inside]
    return [to_names(row, MANY.names) for row in fresh[:count]]


def test_of_sampled_coalitions_those_of_the_first_design_come_first_then_the_heaviest():
    asked = sampled(Active(first=60)).question
    weights = asked.weights
    designed = keys(first_design(dupre.shapley, MANY.rows, 60, asked.rng(1)))
    chosen = keys(weights.members[asked.heaviest])
    assert len(chosen) == len(set(chosen)) == 60
    known = [asked.columns[key] for key in designed if key in asked.columns]
    assert 1 < len(known) < 50
    weight = np.linalg.norm(weights.W, axis=0)
    first = add_sizes_between(known, weights.members, weight, asked.rng(12))
    assert asked.heaviest[: len(first)].tolist() == first
    others = asked.heaviest[len(first) :]
    assert np.all(np.diff(weight[others]) <= 1e-12)
    left = np.setdiff1d(np.arange(asked.b), asked.heaviest)
    assert weight[left].max() <= weight[others].min() + 1e-12


@pytest.mark.parametrize("strategy", [Active(), Drawn()])
def test_what_has_no_weight_is_neither_first_nor_open_nor_predicted(strategy):
    sample = Sample(estimators.permutation, 400)
    ours = new(MANY, semivalue=dupre.leave_one_out, estimator=sample, strategy=strategy)
    asked = ours.question
    weightless = np.flatnonzero(~asked.weights.W.any(axis=0))
    assert weightless.size > 300
    for some in (asked.first, ours.state.open, ours.state.unknown, asked.most_important):
        assert some.size
        assert not np.isin(some, weightless).any()
    assert not asked.draws.chances[weightless].any()


@pytest.mark.parametrize("semivalue", [dupre.shapley, dupre.banzhaf])
def test_the_grand_coalition_has_a_place_once_it_is_evaluated_whether_it_counts_or_not(semivalue):
    counts = semivalue is dupre.shapley  # 300 coalitions drawn evenly of 2^24 do not hold it
    estimator = estimators.permutation if counts else estimators.maximum_sample_reuse
    ours = new(MANY, semivalue=semivalue, estimator=Sample(estimator, 300))
    everyone, b = np.ones((1, 24), dtype=bool), ours.question.b
    assert (ours.state.positions(everyone)[0] >= 0) == counts
    assert len(ours.state.unknown) == b
    ours.record(MANY.names, 0.5)
    at = ours.state.positions(everyone)[0]
    assert ours.state.members[at].all()
    assert (at < b) == counts
    assert len(ours.state.unknown) == b - counts


def test_variances_from_few_repeats_are_widened_so_that_intervals_hold():
    def widen(freedom):
        return widen_by_repeats(np.ones(1), [[0.0] * (freedom + 1)]).item()

    assert widen(0) == 1.0
    assert widen(4) == pytest.approx((2.776 / 1.96) ** 2, rel=1e-3)
    assert widen(10_000) == pytest.approx(1.0, abs=1e-3)
    rng, freedom = np.random.default_rng(0), 4
    std = np.sqrt(widen(freedom) * rng.chisquare(freedom, 40_000) / freedom)
    assert np.mean(np.abs(rng.normal(size=40_000)) < 1.96 * std) == pytest.approx(0.95, abs=0.005)


@pytest.fixture
def lessons(monkeypatch):
    """Utilities and random numbers of every predictor learned."""
    kept, real = [], state.form.learn

    def learn(inputs, utilities, **options):
        kept.append((keys(inputs.members), utilities.copy(), options))
        return real(inputs, utilities, **options)

    monkeypatch.setattr(state.form, "learn", learn)
    return kept


def test_a_predictor_is_learned_once_per_state_for_values_and_choices(lessons):
    ours = sampled(Active(first=20))
    first = ours.question.first
    record(ours, first)
    ours.suggest(3, pending=ours.suggest(2))
    ours.interim_values()
    ours.forecast(4)
    assert len(lessons) == 1
    ours.record(outside(ours, 1)[0], 0.3)
    ours.interim_values()
    assert len(lessons) == 2
    members = ours.state.names(first[0])
    (known,) = ours.trainings[members]
    ours.record(members, [known, known + 0.1])
    ours.suggest(3)
    assert len(lessons) == 3
    ours.record(members, known)  # nothing new
    ours.suggest(2)
    assert len(lessons) == 3


def test_the_predictor_sees_what_was_recorded_and_nothing_else(lessons):
    ours = sampled(Active(first=20, check=6))
    record(ours, ours.question.first)
    others = outside(ours, 3)
    for members in others:
        ours.record(members, 0.5)
    ours.suggest(2)
    seen, utilities, _ = lessons[0]
    heaviest = ours.question.weights.members[ours.question.heaviest]
    rows = np.concatenate([heaviest, [from_names(m, MANY.names) for m in others]])
    assert sorted(seen) == sorted(keys(rows))
    assert np.isfinite(utilities).all()


def test_sampled_values_use_the_first_coalitions_and_the_draws_in_turn():
    ours = new(strategy=Active(first=7))
    asked = ours.question
    order = list(dict.fromkeys(asked.draws.sequence.tolist()))
    record(ours, [*asked.heaviest, *order[:6], *order[7:9]])
    end = asked.draws.sequence.tolist().index(order[6])
    known, W = ours.state, asked.weights.W
    np.testing.assert_array_equal(known.beliefs.drawn, asked.draws.sequence[:end])
    guess = guess_by_size(known.sizes, known.utilities, asked.heaviest)
    options = {"certain": asked.heaviest, "draws": asked.draws.sequence[:end]}
    options["chances"] = asked.draws.chances
    expected = estimate_from_draws(W, known.utilities, guess[None], **options)
    found = known.beliefs.values_from_draws
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.covariance, expected.covariance)


def after_draws(distinct, repeats=1, change=()):
    """A valuer with its first design and as many distinct draws evaluated."""
    ours = new()
    order = list(dict.fromkeys(ours.question.draws.sequence.tolist()))[:distinct]
    for i in [*ours.question.heaviest, *order]:
        members = ours.question.weights.members[i]
        number = utility(members) + (5.0 if i in change else 0.0)
        spread = 0.5 if i in change else 0.01
        ours.record(to_names(members, SIX.names), [number + spread * r for r in range(repeats)])
    return ours


def to_come(ours, j):
    """Coalitions drawn in block j or later, and in no block before."""
    blocks = split_into_blocks(ours.state.beliefs.drawn, BLOCKS)
    before = np.concatenate([*blocks[:j], np.empty(0, dtype=np.int64)])
    return np.setdiff1d(np.concatenate(blocks[j:]), before)


@pytest.fixture
def guesses(monkeypatch):
    """Guesses of every correction."""
    kept = []

    def keep(W, utilities, guess, **options):
        kept.append(guess.copy())
        return estimate_from_draws(W, utilities, guess, **options)

    monkeypatch.setattr(state, "estimate_from_draws", keep)
    return kept


def test_each_block_is_predicted_by_what_was_drawn_before_which_it_knows_exactly(lessons, guesses):
    ours = after_draws(24)
    members, known = ours.question.weights.members, ours.state
    assert known.beliefs.corrected_values is known.beliefs.corrected_values
    assert len(lessons) == BLOCKS
    everything = set(keys(members[known.shown]))
    for j, (seen, _, _) in enumerate(lessons):
        assert to_come(ours, j).size
        assert set(seen) == everything - set(keys(members[to_come(ours, j)]))
    assert len({len(seen) for seen, _, _ in lessons}) == BLOCKS
    for j, guess in enumerate(guesses[0]):
        before = np.setdiff1d(np.flatnonzero(known.recorded), to_come(ours, j))
        np.testing.assert_array_equal(guess[before], known.utilities[before])
        assert np.all(guess[to_come(ours, j)] != known.utilities[to_come(ours, j)])
    later = list(dict.fromkeys(ours.question.draws.sequence.tolist()))[26:28]  # 24 is open
    record(ours, later)  # besides the draws: shown to every block
    _ = ours.state.beliefs.corrected_values
    assert not np.isin(later, ours.state.beliefs.drawn).any()
    for seen, _, _ in lessons[BLOCKS:]:
        assert set(keys(members[later])) <= set(seen)


@pytest.mark.parametrize(("j", "repeats"), [(0, 1), (BLOCKS - 1, 1), (0, 3)])
def test_no_guess_depends_on_what_it_is_compared_with_nor_on_its_spread(guesses, j, repeats):
    plain = after_draws(24, repeats)
    moved = after_draws(24, repeats, change=to_come(plain, j))
    for ours in (plain, moved):
        _ = ours.state.beliefs.corrected_values
    np.testing.assert_array_equal(guesses[0][: j + 1], guesses[1][: j + 1])
    for later in range(j + 1, BLOCKS):
        assert np.abs(guesses[0][later] - guesses[1][later]).max() > 1
