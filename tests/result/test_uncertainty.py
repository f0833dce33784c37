from dataclasses import replace

import numpy as np
import pytest

import dupre
from dupre.notes import Code, has, note, select
from dupre.report.page import page
from dupre.report.statements import statements
from dupre.report.summary import answer, texts
from dupre.result.as_text import what_next
from dupre.result.remarks import with_notes
from dupre.result.uncertainty import DOMINANT, OF_ROWS, trainings_help
from owners_and_games import make_owners
from reporting import UNKNOWN_ROWS, change, least_core, valuation

ONE_SPLIT = note(
    Code.ONE_SPLIT, "How much another split would change the values is in no interval."
)

QUIETLY = {"progress": False, "repeats": 1}


@pytest.mark.parametrize("part", [None, np.zeros((4, 4)), np.eye(4) / 1e6])
def test_the_choice_of_the_rows_held_out_is_said_to_be_in_no_interval(part):
    given = change(valuation(4), validation=part, validation_rows=80)
    held = with_notes(given, [ONE_SPLIT])
    assert not has(given.notes, Code.ONE_SPLIT)
    assert select(held.notes, OF_ROWS) == [*select(given.notes, OF_ROWS), ONE_SPLIT]
    assert held.explain().count(ONE_SPLIT.text) == 1
    assert ONE_SPLIT.text in page([held])
    for text in (given.explain(), page([given])):
        assert "held out" not in text


def test_one_row_is_counted_as_one():
    v = change(valuation(4), validation=np.zeros((4, 4)), validation_rows=1)
    assert "No resample of the 1 validation row changes" in texts(v, *OF_ROWS)[0]
    assert texts(change(v, validation=None), *OF_ROWS) == [UNKNOWN_ROWS]


def test_payments_of_a_least_core_are_exact_only_if_nothing_was_predicted():
    """Predicted coalitions may not bind at any draw: the payments depend on them all the same."""
    rows = {"covariance": np.eye(4) / 1e4, "validation": np.eye(4) / 1e4, "validation_rows": 80}
    unmoved = "same for all utilities that the predictions allow"
    for parts, both in ((rows, True), ({"covariance": np.zeros((4, 4))}, False)):
        v = least_core(prediction=np.zeros((4, 4)), **parts)
        v = change(
            v,
            subsidy=replace(
                v.facts.subsidy, low=v.facts.subsidy.amount, high=v.facts.subsidy.amount
            ),
        )
        told = [v.explain()] * both + [" ".join(answer(v))]
        assert all(unmoved in text and " exact" not in text for text in told)
        assert "no coalition is expected to gain more" in v.explain()
        known = change(v, diagnostics=None)
        told = [known.explain(), " ".join(answer(known))]
        assert all(unmoved not in text and "xact" in text for text in told)
        assert "no coalition gains more" in known.explain()
    facts = [dict(one.facts) for one in statements(least_core(**rows), [])]
    name = "Least core payment, 95 % for these rows"
    assert all(one[name] != "exact" for one in facts)


def test_more_trainings_are_called_of_no_use_only_if_they_are_for_every_owner():
    # For want of trainings one owner's value is uncertain: 30 % of its deviation, or 1 %.
    for part, told in ((1e-3, False), (1e-6, True)):
        prediction = np.diag([0.0] * 5 + [part])
        v = valuation(validation=1e-2 * np.eye(6), prediction=prediction, validation_rows=200)
        assert v.uncertainty.shares()["rows"] >= DOMINANT
        assert trainings_help(v) != told
        assert has(v.notes, Code.MORE_ROWS) == told
        assert ("More trainings can hardly narrow" in v.explain()) == told


def small_beside_large(rough, seed, owners):
    """Four owners of one each and one of a tenth, which coalitions of middle size do not follow.

    The validation rows leave each value in doubt by far more than the small one.
    """
    rng = np.random.default_rng(seed)
    odd, rows = rough * rng.normal(size=32), 1.5 * rng.normal(size=(100, 5))

    def utility(members):
        row = np.isin(owners.names, members)
        jumps = odd[int(row @ (1 << np.arange(5)))] if 2 <= row.sum() <= 3 else 0.0
        own = float(row @ [1, 1, 1, 1, 0.1] + jumps)
        return dupre.Score(own, own + rows @ row)

    utility.fingerprint = "small beside large"
    return utility


@pytest.mark.slow
def test_more_trainings_are_of_use_while_they_may_move_a_payment_by_a_quarter():
    owners = make_owners(5)
    moves, told = [], []
    for seed in range(8):
        found = [
            dupre.value(owners, small_beside_large(0.15, seed, owners), budget=k, **QUIETLY)
            for k in (20, 30)
        ]
        v = found[0]
        # By the intervals alone nothing is left to gain.
        untrained = v.uncertainty.untrained.of_each().std
        assert v.uncertainty.shares()["rows"] >= DOMINANT
        assert (untrained < 0.1 * v.uncertainty.std()).all()
        before, after = (one.payments(1e5, anyway=True).frame["payment"] for one in found)
        moves.append(abs(after[owners.names[4]] / before[owners.names[4]] - 1) >= 0.25)
        told.append(has(v.notes, Code.MORE_ROWS))
        assert ("or more trainings" in what_next(v)) != told[-1]
    assert any(moves)
    assert not any(told)
    calm = dupre.value(owners, small_beside_large(0.001, 0, owners), budget=20, **QUIETLY)
    assert has(calm.notes, Code.MORE_ROWS)
    assert what_next(calm).startswith("more validation rows")
    assert "more trainings" not in what_next(calm)
