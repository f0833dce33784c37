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
    "coalitions": {"errors", "typing"},
    "encoding": {"errors", "typing"},
    "rows": {"encoding", "errors", "typing"},
    "owners": {"encoding", "errors", "rows", "typing"},
    "utility": {"coalitions", "encoding", "errors", "owners", "rows"},
    "sketch": {"coalitions", "owners", "typing"},
    "kernels": {"errors", "typing"},
    "warp": {"typing"},
    "gp": {"errors", "kernels", "typing", "warp"},
    "predictor": {"gp", "kernels", "typing", "warp"},
    "diagnostics": {"gp", "kernels", "predictor", "typing"},
    "semivalues": {"errors", "typing"},
    "estimators": {"coalitions", "semivalues", "typing"},
    "design": {"coalitions", "gp", "semivalues", "typing"},
    "values": {"errors", "typing"},
    "valuer": {
        "coalitions",
        "design",
        "diagnostics",
        "errors",
        "estimators",
        "gp",
        "kernels",
        "owners",
        "predictor",
        "semivalues",
        "sketch",
        "typing",
        "utility",
        "values",
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


def test_no_module_imports_one_below_itself():
    order = list(IMPORTS)
    for module, others in IMPORTS.items():
        assert all(order.index(other) < order.index(module) for other in others)


def test_the_public_names_are_these():
    assert dupre.__all__ == [
        "Diagnostics",
        "DupreError",
        "EvaluationError",
        "InputError",
        "Interrupted",
        "ModelUtility",
        "Owners",
        "Semivalue",
        "Valuation",
        "Valuer",
        "banzhaf",
        "beta_shapley",
        "leave_one_out",
        "shapley",
        "value",
    ]
    assert all(getattr(dupre, name).__doc__ for name in dupre.__all__)
    assert set(dupre.__all__) <= set(dir(dupre))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'shaply'"):
        dupre.shaply  # noqa: B018  # looking it up is the test


def test_importing_dupre_imports_nothing_heavy():
    code = "import dupre, sys; print(sorted({'numpy', 'pandas', 'sklearn'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
