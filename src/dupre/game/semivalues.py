"""Semivalues, each as one function: the logarithm of its weights.

A semivalue of owner i is (DUPRE Eq. 2)

    sum over C not holding i of  omega_|C| [u(C + i) - u(C)],   sum_c omega_c C(n - 1, c) = 1

so it is fixed by log omega_c for c = 0 .. n - 1. Logarithms keep the weights finite for any n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from dupre._types import Floats, Ints
from dupre.errors import InputError
from dupre.wording import did_you_mean


@dataclass(frozen=True)
class Semivalue:
    """A semivalue by name and weight.

    Args:
        name: shown in tables.
        log_weight: callable(c, n) -> log omega_c for an array c of coalition sizes 0 .. n - 1;
            -inf where the weight is zero.
    """

    name: str
    log_weight: Callable[[Floats, int], Floats]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not callable(self.log_weight):
            raise InputError(
                "a Semivalue needs a name and a callable(c, n) -> log omega_c, got "
                f"{self.name!r} and {self.log_weight!r}"
            )

    def log_weights(self, n: int) -> Floats:
        """Log omega_c for c = 0 .. n - 1, (n,), checked to be those of a semivalue."""
        sizes = np.arange(n, dtype=np.float64)
        logs = np.asarray(self.log_weight(sizes, n), dtype=np.float64)
        if logs.shape != (n,) or np.isnan(logs).any() or (logs == np.inf).any():
            raise InputError(
                f"log_weight of {self.name!r} must return {n} numbers or -inf, got {logs!r}"
            )
        total = float(np.exp(logsumexp(logs + log_binomial(n - 1, sizes))))
        if not np.isclose(total, 1.0, rtol=1e-6):
            raise InputError(
                f"the weights of {self.name!r} for {n} owners sum to {total:.6g} over all "
                "coalitions without one owner; a semivalue needs sum_c omega_c C(n-1, c) = 1"
            )
        return logs

    def chances(self, n: int) -> Floats:
        """p_c = omega_c C(n - 1, c): how likely an owner joins c others, (n,); they sum to 1."""
        sizes = np.arange(n, dtype=np.float64)
        return np.asarray(np.exp(self.log_weights(n) + log_binomial(n - 1, sizes)))

    def __repr__(self) -> str:
        return f"<semivalue {self.name}>"


def log_binomial(n: int, k: Floats) -> Floats:
    """Log C(n, k)."""
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _shapley(c: Floats, n: int) -> Floats:
    return np.asarray(-log_binomial(n - 1, c) - np.log(n))


def _banzhaf(c: Floats, n: int) -> Floats:
    return np.full_like(c, -(n - 1) * np.log(2))


def _leave_one_out(c: Floats, n: int) -> Floats:
    return np.where(c == n - 1, 0.0, -np.inf)


def _beta(c: Floats, n: int, *, alpha: float, beta: float) -> Floats:
    return np.asarray(betaln(c + beta, n - 1 - c + alpha) - betaln(alpha, beta))


shapley = Semivalue("Shapley", _shapley)
"""Every coalition size counts alike (Shapley 1953); the values add up to u(all) - u(empty)."""

banzhaf = Semivalue("Banzhaf", _banzhaf)
"""Every coalition counts alike (Banzhaf 1965); the most robust to noise (Wang & Jia 2023)."""

leave_one_out = Semivalue("leave-one-out", _leave_one_out)
"""u(all) - u(all but i)."""


def beta_shapley(alpha: float, beta: float) -> Semivalue:
    """Beta-Shapley (Kwon & Zou 2022): alpha > beta favours small coalitions, (1, 1) is Shapley."""
    if not all(isinstance(number, Real) and 0 < number < np.inf for number in (alpha, beta)):
        raise InputError(f"Beta-Shapley needs numbers above 0, got {alpha!r} and {beta!r}")
    return Semivalue(
        f"Beta({alpha:g}, {beta:g})-Shapley", partial(_beta, alpha=float(alpha), beta=float(beta))
    )


_BY_NAME = {"shapley": shapley, "banzhaf": banzhaf, "loo": leave_one_out}


def parse_semivalue(text: str) -> Semivalue:
    """The semivalue of a name, "shapley", "banzhaf", "beta:4,1" or "loo"; InputError for others."""
    name = text.strip().lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    kind, _, numbers = name.partition(":")
    try:
        alpha, beta = map(float, numbers.split(","))
    except ValueError:
        alpha = beta = -1.0
    if kind == "beta" and alpha > 0 and beta > 0:
        return beta_shapley(alpha, beta)
    # The least core is no semivalue, but is asked for in the same place.
    near = did_you_mean(name, (*_BY_NAME, "least-core"))
    raise InputError(
        f"the semivalue {text!r} is not known{near}; expected shapley, banzhaf, beta:A,B with two "
        "numbers above 0 such as beta:4,1, loo or least-core"
    )


MOST_SIZES = 12
"""Sizes of groups that are looked at: of more owners a part, evenly spaced, the ends included."""


def group_sizes(n: int) -> Ints:
    """The numbers of others that are looked at, at most `MOST_SIZES` of 0 .. n - 1."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_SIZES)).round().astype(np.int64))


def joining(others: int) -> Semivalue:
    """The mean of u(C + i) - u(C) over all C of so many owners other than i.

    An owner may help small groups and harm large ones; its value, a mean over sizes, does not tell.
    """

    def log_weight(c: Floats, n: int) -> Floats:
        return np.where(c == others, -log_binomial(n - 1, c), -np.inf)

    return Semivalue(f"joining {others} others", log_weight)
