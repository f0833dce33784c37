from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dupre
import dupre.data.owners
from dupre.data.digests import digest
from dupre.training.identity import of_owners

X = np.random.default_rng(0).normal(size=(24, 2))
LABELS = np.tile([0, 1], 12)
HOLDERS = np.repeat(list("abc"), 8)


@pytest.fixture
def counted(monkeypatch):
    """Every digest of an owner's rows."""
    made = []
    monkeypatch.setattr(
        dupre.data.owners, "digest", lambda thing: made.append(thing) or digest(thing)
    )
    return made


def test_rows_are_fingerprinted_once_however_often_a_run_is_resumed(tmp_path, counted):
    owners = dupre.Owners.from_arrays(X, LABELS, HOLDERS)
    utility = dupre.ModelUtility(LogisticRegression(), owners, validation=(X, LABELS))
    store = tmp_path / "run.sqlite"
    known = None
    for budget in (3, 5, 7):
        dupre.value(owners, utility, budget=budget, store=store, known=known, progress=False)
        known = dupre.read_evaluations(store)
    assert len(counted) == owners.n


def test_equal_owners_have_equal_fingerprints_and_nobody_can_change_them(counted):
    owners, other = (dupre.Owners.from_arrays(X, LABELS, HOLDERS) for _ in range(2))
    found = of_owners(owners)
    assert found == of_owners(other) == owners.fingerprints
    assert found["b"] == digest((X[8:16], LABELS[8:16]))
    found["b"] = "changed"
    assert of_owners(owners) == of_owners(other)
    assert len(counted) == 6
