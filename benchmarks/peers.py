"""dupre against the methods of other packages, at equal budget, on the games of dupre.benchmark.

    python benchmarks/peers.py [GAME ...] [--seeds 10] [--jobs -1]

Shapley and Banzhaf values where a method defines them, with n + 1, 2n + 1, 4n, 8n and 16n different
coalitions. Every difference is paired by game, budget and seed: see `dupre.benchmark.compare`.

From shapiq 1.8 (Python 3.12 or newer): LeverageSHAP, PolySHAP (of order 2), OddSHAP,
RegressionMSR with trees and linear, ProxySHAP, ShaplEIG (slow: up to 10 owners and 4n, one seed).
From any shapiq: KernelSHAP, SVARM and kADD-SHAP with pairs, permutation sampling. From
`references.py`: DU-Shapley at the level of owners, Kernel Banzhaf, Gaussian processes on a fixed
schedule (membership and linear, or rows alone) and by leverage. Maximum sample reuse is
dupre's estimator alone.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import warnings
from functools import partial
from importlib.metadata import version

import numpy as np
import shapiq

import dupre
from dupre import estimators
from dupre.benchmark import (
    NAMES,
    Comparison,
    CountedGame,
    Estimate,
    by_dupre,
    by_estimator,
    compare,
)
from dupre.benchmark.comparison import Method
from references import (
    MEMBERSHIP,
    SIZE,
    by_leverage,
    by_schedule,
    du_shapley,
    fixed,
    kernel_banzhaf,
)

BUDGETS = ("n + 1", "2n + 1", "4n", "8n", "16n")
NEWER = ("LeverageSHAP", "PolySHAP", "OddSHAP", "RegressionMSR", "ProxySHAP", "ShaplEIG")
"""Of shapiq 1.8."""


def by_shapiq(
    game: CountedGame, budget: int, seed: int, *, name: str, least: int = 0, **options: object
) -> np.ndarray | None:
    """An approximator of shapiq, which counts no data as well, and may need a least budget."""
    if budget + 1 < least:
        return None
    method = getattr(shapiq, name)(game.n, random_state=seed, **options)
    with warnings.catch_warnings():  # of budgets that are small for a method
        warnings.simplefilter("ignore")
        return method.approximate(budget + 1, game).get_n_order_values(1)


def by_shapleig(game: CountedGame, budget: int, seed: int) -> Estimate | None:
    """ShaplEIG with the variances that it states; it refits after every evaluation."""
    if game.n > 10 or budget > 4 * game.n or seed > 0:
        return None
    method = shapiq.ShaplEIG(game.n, random_state=seed, show_progress=False)
    with warnings.catch_warnings():  # gpytorch warns of the noise that ShaplEIG sets
        warnings.simplefilter("ignore")
        values, variance = method.approximate_with_variance(budget=budget + 1, game=game)
    return Estimate.normal(values.get_n_order_values(1), np.sqrt(np.maximum(variance, 0)))


PROCESSES: dict[str, Method] = {
    "GP, fixed schedule": partial(by_schedule, schedule=fixed, kernel=MEMBERSHIP),
    "GP of rows, fixed schedule": partial(by_schedule, schedule=fixed, kernel=SIZE),
    "GP, leverage": partial(by_schedule, schedule=by_leverage, kernel=MEMBERSHIP),
}


def methods_of(semivalue: dupre.Semivalue) -> dict[str, Method]:
    """The methods that define this semivalue."""
    found: dict[str, Method] = {"dupre": by_dupre, **PROCESSES}
    if semivalue is dupre.shapley:
        found |= {
            "KernelSHAP, pairs": partial(by_shapiq, name="KernelSHAP", pairing_trick=True),
            "SVARM": partial(by_shapiq, name="SVARM", pairing_trick=True),
            "kADD-SHAP": partial(by_shapiq, name="kADDSHAP", pairing_trick=True),
            "permutation": partial(by_shapiq, name="PermutationSamplingSV"),
            "DU-Shapley, owners": du_shapley,
        }
    else:
        reuse = estimators.maximum_sample_reuse
        found |= {
            "maximum sample reuse": partial(by_estimator, estimator=reuse),
            "Kernel Banzhaf": kernel_banzhaf,
        }
    return found | (_newer(semivalue) if has_newer() else {})


def has_newer() -> bool:
    """Whether shapiq has the methods of 1.8."""
    return all(hasattr(shapiq, name) for name in NEWER)


def _newer(semivalue: dupre.Semivalue) -> dict[str, Method]:
    index = "SV" if semivalue is dupre.shapley else "BV"
    msr, proxy = partial(by_shapiq, name="RegressionMSR", index=index), {"index": index}
    both: dict[str, Method] = {
        "RegressionMSR, trees": msr,
        "RegressionMSR, linear": partial(msr, proxy_model="linear"),
        "ProxySHAP": partial(by_shapiq, name="ProxySHAP", max_order=1, adjustment=True, **proxy),
    }
    if semivalue is not dupre.shapley:
        return both
    return both | {
        "LeverageSHAP": partial(by_shapiq, name="LeverageSHAP"),
        "PolySHAP": partial(by_shapiq, name="PolySHAP", max_order=2, pairing_trick=True),
        "OddSHAP": partial(by_shapiq, name="OddSHAP", least=10),
        "ShaplEIG": by_shapleig,
    }


def print_table(found: Comparison, reference: str) -> None:
    """The summary of every method, and how far it is from the reference."""
    ratios = found.differences(reference).set_index(["budget", "method"])
    print(
        f"| evaluated | method | games | MSE / variance | MSE / that of {reference} (95 %) | p | "
        "95 % coverage | surprise |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for row in found.summary().to_dict("records"):
        key = row["budget"], row["method"]
        if not row["games"]:
            continue
        ratio, p = "1", ""
        if row["method"] != reference:
            of = ratios.loc[key]
            ratio = f"{of['ratio']:.3g} ({of['low']:.2g} – {of['high']:.2g})"
            p = "< 0.001" if of["p"] < 0.001 else f"{of['p']:.3f}"
        covered, surprise = "–", "–"
        if not np.isnan(row["covered"]):
            covered = f"{100 * row['covered']:.0f} %"
            surprise = f"{row['surprise']:.3g}"
        cells = [*key, row["games"], f"{row['nmse']:.2g}", ratio, p, covered, surprise]
        print(f"| {' | '.join(map(str, cells))} |")
    sys.stdout.flush()


def describe(games: list[str], seeds: int) -> str:
    """Which games and seeds a table is about, and how to read it."""
    every = "all games" if games == list(NAMES) else ", ".join(games)
    return (
        f"{len(games)} games ({every}), {seeds} seed{'s' if seeds > 1 else ''}. Geometric means "
        "over games and seeds; intervals of ratios hold for all rows of a table together, p-values "
        "are Holm's; surprise is the mean negative log density of the true values, in standard "
        "deviations of a game's values."
    )


def main(games: list[str], seeds: int, jobs: int) -> None:
    print(f"\n## Peers (`python benchmarks/peers.py --seeds {seeds}`)\n")
    print(describe(games, seeds), end=" ")
    found = f"shapiq {version('shapiq')} on Python {platform.python_version()}"
    if has_newer():
        print(f"Methods of {found}; ShaplEIG with one seed, up to 10 owners and 4n.")
    else:
        print(f"{', '.join(NEWER)} are left out: they need shapiq 1.8; this is {found}.")
    for semivalue in (dupre.shapley, dupre.banzhaf):
        start = time.perf_counter()
        methods = methods_of(semivalue)
        table = compare(methods, games, BUDGETS, seeds, semivalue=semivalue, n_jobs=jobs)
        print(f"\n### {semivalue.name} values\n")
        print_table(table, "dupre")
        print(f"{semivalue.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("games", nargs="*", default=list(NAMES), metavar="GAME")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    main(arguments.games, arguments.seeds, arguments.jobs)
