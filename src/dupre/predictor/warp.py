"""Warps: utilities u transformed to z, which a Gaussian process fits better, and back.

Most games are fitted well after centring and scaling. Some have a heavy tail: an R² of -10 on a few
small coalitions is real, but next to values near 0.7 it would dominate the fit. The curved warp
(Snelson et al. 2004),

    z = arcsinh((u - centre) / width), centre = median, width = 3 robust standard deviations,

is a straight line for ordinary utilities and a logarithm for far ones. The marginal likelihood of
the utilities themselves decides between straight and curved, hence `log_slope`. The way back goes
straight on beyond the utilities that were seen: an exponential would turn a prediction that lies
somewhat outside into an absurd one.

Values are linear in u, not in z. So predictions are transformed back to a mean and a slope: u is
approximated as linear in z around its prediction, which is exact for the straight warp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dupre._types import Floats

SMALLEST_WIDTH = 1e-100
"""Smaller differences of utilities count as none: their fourth power would be zero."""

MAX_SPREAD = 1.0
"""Largest variance of arcsinh that may shift a mean; a larger one would give absurd means."""


@dataclass(frozen=True)
class Warp:
    """z = (g((u - centre) / width) - shift) / scale with g = arcsinh if curved, else identity.

    `low` and `high` are the least and the greatest g that were seen.
    """

    curved: bool = False
    centre: float = 0.0
    width: float = 1.0
    shift: float = 0.0
    scale: float = 1.0
    low: float = -np.inf
    high: float = np.inf

    def forward(self, u: Floats) -> Floats:
        """Z of utilities u."""
        t = (u - self.centre) / self.width
        return ((np.arcsinh(t) if self.curved else t) - self.shift) / self.scale

    def slope(self, u: Floats) -> Floats:
        """du/dz at utilities u, (m,)."""
        t = (u - self.centre) / self.width
        bend = np.sqrt(1 + t**2) if self.curved else np.ones_like(t)
        return np.asarray(self.width * self.scale * bend)

    def log_slope(self, u: Floats) -> float:
        """Sum of log dz/du over utilities u: the Jacobian that makes likelihoods comparable."""
        bend = np.log1p(((u - self.centre) / self.width) ** 2).sum() / 2 if self.curved else 0.0
        return float(-len(u) * np.log(self.width * self.scale) - bend)

    def back(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean of u and slope du/dz, for z normal with this mean and variance, each (m,)."""
        t = self.shift + self.scale * mean
        if not self.curved:
            return self.centre + self.width * t, np.full_like(t, self.width * self.scale)
        # E sinh(t + s e) = sinh(t) exp(s² / 2) for e standard normal.
        lift = self.width * np.exp(np.minimum(self.scale**2 * variance, MAX_SPREAD) / 2)
        seen = np.clip(t, self.low, self.high)
        bend = np.cosh(seen)
        u = self.centre + lift * (np.sinh(seen) + bend * (t - seen))
        return u, lift * bend * self.scale


def straight_warp(u: Floats, *, empty: float) -> Warp:
    """The warp by centre and scale of utilities u, (a,), and of the utility of no data.

    If all utilities are equal, the scale is their gain over no data, or a tenth of their size.
    """
    centre, size = float(np.mean(u)), float(np.abs(u).max())
    if are_equal(u):
        width = float(np.abs(u - empty).max()) or 0.1 * size or 1.0
    else:
        width = float(np.std(np.append(u, empty)))
    return Warp(centre=centre, width=max(width, SMALLEST_WIDTH))


def are_equal(u: Floats) -> bool:
    """Whether utilities are the same number but for rounding: they show no scale."""
    return float(np.std(u)) <= 1e-12 * max(float(np.abs(u).max()), 1e-300)


def robust_scale(u: Floats) -> float:
    """A standard deviation that ignores tails: the scaled median distance from the median."""
    deviation = 1.4826 * float(np.median(np.abs(u - np.median(u))))
    return deviation if deviation > 1e-9 * float(np.abs(u).max()) else 0.0


def curved_warp(u: Floats) -> Warp | None:
    """The curved warp of these utilities; None if most are equal, so that they have no scale."""
    centre, width = float(np.median(u)), 3 * robust_scale(u)
    if width < SMALLEST_WIDTH:
        return None
    t = np.arcsinh((u - centre) / width)
    shift, scale = float(np.mean(t)), float(np.std(t))
    return Warp(True, centre, width, shift, scale, low=float(t.min()), high=float(t.max()))
