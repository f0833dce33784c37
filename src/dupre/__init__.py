"""What each data owner's data is worth, with honest uncertainty, after training a few models.

Names are imported on first use, so that `import dupre` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dupre import baselines, benchmark, metrics, notes, tables
    from dupre.data.owners import Owners
    from dupre.errors import (
        DupreError,
        EngineError,
        EvaluationError,
        InputError,
        Interrupted,
        NotPayableError,
        StoreError,
    )
    from dupre.game import estimators
    from dupre.game.precedence import Precedence, precedence
    from dupre.game.semivalues import Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
    from dupre.predictor import kernels
    from dupre.report import plots
    from dupre.result.history import history
    from dupre.result.quotes import Quote
    from dupre.result.valuation import Valuation
    from dupre.store.frames import read_evaluations
    from dupre.store.store import Stored
    from dupre.training import engines
    from dupre.utility.adapters import from_game, from_table, to_game
    from dupre.utility.folds import Folds, Holdout
    from dupre.utility.model import ModelUtility
    from dupre.utility.model_free import DataVolume, InformationGain
    from dupre.utility.score import Score
    from dupre.valuation import stopping, strategies
    from dupre.valuation.question import LeastCore
    from dupre.valuation.quote import quote
    from dupre.valuation.value import value
    from dupre.valuation.valuer import Valuer

__version__ = "0.2.0"

__all__ = [
    "DataVolume",
    "DupreError",
    "EngineError",
    "EvaluationError",
    "Folds",
    "Holdout",
    "InformationGain",
    "InputError",
    "Interrupted",
    "LeastCore",
    "ModelUtility",
    "NotPayableError",
    "Owners",
    "Precedence",
    "Quote",
    "Score",
    "Semivalue",
    "StoreError",
    "Stored",
    "Valuation",
    "Valuer",
    "banzhaf",
    "baselines",
    "benchmark",
    "beta_shapley",
    "engines",
    "estimators",
    "from_game",
    "from_table",
    "history",
    "kernels",
    "leave_one_out",
    "metrics",
    "notes",
    "plots",
    "precedence",
    "quote",
    "read_evaluations",
    "shapley",
    "stopping",
    "strategies",
    "tables",
    "to_game",
    "value",
]

_NAMES_OF = {
    "data.owners": "Owners",
    "errors": (
        "DupreError EngineError EvaluationError InputError Interrupted NotPayableError StoreError"
    ),
    "game.precedence": "Precedence precedence",
    "game.semivalues": "Semivalue banzhaf beta_shapley leave_one_out shapley",
    "result.quotes": "Quote",
    "result.history": "history",
    "result.valuation": "Valuation",
    "store.frames": "read_evaluations",
    "store.store": "Stored",
    "utility.adapters": "from_game from_table to_game",
    "utility.folds": "Folds Holdout",
    "utility.model": "ModelUtility",
    "utility.model_free": "DataVolume InformationGain",
    "utility.score": "Score",
    "valuation.question": "LeastCore",
    "valuation.quote": "quote",
    "valuation.value": "value",
    "valuation.valuer": "Valuer",
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names.split()}
_MODULES = {
    "baselines": "baselines",
    "benchmark": "benchmark",
    "engines": "training.engines",
    "estimators": "game.estimators",
    "kernels": "predictor.kernels",
    "metrics": "metrics",
    "notes": "notes",
    "plots": "report.plots",
    "stopping": "valuation.stopping",
    "strategies": "valuation.strategies",
    "tables": "tables",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dupre.{_MODULES[name]}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dupre' has no attribute {name!r}")
    return getattr(import_module(f"dupre.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
