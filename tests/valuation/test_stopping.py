from functools import partial
from operator import and_, or_

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import reporting
from dupre import InputError
from dupre.valuation import stopping
from dupre.valuation.stopping import State, evaluated, ranking_settled, settled, wall_time, within
from owners_and_games import make_owners, smooth, value


def valuation(mean, covariance, owners="ABCDEF"):
    mean, covariance = np.array(mean, dtype=float), np.array(covariance, dtype=float)
    return reporting.bare(names=owners[: len(mean)], mean=mean, covariance=covariance)


def state(evaluated=9, seconds=1.0, known=None):
    return State(evaluated, seconds, lambda: known)


def fires(rule, *args, **kwargs):
    return bool(rule.reasons(state(*args, **kwargs)))


def test_the_reason_is_the_rule_in_words_and_needs_values():
    assert [fires(evaluated(10), evaluated=n) for n in (9, 10, 11)] == [False, True, True]
    assert [fires(wall_time(60), seconds=s) for s in (59.9, 60.0, 1e9)] == [False, True, True]
    known = valuation([1.0, 2.0], np.zeros((2, 2)))
    said = {
        evaluated(7): "at least 7 coalitions are evaluated",
        wall_time(0.5): "0.5 seconds have passed",
        within(0.01): "every value is within ± 0.01 with 95 %",
        ranking_settled(level=0.9): "the ranking is settled with 90 %",
        settled("A", "B", level=0.99): "A against B is settled with 99 %",
    }
    for rule, text in said.items():
        assert rule.fired(state(known=known)) == (text,)
        assert repr(rule) == f"<stop when {text}>"
        of_time = text.startswith(("at least 7 coal", "0.5 sec"))
        assert bool(rule.fired(state(known=None))) == of_time  # before values can be told


@pytest.mark.parametrize("level", [0.6, 0.9, 0.95, 0.999])
def test_within_holds_when_the_widest_normal_interval_is_that_narrow(level):
    known = valuation([1.0, 2.0, 0.0], np.diag([0.01, 0.09, 0.04]))
    half = norm.ppf((1 + level) / 2) * 0.3  # of the least certain owner
    assert not fires(within(half * 0.9999, level=level), known=known)
    assert fires(within(half * 1.0001, level=level), known=known)
    assert fires(within(0.3 * 1.96), known=known)  # 95 % unless stated
    assert not fires(within(0.3 * 1.95), known=known)


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.5, 0.99])
@pytest.mark.parametrize("difference", [-0.4, 0.4])
def test_a_pair_is_settled_when_the_normal_probability_says_so(correlation, difference):
    one, other = 0.2, 0.3
    off = correlation * one * other
    covariance = [[one**2, 0, off], [0, 0, 0], [off, 0, other**2]]
    known = valuation([1.0, 5.0, 1.0 - difference], covariance)
    spread = np.sqrt(one**2 + other**2 - 2 * off)
    probability = norm.cdf(abs(difference) / spread)
    for names in (("A", "C"), ("C", "A")):
        assert fires(settled(*names, level=probability - 1e-6), known=known)
        assert not fires(settled(*names, level=min(probability + 1e-6, 1 - 1e-9)), known=known)


def test_a_ranking_is_settled_by_the_sum_over_neighbours_and_a_tie_never():
    known = valuation([1.0, 2.0, 2.0], np.zeros((3, 3)))
    assert fires(settled("A", "B", level=0.9999), known=known)
    assert not fires(settled("B", "C", level=0.51), known=known)
    assert not fires(ranking_settled(level=0.51), known=known)
    apart = valuation([1.0, 2.0, 3.0], np.zeros((3, 3)))
    assert fires(ranking_settled(level=0.9999), known=apart)

    mean, sd = np.array([0.3, 1.0, 0.0, 0.55]), 0.1
    known = valuation(mean, sd**2 * np.eye(4))
    ordered = np.sort(mean)[::-1]
    wrong = norm.sf(-np.diff(ordered) / (sd * np.sqrt(2))).sum()
    assert fires(ranking_settled(level=1 - wrong - 1e-6), known=known)
    assert not fires(ranking_settled(level=1 - wrong + 1e-6), known=known)


@pytest.mark.parametrize("seed", range(5))
def test_a_settled_ranking_is_right_at_least_as_often_as_it_says(seed):
    rng = np.random.default_rng(seed)
    root = 0.1 * rng.normal(size=(4, 4))
    known = valuation(rng.normal(size=4), root @ root.T)
    drawn = rng.multivariate_normal(known.mean, known.uncertainty.total, size=20_000)
    right = np.mean(np.all(np.diff(drawn[:, np.argsort(known.mean)], axis=1) > 0, axis=1))
    for level in (0.6, 0.8, 0.9, 0.95, 0.99):
        if fires(ranking_settled(level=level), known=known):
            assert right >= level - 0.01
    assert fires(ranking_settled(level=0.51), known=known) <= (right > 0.5)


NAMES = "pqrs"


def atom(name, holds):
    return stopping.Rule(name, lambda _: (name,) if holds else ())


def expressions():
    def both(inner):
        return st.tuples(st.sampled_from("|&"), inner, inner)

    return st.recursive(st.sampled_from(NAMES), both, max_leaves=8)


def build(expression, holds):
    """The rule, whether it holds, and the atoms it is made of."""
    if isinstance(expression, str):
        return atom(expression, holds[expression]), holds[expression]
    sign, first, second = expression
    (one, this), (other, that) = build(first, holds), build(second, holds)
    return (one | other, this or that) if sign == "|" else (one & other, this and that)


@given(expressions(), st.tuples(*[st.booleans()] * len(NAMES)))
def test_a_combination_fires_as_logic_says_and_its_reasons_hold_and_suffice(expression, truth):
    is_true = dict(zip(NAMES, truth, strict=True))
    rule, expected = build(expression, is_true)
    fired = rule.fired(state())
    assert bool(fired) == expected
    assert all(is_true[name] for name in fired)
    alone = {name: name in fired for name in NAMES}
    assert build(expression, alone)[1] == expected


def test_combinations_are_shown_as_they_are_grouped_with_the_owners_of_their_parts():
    one, two, three = (evaluated(3), wall_time(9), within(0.1))
    shown = repr((one | two) & three)
    assert shown == f"<stop when (({one.text} or {two.text}) and {three.text})>"
    assert repr(one | two & three) == f"<stop when ({one.text} or ({two.text} and {three.text}))>"
    rule = settled("A", "B") & (evaluated(3) | settled("C", "B"))
    assert set(rule.owners) == {"A", "B", "C"}


def test_numbers_and_owners_of_rules_are_checked():
    for make in (evaluated, wall_time, within):
        for number in (0, -1, float("nan"), float("inf"), "5", None, [3]):
            with pytest.raises(InputError, match=r"(positive|finite|whole)"):
                make(number)
    for count in (2.5, True):
        with pytest.raises(InputError, match="whole"):
            evaluated(count)
    for make in (partial(within, 0.1), ranking_settled, partial(settled, "A", "B")):
        for level in (0.5, 1, 0, 95, -0.1, float("nan"), "high", None):
            with pytest.raises(InputError, match="level"):
                make(level=level)
    rule = settled(1, 2)
    assert rule.owners == ("1", "2")
    assert fires(rule, known=valuation([1.0, 2.0], np.zeros((2, 2)), owners="12"))
    with pytest.raises(InputError, match="different"):
        settled("A", "A")
    for operator in (or_, and_):
        with pytest.raises(TypeError):
            operator(evaluated(3), 60)
    with pytest.raises((TypeError, InputError), match=r"[|&]"):
        within(0.1) or wall_time(9)
    with pytest.raises((TypeError, InputError), match=r"[|&]"):
        within(0.1) and 3
    for wrong in (True, False, "enough", 3, (3,)):
        with pytest.raises(InputError, match=r"tuple of reasons, \(\) to go on; 'mine' returned"):
            stopping.Rule("mine", lambda _, wrong=wrong: wrong)
    with pytest.raises(InputError, match="fired must be a callable"):
        stopping.Rule("mine", ("mine",))
    late = stopping.Rule("mine", lambda at: True if at.valuation().facts.evaluated else ())
    for rule in (late, late | evaluated(3), evaluated(3) & late):
        with pytest.raises(InputError, match="'mine' returned True"):
            fires(rule, evaluated=3, known=valuation([1.0, 2.0], np.zeros((2, 2))))


def test_a_rule_that_can_never_work_is_refused_when_it_is_made():
    for fired, message in (
        (
            lambda at: (at.evalauted > 3 and "x",),
            r"rule 'mine' failed: AttributeError: .*evalauted",
        ),
        (
            lambda at: (missing,),  # noqa: F821  # as a typing error is
            r"failed: NameError: .*'missing'.*; correct it \(.* evaluated, sec",
        ),
        (lambda: (), r"fired must be a callable\(state\) -> tuple of reasons to stop, got <func"),
        (lambda at, level: (), r"fired must be a callable\(state\)"),
    ):
        with pytest.raises(InputError, match=message):
            stopping.Rule("mine", fired)
    stopping.Rule("mine", lambda at, level=0.9: ())
    late = stopping.Rule("mine", lambda at: ("x",) if at.valuation().mean.max() > 1 else ())
    assert fires(late | evaluated(3), known=valuation([1.0, 2.0], np.zeros((2, 2))))


def test_a_rule_that_fails_later_is_named_and_the_trainings_are_kept():
    owners = make_owners(4)
    late = stopping.Rule("mine", lambda at: (1 / 0,) if at.evaluated else ())
    for rule in (late, late | evaluated(30)):
        with pytest.raises(InputError, match="the stop rule 'mine' failed: ZeroDivision") as caught:
            value(owners, smooth(owners), stop=rule)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert len(caught.value.valuer.trainings) == 9
        assert "known=error.valuer.trainings" in caught.value.__notes__[0]
