"""Utilities from tables, utilities that remember what they were asked, and their owners."""

from __future__ import annotations

import numpy as np
import pytest

import dupre
from dupre.game.coalitions import all_coalitions, to_names


def make_owners(n=4, names=None, rows=8):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, rows, 2)) + rng.normal(size=(n, 1, 2))
    names = [f"owner{i:02d}" for i in range(n)] if names is None else names
    return dupre.Owners.from_mapping(
        {name: (x, x @ [1.0, -1.0]) for name, x in zip(names, X, strict=True)}
    )


FOUR = make_owners()


def table_of(owners, seed=0):
    """A random utility of every coalition, and 0.25 of none."""
    numbers = np.random.default_rng(seed).normal(size=2**owners.n - 1)
    rows = all_coalitions(owners.n)
    named = {to_names(r, owners.names): float(u) for r, u in zip(rows, numbers, strict=True)}
    return {(): 0.25} | named


def counted(function):
    """A utility that remembers what it was asked."""

    def utility(members):
        utility.asked.append(members)
        return function(members)

    utility.asked = []
    utility.fingerprint = "counted"
    return utility


def untouchable(members):
    pytest.fail(f"{members} was trained again")


untouchable.fingerprint = "counted"
