"""The scale of utilities: transformed to z, which a Gaussian process fits better, and back.

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

Some utilities can only be certain numbers at equal distances, such as accuracies on m rows. Two
things follow from such a `Lattice`. Rounding to it is noise that no kernel explains. And a utility
expected between two of its numbers is one of them or lies farther away, however sure a process is
of the number between: where utilities jump, as in a game of votes, a smooth process can be sure of
what is impossible. The bank of games shows neither; but of 95 % intervals in 48 games of votes 77 %
held the value with the lattice and 37 % without it, and 99 % against 89 % in 32 nearly flat games.

Utilities of a model that hardly changes lie on plateaus: few numbers, each seen often, of which the
next may be many steps away. Then another one is probably one of those seen, and of a mean between
two of them the same follows. `docs/numerics.md` has what this brings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dupre._types import Floats

SMALLEST_WIDTH = 1e-100
"""Smaller differences of utilities count as none: their fourth power would be zero."""

MAX_SPREAD = 1.0
"""Largest variance of arcsinh that may shift a mean; a larger one would give absurd means."""

LEAST_STEPS = 6
"""Fewest differences of distinct utilities from which a common step is concluded."""


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


def straight_warp(u: Floats, *, empty: float, centre: float | None = None) -> Warp:
    """The warp by centre and scale of utilities u, (a,), and of the utility of no data.

    If all utilities are equal, the scale is their gain over no data, or a tenth of their size. The
    centre is their mean if none is given.
    """
    centre, size = float(np.mean(u)) if centre is None else centre, float(np.abs(u).max())
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
    # 1.4826: of a normal distribution this is the standard deviation.
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


@dataclass(frozen=True)
class Lattice:
    """The numbers that utilities can be: origin + k * step for whole k, any if the step is 0.

    Attributes:
        origin: one of the numbers.
        step: their distance.
        seen: the different utilities that were evaluated, rising.
        often: which of them came more than once.
        repeated: probability that another utility is one of those seen.
    """

    origin: float = 0.0
    step: float = 0.0
    seen: tuple[float, ...] = ()
    often: tuple[bool, ...] = ()
    repeated: float = 0.0

    @property
    def is_any(self) -> bool:
        """Whether it says nothing: all numbers are equally likely."""
        return self.step == 0 and self.repeated == 0

    @property
    def noise(self) -> float:
        """Variance of rounding to the lattice."""
        return self.step**2 / 12

    def least_variance(self, mean: Floats) -> Floats:
        """Of a utility with each of these means, (m,): it is the number below or the one above.

        With the probability `repeated` it is the one seen below or the one seen above, if both came
        more than once: two accuracies can be equal by chance.
        """
        least = np.zeros_like(mean)
        if self.step > 0:
            above = np.mod((mean - self.origin) / self.step, 1.0)
            least = self.step**2 * above * (1 - above)
        if self.repeated > 0:
            seen, often = np.array(self.seen), np.array(self.often)
            inside = np.clip(mean, seen[0], seen[-1])
            above = np.clip(np.searchsorted(seen, inside), 1, len(seen) - 1)
            plateau = (inside - seen[above - 1]) * (seen[above] - inside)
            known = self.repeated * (often[above - 1] & often[above])
            least = np.maximum(least, known * plateau)
        return np.asarray(least)


NO_LATTICE = Lattice()
"""Of a continuous metric."""


def find_lattice(utilities: Floats) -> Lattice:
    """The lattice that utilities, (a,), show."""
    seen, times = np.unique(_rounded(utilities), return_counts=True)
    # Good (1953): another one is new about as often as those seen so far came once.
    repeated = float(1 - np.mean(times == 1) * len(seen) / len(utilities)) if len(seen) > 1 else 0.0
    step, often = lattice_step(utilities), tuple(bool(count > 1) for count in times)
    return Lattice(float(utilities[0]), step, tuple(map(float, seen)), often, repeated)


def _rounded(utilities: Floats) -> Floats:
    """Utilities, (a,), of which equal ones do not differ in their last digits."""
    size = float(np.abs(utilities).max(initial=0.0)) or 1.0
    return np.asarray(np.round(utilities / size, 13) * size)


def lattice_step(utilities: Floats) -> float:
    """The step of which all differences of utilities, (a,), are multiples; 0 if there is none.

    An accuracy on m rows is a multiple of 1 / m: rounding to it is noise with a variance of
    step² / 12 that no kernel can explain. Utilities of a continuous metric have no common step, and
    no two of them are equal. A few numbers could have a common step by chance, so they get none.
    """
    size = float(np.abs(utilities).max(initial=0.0))
    distinct = np.unique(np.round(utilities / (size or 1.0), 13)) * size
    differences = np.diff(distinct)
    if not differences.size or (len(distinct) == len(utilities) and len(differences) < LEAST_STEPS):
        return 0.0
    spread = float(distinct[-1] - distinct[0])
    if spread < 1e-6 * size:  # the rounding of floats would look like a lattice
        return 0.0
    step = 0.0
    for difference, reach in zip(differences, distinct[1:] - distinct[0], strict=True):
        step, rest = max(step, float(difference)), min(step, float(difference))  # Euclid's
        while rest > 1e-6 * spread:
            step, rest = rest, step % rest
            rest = 0.0 if step - rest < 1e-6 * spread else rest  # only rounding is left
        # All so far are multiples of the step: it is known best from the farthest one.
        step = float(reach) / round(float(reach) / step)
    # Finer ones cannot be told from a continuous metric, and would add next to nothing.
    return step if step > 1e-4 * spread else 0.0
