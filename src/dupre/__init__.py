"""What each data owner's data is worth, with honest uncertainty, after training a few models.

Names are imported on first use, so that `import dupre` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dupre import baselines, plots, tables
    from dupre.data.owners import Owners
    from dupre.errors import DupreError, EvaluationError, InputError, Interrupted, StoreError
    from dupre.game import estimators
    from dupre.game.semivalues import Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
    from dupre.result.records import Comparison, Diagnostics, Evidence, Subsidy, Validation
    from dupre.result.valuation import Valuation
    from dupre.training.frames import read_evaluations
    from dupre.utility.adapters import from_game, from_table, to_game
    from dupre.utility.model import ModelUtility
    from dupre.utility.model_free import DataVolume, InformationGain
    from dupre.valuation.core_payments import LeastCore
    from dupre.valuation.progress import Progress
    from dupre.valuation.stopping import (
        Rule,
        evaluated,
        ranking_settled,
        settled,
        wall_time,
        within,
    )
    from dupre.valuation.value import value
    from dupre.valuation.valuer import Valuer

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "DataVolume",
    "Diagnostics",
    "DupreError",
    "EvaluationError",
    "Evidence",
    "InformationGain",
    "InputError",
    "Interrupted",
    "LeastCore",
    "ModelUtility",
    "Owners",
    "Progress",
    "Rule",
    "Semivalue",
    "StoreError",
    "Subsidy",
    "Validation",
    "Valuation",
    "Valuer",
    "banzhaf",
    "baselines",
    "beta_shapley",
    "estimators",
    "evaluated",
    "from_game",
    "from_table",
    "leave_one_out",
    "plots",
    "ranking_settled",
    "read_evaluations",
    "settled",
    "shapley",
    "tables",
    "to_game",
    "value",
    "wall_time",
    "within",
]

_MODULE_OF = {
    "Comparison": "result.records",
    "DataVolume": "utility.model_free",
    "Diagnostics": "result.records",
    "DupreError": "errors",
    "EvaluationError": "errors",
    "Evidence": "result.records",
    "InformationGain": "utility.model_free",
    "InputError": "errors",
    "Interrupted": "errors",
    "LeastCore": "valuation.core_payments",
    "ModelUtility": "utility.model",
    "Owners": "data.owners",
    "Progress": "valuation.progress",
    "Rule": "valuation.stopping",
    "Semivalue": "game.semivalues",
    "StoreError": "errors",
    "Subsidy": "result.records",
    "Validation": "result.records",
    "Valuation": "result.valuation",
    "Valuer": "valuation.valuer",
    "banzhaf": "game.semivalues",
    "beta_shapley": "game.semivalues",
    "evaluated": "valuation.stopping",
    "from_game": "utility.adapters",
    "from_table": "utility.adapters",
    "leave_one_out": "game.semivalues",
    "ranking_settled": "valuation.stopping",
    "read_evaluations": "training.frames",
    "settled": "valuation.stopping",
    "shapley": "game.semivalues",
    "to_game": "utility.adapters",
    "value": "valuation.value",
    "wall_time": "valuation.stopping",
    "within": "valuation.stopping",
}

_MODULES = {
    "baselines": "baselines",
    "estimators": "game.estimators",
    "plots": "plots",
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
