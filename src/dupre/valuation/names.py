"""Kernels, means and strategies by the names that the command and config.toml use."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add, mul

from dupre.errors import InputError
from dupre.predictor.kernels import (
    Constant,
    Kernel,
    Linear,
    LinearInSize,
    Membership,
    Prior,
    Size,
    SlicedWasserstein,
    paper,
)
from dupre.utility.adapters import names_in
from dupre.valuation.strategies import Active, Strategy, Uniform
from dupre.wording import did_you_mean

__all__ = ["Prior", "parse_prior", "parse_strategy", "with_mean"]

PRIORS = {
    "default": Prior(),
    "paper": paper(),
    "gp-binary": Prior(1.0 * Membership(), plain=True),
}
TERMS: dict[str, Kernel] = {
    "data": SlicedWasserstein(p=None, rho=None, eta=None),
    "size": Size(),
    "membership": Membership(),
    "linear": Linear(),
}


def parse_prior(kernel: str, mean: str) -> Prior:
    """The prior of a kernel, "paper" or "data*size + membership", and a mean, "linear" or "0.5"."""
    name = kernel.strip().lower()
    prior = PRIORS[name] if name in PRIORS else Prior(_parse_sum(name))
    return with_mean(prior, mean)


def with_mean(prior: object, mean: str) -> Prior:
    """A kernel or a prior with a mean by its name; InputError if there is no such mean."""
    if not isinstance(prior, (Kernel, Prior)):
        raise InputError(f"--kernel must name a Kernel or a Prior of dupre.kernels, got {prior!r}")
    prior = Prior(prior) if isinstance(prior, Kernel) else prior
    name = mean.strip().lower()
    if name == "constant":
        return prior
    if name == "linear":
        return replace(prior, mean=LinearInSize())
    try:
        return replace(prior, mean=Constant(float(name)))
    except ValueError:
        raise InputError(
            f"--prior-mean {mean!r} is not known; expected constant (the mean of the trained "
            "utilities), linear (in the logarithm of the rows) or a number such as 0.5"
        ) from None


def parse_strategy(text: str) -> Strategy:
    """The strategy of "active", "active:Ada,Ben", "half-active:Ada" or "uniform"."""
    name, colon, owners = text.strip().partition(":")
    name = name.strip().lower()
    if name == "uniform" and not colon:
        return Uniform()
    if name not in ("active", "half-active"):
        raise InputError(
            f"--strategy {text!r} is not known; expected active, half-active (half of the budget "
            "drawn uniformly) or uniform; active:OWNER or active:OWNER,OWNER spends it on these"
        )
    listed = names_in(owners) if owners.startswith("[") else map(str.strip, owners.split(","))
    return Active(uniform=name != "active", focus=tuple(listed) if colon else None)  # type: ignore[arg-type]


def _parse_sum(text: str) -> Kernel:
    """A sum of products of terms, each with a variance of its own."""
    terms = [[name.strip() for name in term.split("*")] for term in text.split("+")]
    for name in (name for term in terms for name in term):
        if name not in TERMS:
            known = [*PRIORS, *TERMS]
            raise InputError(
                f"--kernel {text!r}: {name!r} is not known{did_you_mean(name, known)}; expected "
                f"{', '.join(PRIORS)}, a sum of products of {', '.join(TERMS)} such as "
                "data*size+membership, or module:object"
            )
    products = [1.0 * reduce(mul, [TERMS[name] for name in term]) for term in terms]
    return reduce(add, products)
