"""Intervals of 9, 13 and 16 owners against exact values, and what a coarse resolution costs.

    python benchmarks/many_owners.py

Every coalition of these games is trained: ridge regression and naive Bayes follow from sums over
the rows of owners, nearest neighbours from one order of all rows. Owners differ in size or in
labels. Printed after 4n and 8n evaluations: how many values lie in their 95 % interval, and squared
errors relative to the variance that is stated, of values and of predictions of coalitions of few,
half and nearly all owners. Once with coalitions that were chosen, and once with others drawn by
weight. At the end the errors of 13 owners with coarse sketches relative to those with fine ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

import dupre
from dupre.game.coalitions import from_names
from dupre.game.estimators import exact
from dupre.predictor.gp import Posterior
from dupre.valuation import question, strategies

OWNERS = {9: 2, 13: 2, 16: 1}
"""Numbers of owners, and how often the rows of each table are dealt to them."""

BUDGETS = (4, 8)
"""Evaluations for each owner."""

AT_ONCE = 1_024
"""Coalitions that are trained together."""

Scores = Callable[[np.ndarray], np.ndarray]
"""The scores of coalitions, (m, n), (m,)."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to train on, with their owners, and to validate on; targets are numbers or classes."""

    X: np.ndarray
    y: np.ndarray
    owner: np.ndarray
    validation: tuple[np.ndarray, np.ndarray]
    n: int

    @property
    def classes(self) -> int:
        """How many; 0 for a regression."""
        return 0 if self.y.dtype.kind == "f" else int(self.y.max()) + 1

    def sums(self, numbers: np.ndarray) -> np.ndarray:
        """Of numbers of rows, (N, ...), by owner, (n, ...)."""
        return np.stack([numbers[self.owner == i].sum(axis=0) for i in range(self.n)])


def ridge(rows: Rows) -> Scores:
    """R², at least 0, or the accuracy of a ridge regression on indicators of classes."""
    X, V = (np.column_stack([some, np.ones(len(some))]) for some in (rows.X, rows.validation[0]))
    Y = np.eye(rows.classes)[rows.y] if rows.classes else rows.y[:, None]
    XX, XY = rows.sums(X[:, :, None] * X[:, None]), rows.sums(X[:, :, None] * Y[:, None])
    penalty = np.diag(np.append(np.ones(X.shape[1] - 1), 1e-6))
    truth = rows.validation[1]

    def score(members: np.ndarray) -> np.ndarray:
        of_all = np.tensordot(members.astype(float), XX, 1) + penalty
        predicted = V @ np.linalg.solve(of_all, np.tensordot(members.astype(float), XY, 1))
        if rows.classes:
            return np.mean(predicted.argmax(axis=2) == truth, axis=1)
        errors = np.mean((predicted[:, :, 0] - truth) ** 2, axis=1)
        return np.maximum(1 - errors / np.var(truth), 0.0)

    return score


def naive_bayes(rows: Rows) -> Scores:
    """Accuracy of Gaussian naive Bayes."""
    chosen = np.eye(rows.classes)[rows.y][:, :, None]
    numbers = np.column_stack([np.ones(len(rows.X)), rows.X, rows.X**2])
    sums, (V, truth), d = rows.sums(chosen * numbers[:, None]), rows.validation, rows.X.shape[1]

    def score(members: np.ndarray) -> np.ndarray:
        found = np.tensordot(members.astype(float), sums, 1)  # (m, classes, 1 + 2d)
        count = found[..., :1]
        mean, square = np.split(found[..., 1:] / np.maximum(count, 1), [d], axis=-1)
        sharp = 1 / (np.maximum(square - mean**2, 0.0) + 0.1)
        off = sharp @ (V**2).T - 2 * (sharp * mean) @ V.T
        off += np.sum(sharp * mean**2 - np.log(sharp), axis=-1)[..., None]
        with np.errstate(divide="ignore"):  # a class that nobody holds
            height = np.log(count) - off / 2
        return np.mean(height.argmax(axis=1) == truth, axis=1)

    return score


def neighbours(rows: Rows, k: int = 5) -> Scores:
    """Accuracy of a vote of the k nearest rows."""
    V, truth = rows.validation[0][:100], rows.validation[1][:100]
    order = np.argsort(np.sum((V[:, None] - rows.X) ** 2, axis=2), axis=1, kind="stable")

    def score(members: np.ndarray) -> np.ndarray:
        right = np.zeros(len(members))
        for nearest, label in zip(order, truth, strict=True):
            votes, left = np.zeros((len(members), rows.classes)), np.full(len(members), k)
            for row in nearest:
                if not left.any():
                    break
                counts = members[:, rows.owner[row]] & (left > 0)
                votes[:, rows.y[row]] += counts
                left -= counts
            right += votes.argmax(axis=1) == label
        return right / len(truth)

    return score


TABLES = {
    "diabetes, ridge": (load_diabetes, ridge, "size"),
    "digits, ridge": (load_digits, ridge, "label"),
    "wine, ridge": (load_wine, ridge, "label"),
    "cancer, ridge": (load_breast_cancer, ridge, "size"),
    "wine, naive Bayes": (load_wine, naive_bayes, "size"),
    "cancer, naive Bayes": (load_breast_cancer, naive_bayes, "label"),
    "wine, neighbours": (load_wine, neighbours, "size"),
    "digits, neighbours": (load_digits, neighbours, "label"),
}
"""What is trained on which table, and in what owners differ."""


@dataclass(frozen=True, eq=False)
class Played:
    """A game: owners, utilities of all coalitions in the order of the exact weights, u(empty)."""

    owners: dupre.Owners
    utilities: np.ndarray
    empty: float

    @property
    def values(self) -> np.ndarray:
        """The exact Shapley values, (n,)."""
        weights = exact(dupre.shapley, self.owners.n)
        return weights.W @ self.utilities + weights.empty * self.empty


def deal(load: Callable[..., tuple[np.ndarray, np.ndarray]], by: str, n: int, seed: int) -> Rows:
    """Rows of a table dealt to owners whose shares of all rows, or of each class, differ."""
    X, y = load(return_X_y=True)
    rng = np.random.default_rng([seed, n])
    order = rng.permutation(len(y))
    X, y = ((X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9))[order], y[order]
    held = min(200, len(y) // 3)
    train, target = X[held : held + 600], y[held : held + 600]
    group = target if by == "label" else np.zeros(len(target), dtype=int)
    while True:
        shares = [0.95 * rng.dirichlet(np.full(n, 0.8)) + 0.05 / n for _ in np.unique(group)]
        owner = np.array([rng.choice(n, p=shares[g]) for g in group])
        if np.bincount(owner, minlength=n).min() >= 2:
            return Rows(train, target, owner, (X[:held], y[:held]), n)


def play(name: str, n: int, seed: int) -> Played:
    """One game, every coalition of it."""
    load, model, by = TABLES[name]
    rows = deal(load, by, n, seed)
    owners = dupre.Owners.from_arrays(rows.X, rows.y, rows.owner)
    score, members = model(rows), exact(dupre.shapley, n).members
    column = np.array([int(name) for name in owners.names])  # names are sorted as text
    by_number = np.zeros_like(members)
    by_number[:, column] = members
    parts = np.array_split(by_number, 1 + len(members) // AT_ONCE)
    known = np.bincount(rows.y).argmax() if rows.classes else None
    empty = 0.0 if known is None else float(np.mean(rows.validation[1] == known))
    return Played(owners, np.concatenate([score(part) for part in parts]), empty)


@dataclass(frozen=True, eq=False)
class Found:
    """After some evaluations: errors of the values and what is stated, (n,) each.

    `ratio` is the mean squared error of predictions relative to their variance, by size.
    """

    error: np.ndarray
    std: np.ndarray
    ratio: dict[int, float]

    @property
    def covered(self) -> float:
        return float(np.mean(np.abs(self.error) <= 1.96 * self.std))

    @property
    def squared(self) -> float:
        return float(np.mean(self.error**2))


def follow(game: Played) -> Iterator[Found]:
    """What is known after each of the budgets."""
    names, n = game.owners.names, game.owners.n
    members = exact(dupre.shapley, n).members
    codes = members @ (1 << np.arange(n))
    place = np.empty(2**n, dtype=np.int64)
    place[codes] = np.arange(len(codes))
    valuer, sizes = dupre.Valuer(game.owners, empty=game.empty, seed=0), members.sum(axis=1)
    for times in BUDGETS:
        while valuer.evaluated < times * n:
            left = times * n - valuer.evaluated
            for asked in valuer.suggest(min(valuer.first_left or n, left)):
                code = int(from_names(asked, names) @ (1 << np.arange(n)))
                valuer.record(asked, float(game.utilities[place[code]]))
        valuation = valuer.interim_values()
        state = valuer.state
        posterior, (some, _) = state.beliefs.averaged, state.beliefs.posterior.sample
        at = state.unknown[some]
        off = (posterior.mean[some] - game.utilities[at]) ** 2 / posterior.std**2
        ratio = {int(s): float(off[sizes[at] == s].mean()) for s in np.unique(sizes[at])}
        error = valuation.mean - game.values
        yield Found(error, np.asarray(valuation.std), ratio)


def geometric(numbers: list[float]) -> float:
    return float(np.exp(np.mean(np.log(numbers))))


def by_weight(posterior: Posterior, candidates: np.ndarray, count: int, *_: object) -> np.ndarray:
    """Candidates drawn by their weight, in the place of those chosen."""
    rng = np.random.default_rng(len(posterior.gp.utilities))
    weight = np.linalg.norm(posterior.W[:, candidates], axis=0)
    return rng.choice(candidates, count, replace=False, p=weight / weight.sum())


def row_of(n: int, how: str, budget: int, found: list[Found]) -> str:
    thirds = [range(2, n // 3 + 1), range(n // 3 + 1, 2 * n // 3 + 1), range(2 * n // 3 + 1, n)]
    parts = [[r for f in found for s, r in f.ratio.items() if s in third] for third in thirds]
    sizes = " | ".join(f"{geometric(part):.2f}" for part in parts)
    ratio = geometric([f.squared / float(np.mean(f.std**2)) for f in found])
    covered = [f.covered for f in found]
    return (
        f"| {n} | {len(found)} | {how} | {budget}n | {np.mean(covered):.1%} | {min(covered):.0%} | "
        f"{ratio:.2f} | {sizes} |"
    )


def main() -> None:
    print("\n## Many owners (`python benchmarks/many_owners.py`)\n")
    print(
        "| owners | games | coalitions | evaluated | in 95 % intervals | fewest of a game | "
        "squared error / variance of values | of predictions, few owners | half | many |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    fine, coarse = [], []
    for n, deals in OWNERS.items():
        games = [play(name, n, seed) for name in TABLES for seed in range(deals)]
        chosen = [list(follow(game)) for game in games]
        with patch.object(strategies, "active_batch", by_weight):
            drawn = [list(follow(game)) for game in games]
        for how, runs in (("chosen", chosen), ("drawn", drawn)):
            for budget, found in zip(BUDGETS, zip(*runs, strict=True), strict=True):
                print(row_of(n, how, budget, list(found)), flush=True)
        if n == 13:
            with patch.object(question, "COARSELY", [n]):
                coarse = [list(follow(game)) for game in games]
            fine = chosen
    logs = np.log([[c.squared / f.squared for c, f in zip(*both, strict=True)]
                   for both in zip(coarse, fine, strict=True)])  # fmt: skip
    told = ", ".join(
        f"{np.exp(mean):.2f} (a factor of {np.exp(error):.2f} more or less) after {budget}n"
        for budget, mean, error in zip(
            BUDGETS, logs.mean(axis=0), logs.std(axis=0) / np.sqrt(len(logs)), strict=True
        )
    )
    print(f"\nMean squared error of 13 owners, coarse sketches / fine ones: {told}.")


if __name__ == "__main__":
    main()
