"""What each data owner's data is worth, with honest uncertainty, after training a few models.

Names are imported on first use, so that `import dupre` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dupre import baselines, estimators, plots
    from dupre.errors import DupreError, EvaluationError, InputError, Interrupted, StoreError
    from dupre.interchange import from_game, from_table, read_evaluations, to_game
    from dupre.model_free import DataVolume, InformationGain
    from dupre.owners import Owners
    from dupre.payments import LeastCore
    from dupre.progress import Progress
    from dupre.records import Comparison, Diagnostics, Evidence, Subsidy, Validation
    from dupre.run import value
    from dupre.semivalues import Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
    from dupre.stopping import Rule, evaluated, ranking_settled, settled, wall_time, within
    from dupre.utility import ModelUtility
    from dupre.valuer import Valuer
    from dupre.values import Valuation

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
    "to_game",
    "value",
    "wall_time",
    "within",
]

_MODULE_OF = {
    "Comparison": "records",
    "DataVolume": "model_free",
    "Diagnostics": "records",
    "DupreError": "errors",
    "EvaluationError": "errors",
    "Evidence": "records",
    "InformationGain": "model_free",
    "InputError": "errors",
    "Interrupted": "errors",
    "LeastCore": "payments",
    "ModelUtility": "utility",
    "Owners": "owners",
    "Progress": "progress",
    "Rule": "stopping",
    "Semivalue": "semivalues",
    "StoreError": "errors",
    "Subsidy": "records",
    "Validation": "records",
    "Valuation": "values",
    "Valuer": "valuer",
    "banzhaf": "semivalues",
    "beta_shapley": "semivalues",
    "evaluated": "stopping",
    "from_game": "interchange",
    "from_table": "interchange",
    "leave_one_out": "semivalues",
    "ranking_settled": "stopping",
    "read_evaluations": "interchange",
    "settled": "stopping",
    "shapley": "semivalues",
    "to_game": "interchange",
    "value": "run",
    "wall_time": "stopping",
    "within": "stopping",
}


_MODULES = {"baselines", "estimators", "plots"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dupre.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dupre' has no attribute {name!r}")
    return getattr(import_module(f"dupre.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
