import numpy as np
import pytest

import dupre
from dupre.report.relations import relations
from dupre.result.records import Evidence
from reporting import change, valuation


def related(data):
    """What is said of these owners' data, names without isolation."""
    owners = dupre.Owners.from_mapping(data)
    v = valuation(owners.n, names=owners.names, rows=owners.rows)
    between = dupre.Valuer(owners, empty=0.0).question.relations
    found = change(v, evidence=Evidence(v.facts.evidence.coalitions, *between))
    return [
        (r.owners, r.text.replace("\u2068", "").replace("\u2069", "")) for r in relations(found)
    ]


def split(sizes, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    data = {}
    for i, rows in enumerate(sizes):
        X = rng.normal(size=(rows, columns))
        data[f"o{i}"] = (X, X.sum(axis=1) + rng.normal(size=rows))
    return data


EQUAL, SKEWED = [40] * 7, [8, 15, 30, 60, 120, 250, 500]


@pytest.mark.parametrize("columns", [1, 6])
@pytest.mark.parametrize("sizes", [EQUAL, SKEWED, [40, 40], [10] * 40])
def test_random_splits_are_not_spoken_of(sizes, columns):
    assert related(split(sizes, columns)) == []


@pytest.mark.parametrize("who", [0, 6])
@pytest.mark.parametrize("sizes", [EQUAL, SKEWED])
def test_a_copy_a_noisy_copy_and_an_owner_unlike_the_others_are_named(sizes, who):
    data, rng = split(sizes), np.random.default_rng(1)
    X, y = data[f"o{who}"]
    ((owners, text),) = related(data | {"twin": (X, y)})
    assert owners == (who, 7)
    assert text == f"o{who} and twin hold the same {sizes[who]} rows."

    ((owners, text),) = related(data | {"twin": (X + 0.05 * rng.normal(size=X.shape), y)})
    assert owners == (who, 7)
    assert text.startswith(f"o{who} and twin hold data of a similar kind: their distance is 0.")
    nearly = X + 0.05 * rng.normal(size=X.shape) * (np.arange(len(X)) > 0)[:, None]
    ((_, text),) = related(data | {"twin": (nearly, y)})  # one row is the same
    assert text.startswith(f"o{who} and twin hold nearly the same data: their distance is 0.")

    ((owners, text),) = related(data | {f"o{who}": (X + 4, y)})
    assert owners == (who,)
    assert text.startswith(f"The data of o{who} are unlike those of all others")


def test_rows_in_part_shared_are_told_but_not_what_all_share_by_chance():
    data = split(EQUAL)
    (X, y), (X1, y1) = data["o0"], data["o1"]
    data["o1"] = (np.append(X[:25], X1[:75], axis=0), np.append(y[:25], y1[:75]))
    ((owners, text),) = related(data)
    assert owners == (0, 1)
    assert text == (
        "62 % of the training rows of o0 are also training rows of o1; "
        "38 % of the training rows of o1 are also training rows of o0."
    )

    rng = np.random.default_rng(0)
    data = {f"o{i}": (rng.integers(0, 2, (60, 2)), rng.integers(0, 2, 60)) for i in range(5)}
    assert related(data) == []
    X, y = split([40])["o0"]
    ((_, text),) = related({"a": (X, y), "b": (X, y)})
    assert text == "a and b hold the same 40 rows."
    assert relations(valuation(4, evidence=None)) == []
