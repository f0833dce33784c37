"""Valuations made by hand, without a training, for tests of figures and of the report."""

import json
import re
from dataclasses import fields, replace

import numpy as np
import pandas as pd

from dupre import Valuation
from dupre.notes import warnings
from dupre.predictor.calibration import Diagnostics, PredictorCheck
from dupre.result.covariances import Uncertainty
from dupre.result.records import Duplicates, Evidence, Facts, Subsidy
from dupre.result.remarks import with_notes

UNKNOWN_ROWS = (
    "How much other validation rows would change the values is not known, and in no interval."
)

HOSTILE = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "&amp; <b>bold</b>",
    "$x^2$ and $",
    "שלום עולם",
    "🦉 owl",
    "two\nlines\tand a tab",
    "x" * 200,
    'id="values-1" url(#a) #010203',
    "\u202eright to left\u2069",
    "-->]]>",
)

BROWSER = r"""#!/bin/sh
for given; do
  echo "$given" >> "$0.asked"
  case "$given" in --print-to-pdf=*) to="${given#*=}";; esac
done
(echo %PDF-1.4; cat "${to%pdf}html"; echo %%EOF) > "$to"
"""
"""Stands in for a browser that prints: its PDF is the page, and it keeps what it was asked."""

DIAGNOSTICS = Diagnostics(
    error=0.03,
    r2=0.93,
    coverage=0.96,
    scales={"data × size": 0.65, "membership": 0.23, "linear": 0.12},
    noise=0.006,
    form="SW_2",
)
CHECK = PredictorCheck(held_out=8, error=0.031, by_size=0.088, limit=0.088, coverage=0.75)
SUBSIDY = Subsidy(
    amount=0.125,
    low=0.0625,
    high=0.25,
    tight=(("owner 0",), ("owner 0", "owner 1")),
    looked=6,
    violation=0.0,
    proven=True,
)


def evidence(names, rows, *, predicted=True, trained=24, seed=0):
    """Utilities that grow with size: singletons and all but one, then some at random."""
    rng, n = np.random.default_rng(seed), len(names)
    one = np.eye(n, dtype=bool)
    members = np.concatenate([one, ~one, np.ones((1, n), bool), rng.random((trained, n)) < 0.5])
    members = members[members.any(axis=1)]
    known = len(members)
    if predicted:
        members = np.append(members, rng.random((30, n)) < 0.5, axis=0)
        members = members[members.any(axis=1)]
    truth = 0.1 + 0.8 * members.mean(axis=1)
    guess = truth + rng.normal(size=len(truth)) / 50 if predicted else np.full(len(truth), np.nan)
    frame = pd.DataFrame(
        {
            "members": [tuple(np.array(names, dtype=object)[row]) for row in members],
            "size": members.sum(axis=1),
            "rows": members @ rows,
            "utility": np.where(np.arange(len(truth)) < known, truth, np.nan),
            "predicted": guess,
            "std": np.full(len(truth), 0.02 if predicted else np.nan),
        }
    )
    points = rng.normal(size=(n, 20))
    distances = np.abs(points[:, None] - points).mean(axis=-1)
    return Evidence(frame, distances, np.eye(n))


def trainings(coalitions, failed=()):
    """As a run records them."""
    return pd.DataFrame(
        {
            "coalition": [json.dumps(members) for members in coalitions],
            "utility": [np.nan if m in failed else 0.1 + 0.01 * len(m) for m in coalitions],
            "failure": ["ValueError: no" if m in failed else "" for m in coalitions],
            "seconds": np.arange(len(coalitions)) / 8,
        }
    )


def valuation(n=6, *, names=None, seed=0, **others):
    """A valuation with everything a run records; the last owner harms, two are undecided."""
    names = tuple(names or (f"owner {i}" for i in range(n)))
    n, rng = len(names), np.random.default_rng(seed)
    rows = 40 + 10 * (np.arange(n) % 7)
    mean = np.linspace(0.2, 0.05, n)
    mean[-1] = -0.1
    std = np.full(n, 0.004)
    std[n // 2] = 0.06
    found = others.pop("evidence", evidence(names, rows, seed=seed))
    coalitions = [] if found is None else list(found.coalitions["members"][:20])
    rounds = pd.DataFrame({"evaluated": [10, 20, 30], "widest": [0.5, 0.3, 0.12]})
    ahead = pd.DataFrame(
        {"widest": [0.12, 0.1, 0.09]}, index=pd.RangeIndex(30, 33, name="evaluated")
    )
    parts = {
        "grand": 0.9,
        "empty": 0.1,
        "evaluated": min(30, 2**n - 2),
        "counting": 2**n - 1 if n < 17 else 8192,
        "diagnostics": DIAGNOSTICS,
        "stopped": "the budget of 30 evaluations is spent",
        "rounds": rounds,
        "forecast": ahead,
        "evidence": found,
        "provenance": {
            "versions": {"Python": "3.11", "dupre": "0.1.0"},
            "settings": {"seed": "0", "command": "dupre value \\\n  --budget 30"},
        },
    }
    plain = Valuation(
        owners=names,
        rows=rows,
        semivalue="Shapley",
        mean=mean + rng.normal(size=n) / 1e4,
        uncertainty=Uncertainty(np.diag(std**2), np.zeros((n, n))),
        facts=Facts(**parts),
        evaluations=trainings(coalitions),
    )
    return change(plain, **others)


def change(v, **others):
    """The valuation with other fields, facts or parts of its uncertainty, and what follows.

    `covariance` is all but the choice of coalitions; what rows do not explain is of predictions.
    """
    own, facts = ({part.name for part in fields(kind)} for kind in (Valuation, Facts))
    parts = {name: others.pop(name) for name in set(others) - own - facts}
    given = "covariance" in parts
    total = parts.pop("covariance", v.uncertainty.total)
    uncertainty = replace(v.uncertainty, **parts)
    if "prediction" not in parts and (given or uncertainty.sampling is None):
        of_rows = 0.0 if uncertainty.validation is None else uncertainty.validation
        uncertainty = replace(uncertainty, prediction=np.asarray(total) - of_rows)
    told = {name: others.pop(name) for name in set(others) & facts}
    return with_notes(replace(v, uncertainty=uncertainty, facts=replace(v.facts, **told), **others))


def exact(n=4, **others):
    """Nothing predicted, nothing uncertain."""
    names = tuple(f"owner {i}" for i in range(n))
    known = evidence(names, np.full(n, 10), predicted=False)
    fields = {
        "covariance": np.zeros((n, n)),
        "diagnostics": None,
        "evidence": known,
        "evaluated": 2**n - 1,
        "forecast": pd.DataFrame(),
    }
    return valuation(n, **fields | others)


def least_core(n=4, **others):
    return valuation(n, **{"semivalue": "Least core", "subsidy": SUBSIDY} | others)


def sampled(n=30, **others):
    """A sum over a sample: two errors."""
    part = np.full(n, 0.003) ** 2
    fields = {
        "prediction": np.diag(part),
        "sampling": np.diag(part),
    }
    return valuation(n, **fields | others)


def bare(n=3, **others):
    """As little as ask / tell leaves behind, without evidence."""
    fields = {
        "evidence": None,
        "provenance": {},
        "rounds": pd.DataFrame(),
        "forecast": pd.DataFrame(),
        "evaluations": pd.DataFrame(),
        "stopped": "",
    }
    return valuation(n, **fields | others)


def members(size):
    return tuple(f"o{i}" for i in range(size))


def small(n=3, **others):
    """Values that add up, with an interval of ± 0.196 each."""
    fields = {"mean": np.full(n, 0.8 / n), "covariance": 0.01 * np.eye(n), "rows": np.full(n, 10)}
    return bare(names=members(n), **fields | {"evaluated": 5, "counting": 7} | others)


def core(**others):
    return small(semivalue="Least core", subsidy=replace(SUBSIDY, **others))


def troubled(n=5, **others):
    """Failures, warnings, stale evaluations, a predictor of no use."""
    fields = {
        "failures": {("owner 0",): "ValueError: <b>one class</b>", ("owner 1", "owner 2"): "no"},
        "warnings": {"UserWarning: <i>slow</i>": (("owner 0",), ("owner 1",))},
        "stale": 3,
        "first_left": 2,
        "grand_predicted": True,
        "check": CHECK,
        "diagnostics": Diagnostics(
            error=0.3, r2=-0.2, coverage=0.5, scales={"odd": 1.0}, noise=0.1,
            form="SW_2", strays=2,
        ),
    }  # fmt: skip
    return valuation(n, **fields | others)


def several():
    """Two semivalues of the same trainings."""
    first = valuation(5)
    return [first, valuation(5, semivalue="Banzhaf", mean=first.mean[[1, 0, 2, 3, 4]])]


def copied():
    """Two owners of the same rows; all that counts is trained, with some noise."""
    noise, same = np.eye(4) / 1e6, Duplicates((("owner 0", "owner 1"),), 15, 11, 4)
    return exact(duplicates=same, evaluated=11, counting=11, noise=noise, covariance=noise)


VARIANTS = {
    "usual": lambda: [valuation()],
    "two owners": lambda: [valuation(2)],
    "exact": lambda: [exact()],
    "least core": lambda: [least_core()],
    "sampled": lambda: [sampled()],
    "bare": lambda: [bare()],
    "copied": lambda: [copied()],
    "troubled": lambda: [troubled()],
    "several": several,
    "hostile": lambda: [valuation(names=HOSTILE)],
    "random alone": lambda: [valuation(5, sampled=True, check=CHECK)],
}
"""Reports of every kind."""


def notes(v):
    """Lines below the table of the long form."""
    return v.explain().split("\n\n")[2].split("\n")


def warned(v):
    """Those that warn of something."""
    return [str(one) for one in warnings(v.notes)]


def codes(v, *severities):
    """The codes of the notes, of these severities if any are given."""
    return [one.code for one in v.notes if not severities or one.severity in severities]


def only_line(v, start):
    (line,) = [line for line in v.explain().split("\n") if line.startswith(start)]
    return line


def words_outside(text):
    """How many words of an answer are outside of its tables and notes."""
    parts = [part for part in text.split("\n\n") if not part.startswith("owner ")]
    lines = [line for part in parts for line in part.split("\n") if not line.startswith("- ")]
    reason = r"^Not payable: .*"  # a note
    return len(" ".join(re.sub(reason, "Not payable:", line) for line in lines).split())


def three_results():
    """Results over time: "new" joins, then "owner 0" leaves, rows of "owner 1" change.

    In the last one "owner 2" has moved by far.
    """
    marks = {f"rows of owner {i}": "r" for i in range(4)}
    first = small(4, provenance={"fingerprints": marks}, covariance=1e-4 * np.eye(4))
    first = replace(first, owners=tuple(f"owner {i}" for i in range(4)), mean=np.full(4, 0.1))
    first = first.with_facts(evaluated=20)
    finished = pd.DataFrame(
        {"finished": ["2026-01-01T10:00:00+00:00", "2026-02-01T10:00:00+00:00"]}
    )
    second = small(5, provenance={"fingerprints": marks}, covariance=1e-4 * np.eye(5))
    second = replace(
        second,
        owners=(*first.owners, "new"),
        mean=np.array([0.11, 0.1, 0.1, 0.1, -0.05]),
        evaluations=finished,
    ).with_facts(evaluated=26)
    third = replace(first, owners=(*first.owners[1:], "new"), mean=np.array([0.1, 0.5, 0.1, -0.05]))
    marks = {**marks, "rows of owner 1": "other"}
    third = third.with_facts(
        evaluated=25, failures={("new",): "no"}, provenance={"fingerprints": marks}
    )
    return [first, second, third]
