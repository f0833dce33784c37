"""How a utility is called, sent to other processes and asked for seeds.

Worker processes import this module, so it imports next to nothing. Everything else that a utility
may say of itself is asked by `describe`.
"""

from __future__ import annotations

from typing import Any, Protocol

from dupre._types import Names


class Utility(Protocol):
    """What `dupre.value` calls: from the owner names of a coalition to one finite number.

    It may be a `Score`, which knows how much it depends on the validation rows. A utility with an
    attribute `bounds`, (low, high), has predictions between them, and one with a `floor` has no
    lower utility.
    """

    def __call__(self, members: tuple[str, ...], /) -> float:
        """The utility of the coalition of these owners; of no data for ()."""
        ...


def takes_seed(utility: object) -> bool:
    """Whether a utility has a `training_seed`: it is then called with `repeat=`."""
    return hasattr(utility, "training_seed")


def training_seed(utility: Any, members: Names, repeat: int) -> int | None:
    """The seed of one training; None if it has none."""
    return int(utility.training_seed(members, repeat)) if takes_seed(utility) else None


def train(utility: Any, members: Names, repeat: int) -> Any:
    """What a utility returns for a coalition."""
    return utility(members, repeat=repeat) if takes_seed(utility) else utility(members)


def train_fold(utility: Any, members: Names, repeat: int, fold: int) -> Any:
    """What the training for one fold gives, as numbers; `Traits.pool` makes a score of all."""
    return utility.train_fold(members, repeat=repeat, fold=fold)


def to_send(utility: Any) -> Any:
    """What other processes need of a utility; some are smaller without what only we need."""
    return utility.to_send() if hasattr(utility, "to_send") else utility
