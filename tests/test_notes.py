import copy
import json
import pickle

import msgspec
import pytest

from dupre.notes import BEWARE, INFO, STOP, Code, Note, Severity, has, note, select, worst_first
from dupre.notes import warnings as grave
from dupre.result.remarks import DERIVED, with_notes
from reporting import VARIANTS, change, valuation

LEAK = note(Code.LEAK, "a column tells.", column="z", part=0.99)


def test_a_note_has_the_severity_of_its_code_and_survives_json_pickle_and_copies():
    assert (LEAK.severity, str(LEAK)) == (BEWARE, "Beware: a column tells.")
    assert str(note(Code.EXACT, "Exact.")) == "Exact."
    assert (
        str(note(Code.SIMILAR_NAMES, "a and A look like one.")) == "Check: a and A look like one."
    )
    assert msgspec.json.decode(msgspec.json.encode(LEAK), type=Note) == LEAK
    assert pickle.loads(pickle.dumps(LEAK)) == copy.deepcopy(LEAK) == LEAK
    assert {code.severity for code in Code} == set(Severity)
    assert all(code == code.name.lower() for code in Code)


def test_the_gravest_come_first_each_once_whatever_the_order_they_were_made_in():
    first, rest = note(Code.FIRST_GUESS, "a"), [note(Code.WARNINGS, text) for text in "cb"]
    expected = (first, LEAK, note(Code.EXACT, "d"), *rest)
    for made in (expected, (*rest, *reversed(expected[:3]), LEAK, first)):
        assert worst_first(made) == expected
    assert [one.severity for one in expected] == [STOP, BEWARE, INFO, INFO, INFO]
    assert grave(expected) == [first, LEAK]
    assert select(expected, [Code.LEAK, Code.STALE]) == [LEAK]
    assert has(expected, Code.STALE, Code.LEAK)
    assert not has(expected, Code.STALE)


@pytest.mark.parametrize("make", VARIANTS.values(), ids=VARIANTS)
def test_notes_follow_from_the_numbers_and_their_facts_are_plain_data(make):
    for v in make():
        assert {one.code for one in v.notes} <= DERIVED
        for one in v.notes:
            assert json.loads(json.dumps(one.facts, allow_nan=False)) == one.facts
        assert with_notes(v).notes == v.notes
        assert LEAK in with_notes(with_notes(v, [LEAK])).notes
    assert not has(change(valuation(first_left=2), first_left=0).notes, Code.FIRST_GUESS)
