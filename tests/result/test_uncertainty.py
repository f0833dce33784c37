from dataclasses import replace

import numpy as np
import pytest

from dupre.report.page import page
from dupre.report.statements import statements
from dupre.report.summary import answer
from dupre.result.uncertainty import HELD_OUT, UNKNOWN_ROWS, split_notes, validation_notes
from reporting import least_core, valuation

SPLIT = (
    "Which rows are held out, and so not trained on, is in no interval; another seed chooses "
    "others."
)


@pytest.mark.parametrize("part", [None, np.zeros((4, 4)), np.eye(4) / 1e6])
def test_the_choice_of_the_rows_held_out_is_said_to_be_in_no_interval(part):
    given = replace(valuation(4), validation=part, validation_rows=80)
    held = replace(given, provenance={"utility": {HELD_OUT: "25 % of each owner's rows"}})
    assert split_notes(given) == []
    assert validation_notes(held) == [*validation_notes(given), SPLIT]
    assert str(held).count(SPLIT) == 1
    assert SPLIT in page([held])
    assert "nor what the value is if other rows are held out" in page([held])
    for text in (str(given), page([given])):
        assert "held out" not in text


def test_one_row_is_counted_as_one():
    v = replace(valuation(4), validation=np.zeros((4, 4)), validation_rows=1)
    assert "No resample of the 1 validation row changes" in validation_notes(v)[0]
    assert validation_notes(replace(v, validation=None)) == [UNKNOWN_ROWS]


def test_payments_of_a_least_core_are_exact_only_if_nothing_was_predicted():
    """Predicted coalitions may not bind at any draw: the payments depend on them all the same."""
    rows = {"covariance": np.eye(4) / 1e4, "validation": np.eye(4) / 1e4, "validation_rows": 80}
    unmoved = "same for all utilities that the predictions allow"
    for parts, both in ((rows, True), ({"covariance": np.zeros((4, 4))}, False)):
        v = least_core(prediction=np.zeros((4, 4)), **parts)
        v = replace(v, subsidy=replace(v.subsidy, low=v.subsidy.amount, high=v.subsidy.amount))
        told = [str(v)] * both + [" ".join(answer(v))]
        assert all(unmoved in text and " exact" not in text for text in told)
        assert "no coalition is expected to gain more" in str(v)
        known = replace(v, diagnostics=None)
        told = [str(known), " ".join(answer(known))]
        assert all(unmoved not in text and "xact" in text for text in told)
        assert "no coalition gains more" in str(known)
    facts = [dict(one.facts) for one in statements(least_core(**rows), [])]
    assert all(one["For these validation rows alone"] != "exact" for one in facts)
