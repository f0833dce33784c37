"""Owners and a utility whose trainings are kept in fixtures/store-by-names.sqlite.

The store was written by the last version in which training seeds and the order of rows followed
owner names, by `python tests/older_store.py` with that version. It must stay readable.
"""

import sqlite3
from pathlib import Path

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import dupre

PATH = Path(__file__).parent / "fixtures" / "store-by-names.sqlite"
BUDGET = 12


def older_owners() -> dupre.Owners:
    """Ann, Bob, Cid and Cid's copy: whole numbers, so that they are the same on any machine."""
    X = np.array([[(7 * i * i + 3 * i) % 11, (5 * i + i // 3) % 7] for i in range(24)], dtype=float)
    y = np.array([(i * i + i // 2) % 2 for i in range(24)])
    parts = {"Ann": slice(0, 8), "Bob": slice(8, 16), "Cid": slice(16, 24)}
    data = {name: (X[rows], y[rows]) for name, rows in parts.items()}
    return dupre.Owners.from_mapping({**data, "Cid's copy": data["Cid"]})


def older_utility(owners: dupre.Owners) -> dupre.ModelUtility:
    """A tree that looks at one column at a time, drawn at random: another seed, another score."""
    X = np.array([[(3 * i) % 11, (2 * i) % 7] for i in range(40)], dtype=float)
    y = np.array([(i * i + i // 2) % 2 for i in range(40)])
    model = DecisionTreeClassifier(max_features=1, splitter="random", max_depth=3)
    return dupre.ModelUtility(model, owners, validation=(X, y), seed=3)


if __name__ == "__main__":
    PATH.unlink(missing_ok=True)
    owners = older_owners()
    dupre.value(owners, older_utility(owners), budget=BUDGET, store=PATH, progress=False)
    with sqlite3.connect(PATH) as db:
        db.execute("UPDATE evaluations SET worker = '', seconds = 0.0")
        db.execute("PRAGMA journal_mode = DELETE")
    db.execute("VACUUM")
    db.close()
