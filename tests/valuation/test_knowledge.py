import numpy as np
import pytest

import dupre
from dupre import estimators
from dupre.game.coalitions import from_names, keys, to_names
from dupre.game.draws import estimate_from_draws, guess_by_size, split_into_blocks
from dupre.game.estimators import Sample
from dupre.valuation import knowledge
from dupre.valuation.duplicates import Identity
from dupre.valuation.knowledge import BLOCKS, Knowledge
from dupre.valuation.next_batch import add_sizes_between, first_design
from dupre.valuation.observations import widen_by_repeats
from dupre.valuation.question import ask
from dupre.valuation.strategies import Active, Drawn
from owners_and_games import make_owners

SIX = make_owners(6)
MANY = make_owners(24)


def make_knowledge(owners=SIX, semivalue=dupre.shapley, estimator=None, strategy=None, seed=0):
    asked = ask(
        owners, semivalue=semivalue, estimator=estimator, strategy=strategy, kernel=None, seed=seed
    )
    return Knowledge(asked, Identity(owners.n))


def sample_knowledge(
    strategy=None, owners=MANY, samples=300, estimator=estimators.permutation, seed=0
):
    return make_knowledge(owners, dupre.shapley, Sample(estimator, samples), strategy, seed)


def utility(row):
    """Diminishing returns, and a little of no pattern."""
    noise = np.random.default_rng([int(b) for b in row]).normal()
    return float(1 - np.exp(-4 * row.mean()) + 0.01 * noise)


def record(ours, positions):
    for i in positions:
        row = ours.observations.members[i]
        ours.observations.record(ours.observations.names(i), utility(row))


def outside(ours, count, seed=0):
    """Coalitions, by name, that do not enter the values."""
    rng, inside = np.random.default_rng([1, seed]), set(keys(ours.weights.members))
    rows = rng.random((2 * count, ours.weights.members.shape[1])) < rng.uniform(0.2, 0.8)
    fresh = [row for row in rows if keys(row[None])[0] not in inside]
    return [to_names(row, MANY.names) for row in fresh[:count]]


def test_of_sampled_coalitions_those_of_the_first_design_come_first_then_the_heaviest():
    ours = sample_knowledge(Active(first=60))
    designed = keys(first_design(dupre.shapley, MANY.rows, 60, ours.rng(1)))
    chosen = keys(ours.weights.members[ours.heaviest])
    assert len(chosen) == len(set(chosen)) == 60
    position = {key: i for i, key in enumerate(keys(ours.weights.members))}
    known = [position[key] for key in designed if key in position]
    assert 1 < len(known) < 50
    weight = np.linalg.norm(ours.weights.W, axis=0)
    first = add_sizes_between(known, ours.weights.members, weight, ours.rng(12))
    assert ours.heaviest[: len(first)].tolist() == first
    others = ours.heaviest[len(first) :]
    assert np.all(np.diff(weight[others]) <= 1e-12)
    left = np.setdiff1d(np.arange(ours.b), ours.heaviest)
    assert weight[left].max() <= weight[others].min() + 1e-12


@pytest.mark.parametrize("strategy", [Active(), Drawn()])
def test_what_has_no_weight_is_neither_first_nor_open_nor_predicted(strategy):
    sample = Sample(estimators.permutation, 400)
    ours = make_knowledge(MANY, dupre.leave_one_out, sample, strategy)
    weights = ours.weights
    weightless = np.flatnonzero(~weights.W.any(axis=0))
    assert weightless.size > 300
    for some in (ours.first, ours.open, ours.unknown, ours.most_important):
        assert some.size
        assert not np.isin(some, weightless).any()
    assert not ours.draws.chances[weightless].any()


@pytest.mark.parametrize("semivalue", [dupre.shapley, dupre.banzhaf])
def test_the_grand_coalition_has_a_place_whether_it_counts_or_not(semivalue):
    counts = semivalue is dupre.shapley  # 300 coalitions drawn evenly of 2^24 do not hold it
    estimator = estimators.permutation if counts else estimators.maximum_sample_reuse
    ours = make_knowledge(MANY, semivalue, Sample(estimator, 300))
    assert ours.observations.members[ours.everyone].all()
    assert (ours.everyone < ours.b) == counts
    assert len(ours.unknown) == ours.b


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
    kept, real = [], knowledge.form.learn

    def learn(inputs, utilities, **options):
        kept.append((keys(inputs.members), utilities.copy(), options))
        return real(inputs, utilities, **options)

    monkeypatch.setattr(knowledge.form, "learn", learn)
    return kept


def test_a_predictor_is_learned_once_per_state(lessons):
    ours = sample_knowledge(Active(first=20))
    record(ours, ours.first)
    first = ours.predictor()
    ours.posterior(ours.weights.W)
    assert ours.predictor() is first
    assert len(lessons) == 1
    ours.observations.record(outside(ours, 1)[0], 0.3)
    assert ours.predictor() is not first
    assert len(lessons) == 2
    known = ours.observations.trainings[int(ours.first[0])]
    ours.observations.record(ours.observations.names(ours.first[0]), [*known, known[0] + 0.1])
    ours.predictor()
    assert len(lessons) == 3


def test_the_predictor_sees_what_was_recorded_and_nothing_else(lessons):
    ours = sample_knowledge(Active(first=20, check=6))
    record(ours, ours.first)
    others = outside(ours, 3)
    for members in others:
        ours.observations.record(members, 0.5)
    ours.predictor()
    seen, utilities, _ = lessons[0]
    held = ours.weights.members[ours.heaviest]
    rows = np.concatenate([held, [from_names(m, MANY.names) for m in others]])
    assert sorted(seen) == sorted(keys(rows))
    assert np.isfinite(utilities).all()


def test_sampled_values_use_the_first_coalitions_and_the_draws_in_turn():
    ours = make_knowledge(strategy=Active(first=7))
    order = list(dict.fromkeys(ours.draws.sequence.tolist()))
    record(ours, [*ours.heaviest, *order[:6], *order[7:9]])
    end = ours.draws.sequence.tolist().index(order[6])
    np.testing.assert_array_equal(ours.drawn, ours.draws.sequence[:end])
    guess = guess_by_size(ours.weights.members.sum(axis=1), ours.utilities, ours.heaviest)
    options = {"certain": ours.heaviest, "draws": ours.draws.sequence[:end]}
    options["chances"] = ours.draws.chances
    expected = estimate_from_draws(ours.weights.W, ours.utilities, guess[None], **options)
    np.testing.assert_array_equal(ours.values_from_draws().mean, expected.mean)
    np.testing.assert_array_equal(ours.values_from_draws().covariance, expected.covariance)


def after_draws(distinct, repeats=1, change=()):
    """Knowledge with its first design and as many distinct draws evaluated."""
    ours = make_knowledge()
    order = list(dict.fromkeys(ours.draws.sequence.tolist()))[:distinct]
    for i in [*ours.heaviest, *order]:
        number = utility(ours.observations.members[i]) + (5.0 if i in change else 0.0)
        spread = 0.5 if i in change else 0.01
        several = [number + spread * r for r in range(repeats)]
        ours.observations.record(ours.observations.names(i), several)
    return ours


def to_come(ours, j):
    """Coalitions drawn in block j or later, and in no block before."""
    blocks = split_into_blocks(ours.drawn, BLOCKS)
    before = np.concatenate([*blocks[:j], np.empty(0, dtype=np.int64)])
    return np.setdiff1d(np.concatenate(blocks[j:]), before)


@pytest.fixture
def guesses(monkeypatch):
    """Guesses of every correction."""
    kept = []

    def keep(W, utilities, guess, **options):
        kept.append(guess.copy())
        return estimate_from_draws(W, utilities, guess, **options)

    monkeypatch.setattr(knowledge, "estimate_from_draws", keep)
    return kept


def test_each_block_is_predicted_by_what_was_drawn_before_which_it_knows_exactly(lessons, guesses):
    ours = after_draws(24)
    ours.corrected_values()
    assert len(lessons) == BLOCKS
    everything = set(keys(ours.weights.members[ours.shown]))
    for j, (seen, _, _) in enumerate(lessons):
        assert to_come(ours, j).size
        assert set(seen) == everything - set(keys(ours.weights.members[to_come(ours, j)]))
    assert len({len(seen) for seen, _, _ in lessons}) == BLOCKS
    for j, guess in enumerate(guesses[0]):
        known = np.setdiff1d(np.flatnonzero(ours.recorded), to_come(ours, j))
        np.testing.assert_array_equal(guess[known], ours.utilities[known])
        assert np.all(guess[to_come(ours, j)] != ours.utilities[to_come(ours, j)])
    later = list(dict.fromkeys(ours.draws.sequence.tolist()))[26:28]  # 24 is not evaluated
    record(ours, later)  # besides the draws: shown to every block
    ours.corrected_values()
    assert not np.isin(later, ours.drawn).any()
    for seen, _, _ in lessons[BLOCKS:]:
        assert set(keys(ours.weights.members[later])) <= set(seen)


@pytest.mark.parametrize(("j", "repeats"), [(0, 1), (BLOCKS - 1, 1), (0, 3)])
def test_no_guess_depends_on_what_it_is_compared_with_nor_on_its_spread(guesses, j, repeats):
    plain = after_draws(24, repeats)
    moved = after_draws(24, repeats, change=to_come(plain, j))
    for ours in (plain, moved):
        ours.corrected_values()
    np.testing.assert_array_equal(guesses[0][: j + 1], guesses[1][: j + 1])
    for later in range(j + 1, BLOCKS):
        assert np.abs(guesses[0][later] - guesses[1][later]).max() > 1
