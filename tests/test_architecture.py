from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dupre

SOURCE = Path(dupre.__file__).parent

# Who imports whom. Data flow downwards: nothing imports a module below itself.
IMPORTS = {
    "typing": set(),
    "errors": set(),
    "games": set(),
    "spelling": set(),
    "ties": {"typing"},
    "records": {"typing"},
    "writing": {"errors"},
    "checks": {"errors"},
    "coalitions": {"errors", "spelling", "typing"},
    "encoding": {"errors", "typing"},
    "rows": {"encoding", "errors", "typing"},
    "fingerprint": {"errors", "rows"},
    "contents": {"errors", "fingerprint", "rows", "typing"},
    "owners": {"contents", "encoding", "errors", "rows", "typing"},
    "model_free": {"checks", "coalitions", "encoding", "errors", "owners", "typing"},
    "utility": {"coalitions", "contents", "encoding", "errors", "owners", "rows", "typing"},
    "evaluation": {"checks"},
    "claims": {"errors"},
    "storefile": {"errors"},
    "store": {"checks", "claims", "errors", "evaluation", "storefile"},
    "posts": {"errors", "evaluation"},
    "cluster": {"errors", "evaluation", "posts"},
    "workers": {"cluster", "evaluation", "posts"},
    "sketch": {"coalitions", "owners", "typing"},
    "kernels": {"errors", "typing"},
    "warp": {"typing"},
    "gp": {"errors", "kernels", "typing", "warp"},
    "fitting": {"errors", "gp", "kernels", "typing", "warp"},
    "averaging": {"gp", "kernels", "typing"},
    "noise": {"typing"},
    "predictor": {"averaging", "fitting", "gp", "kernels", "noise", "ties", "typing", "warp"},
    "diagnostics": {"gp", "kernels", "predictor", "records", "typing"},
    "semivalues": {"errors", "typing"},
    "weights": {"errors", "semivalues", "typing"},
    "regression": {"coalitions", "semivalues", "typing", "weights"},
    "estimators": {"coalitions", "errors", "regression", "semivalues", "typing", "weights"},
    "design": {"coalitions", "gp", "semivalues", "ties", "typing"},
    "sampling": {"errors", "typing"},
    "duplicates": {"coalitions", "contents", "typing", "weights"},
    "ledger": {"checks", "coalitions", "duplicates", "errors", "noise", "typing"},
    "text": {"coalitions", "spelling"},
    "values": {"coalitions", "errors", "records", "ties", "typing"},
    "phrases": {"spelling"},
    "layout": {"typing"},
    "plots": {"errors", "layout", "phrases", "records", "typing"},
    "schema": {"errors", "records", "typing", "values"},
    "provenance": set(),
    "pool": {
        "averaging",
        "coalitions",
        "design",
        "diagnostics",
        "duplicates",
        "gp",
        "kernels",
        "ledger",
        "owners",
        "predictor",
        "records",
        "sampling",
        "semivalues",
        "sketch",
        "ties",
        "typing",
        "weights",
    },
    "evidence": {"coalitions", "diagnostics", "owners", "pool", "typing"},
    "egalitarian": {"errors", "typing"},
    "least_core": {"checks", "egalitarian", "errors", "ties", "typing"},
    "payments": {
        "checks",
        "diagnostics",
        "errors",
        "least_core",
        "pool",
        "semivalues",
        "ties",
        "typing",
    },
    "inference": {
        "coalitions",
        "design",
        "diagnostics",
        "duplicates",
        "evidence",
        "noise",
        "owners",
        "payments",
        "pool",
        "records",
        "sampling",
        "typing",
        "values",
        "weights",
    },
    "valuer": {
        "checks",
        "coalitions",
        "design",
        "duplicates",
        "errors",
        "estimators",
        "evidence",
        "inference",
        "owners",
        "payments",
        "pool",
        "records",
        "semivalues",
        "ties",
        "typing",
        "values",
        "weights",
    },
    "stopping": {"checks", "errors", "values"},
    "progress": {"errors"},
    "interchange": {
        "checks",
        "coalitions",
        "errors",
        "evaluation",
        "owners",
        "store",
        "typing",
        "utility",
    },
    "second_trainings": {"store", "typing", "valuer"},
    "loop": {
        "coalitions",
        "errors",
        "evaluation",
        "interchange",
        "progress",
        "second_trainings",
        "stopping",
        "store",
        "typing",
        "valuer",
        "values",
        "workers",
    },
    "run": {
        "checks",
        "coalitions",
        "errors",
        "estimators",
        "evaluation",
        "fingerprint",
        "inference",
        "interchange",
        "loop",
        "owners",
        "payments",
        "posts",
        "progress",
        "provenance",
        "records",
        "semivalues",
        "stopping",
        "store",
        "typing",
        "utility",
        "valuer",
        "values",
        "workers",
    },
}


def imported(module: str) -> set[str]:
    """The dupre modules a module imports when it runs; types-only imports do not count."""
    tree = ast.parse((SOURCE / f"{module}.py").read_text())
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "dupre":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dupre."):
            found.add(node.module.removeprefix("dupre."))
    return found


@pytest.mark.parametrize("module", sorted(IMPORTS))
def test_modules_import_what_the_table_says(module):
    assert imported(module) == IMPORTS[module]


def test_every_module_is_in_the_table():
    assert {path.stem for path in SOURCE.glob("*.py")} - {"__init__"} == set(IMPORTS)


PACKAGES = {
    "baselines": set(list(IMPORTS)[: list(IMPORTS).index("evaluation")]),
    "report": {"errors", "phrases", "plots", "records", "spelling", "text", "typing", "writing"},
    "tables": {"errors", "rows", "spelling", "typing"},
    "cli": {*IMPORTS, "report", "tables"},
}
"""What packages may import besides themselves; none of our modules imports one of them."""


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_what_they_may_and_nobody_imports_them(package):
    names = [f"{package}/{path.stem}" for path in (SOURCE / package).glob("*.py")]
    found = {name.partition(".")[0] for module in names for name in imported(module)}
    assert found - {package} <= PACKAGES[package]
    for module in IMPORTS:
        assert not any(name.partition(".")[0] == package for name in imported(module))


def test_no_module_imports_one_below_itself():
    order = list(IMPORTS)
    for module, others in IMPORTS.items():
        assert all(order.index(other) < order.index(module) for other in others)


def test_the_public_names_are_these():
    assert dupre.__all__ == [
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
    assert all(getattr(dupre, name).__doc__ for name in dupre.__all__)
    assert set(dupre.__all__) <= set(dir(dupre))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'shaply'"):
        dupre.shaply  # noqa: B018  # looking it up is the test


def imported_by(code: str, heavy: set[str]) -> str:
    """Which of some packages a fresh interpreter has imported after this code."""
    code = f"{code}; import sys; print(*sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_importing_dupre_imports_nothing_heavy():
    heavy = {"numpy", "pandas", "rich", "scipy", "sklearn", "sqlite3"}
    assert imported_by("import dupre", heavy) == ""


def test_packages_of_extras_are_not_imported_unless_they_are_used():
    every = "import dupre; [getattr(dupre, name) for name in dupre.__all__]"
    assert imported_by(every, {"dask", "distributed", "shapiq", "matplotlib", "typer"}) == ""
