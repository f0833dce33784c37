"""The predictor of utilities: which form of Gaussian process, and when to reconsider it.

The form is the kernel's p, rho and eta and the warp of the utilities, chosen by evidence (DUPRE
Sec. 3) one at a time around the last choice: a full grid would cost more than it finds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dupre.gp import GaussianProcess, fit, relative_theta
from dupre.kernels import Features, Kernel, Linear, Membership, Scaled, Size, SlicedWasserstein
from dupre.typing import Floats
from dupre.warp import Warp, curved, straight


@dataclass(frozen=True)
class Form:
    """What is chosen rather than learned by gradient."""

    p: int = 2
    rho: float = 1.0
    eta: float = 0.5
    curved: bool = False

    def kernel(self) -> Kernel:
        """Data x size + membership + linear, each with a scale of its own.

        The data term alone (the paper's) cannot see how many rows a coalition has; a term that
        does not help is scaled away.
        """
        data = SlicedWasserstein(p=self.p, rho=self.rho, eta=self.eta)
        return Scaled(data * Size()) + Scaled(Membership()) + Scaled(Linear())

    def warp(self, utilities: Floats, spread: float) -> Warp:
        """The warp of these utilities; straight where a curved one has no scale."""
        bent = curved(utilities) if self.curved else None
        return bent or straight(utilities, spread=spread)

    def neighbours(self) -> list[Form]:
        """Forms that differ in one choice."""
        return [
            replace(self, curved=not self.curved),
            *(replace(self, eta=eta) for eta in (0.2, 0.5, 0.8) if eta != self.eta),
            replace(self, rho=0.5 if self.rho == 1.0 else 1.0),
            replace(self, p=3 - self.p),
        ]


@dataclass(frozen=True)
class Predictor:
    """A fitted form.

    Attributes:
        form: the chosen form.
        gp: fitted to all evaluations.
        chosen_at: number of evaluations when the form was last reconsidered.
    """

    form: Form
    gp: GaussianProcess
    chosen_at: int


def update(
    earlier: Predictor | None,
    inputs: Features,
    utilities: Floats,
    *,
    spread: float,
    choose_p: bool,
    rng: np.random.Generator,
) -> Predictor:
    """Fit to these evaluations, starting from an earlier predictor.

    The form is reconsidered when there are half as many evaluations again as at the last time, so
    the cost of choosing stays a constant factor of the cost of fitting.

    Args:
        earlier: the predictor of fewer evaluations, or None.
        inputs: the evaluated coalitions.
        utilities: theirs, (a,).
        spread: scale of the utilities in case those evaluated do not differ.
        choose_p: consider SW_1 too, which costs far more than SW_2: it is no matrix product.
        rng: of the starts.
    """

    def fitted(form: Form, starts: int, near: Floats | None) -> GaussianProcess:
        return fit(
            form.kernel(),
            inputs,
            utilities,
            warp=form.warp(utilities, spread),
            starts=starts,
            rng=rng,
            near=near,
        )

    if earlier is not None:
        form, chosen_at = earlier.form, earlier.chosen_at
        gp = fitted(form, 1, relative_theta(earlier.gp))
    else:
        form, chosen_at = Form(), 0
        gp = fitted(form, 4, None)
    if len(utilities) >= 1.5 * chosen_at:
        near = relative_theta(gp)
        for other in form.neighbours():
            if other.p == 1 and not choose_p:
                continue
            candidate = fitted(other, 1, near)
            if candidate.evidence > gp.evidence:
                form, gp = other, candidate
        chosen_at = len(utilities)
    return Predictor(form, gp, chosen_at)
