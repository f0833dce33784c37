"""Whether the settings of a run directory were made here: they name code.

`config.toml` says which tables to read, which model, metric and kernel to import, and which cluster
to connect to. When a command writes it, a digest of these settings is kept in the user's state
directory. A directory with other settings comes from elsewhere, or was changed: it needs --trust.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from msgspec.structs import asdict

from dupre.data.digests import hash_json
from dupre.errors import InputError
from dupre.spec import Spec
from dupre.tables.user_code import is_dotted
from dupre.wording import join_list, quote


def check_made_here(spec: Spec, directory: str) -> None:
    """Raise InputError if no command of this user has written or trusted these settings."""
    if _digest(spec) in _known():
        return
    code = [name for name in (spec.utility.model, spec.utility.metric) if is_dotted(name or "")]
    code += _own_kernel(spec)
    doing = [f"read {quote(spec.data.path)}"]
    doing += [f"import {' and '.join(map(quote, code))}"] if code else []
    doing += [f"connect to {quote(spec.machine.dask)}"] if spec.machine.dask else []
    raise InputError(
        f"{directory!r} was not made here: its config.toml would make this command "
        f"{join_list(doing)}. If you trust who made it, add --trust; this is asked once"
    )


def remember(spec: Spec) -> bool:
    """Keep in mind that these settings were made or trusted here; False if that is not possible."""
    mark = _digest(spec)
    with suppress(OSError, RuntimeError):  # no home, or none that can be written to
        if mark not in _known():
            _file().parent.mkdir(parents=True, exist_ok=True)
            with _file().open("a", encoding="ascii") as file:
                file.write(f"{mark}\n")
        return True
    return False


def _digest(spec: Spec) -> str:
    # What a command reads, imports and connects to; limits, seeds and words on a page do no harm.
    dask = spec.machine.dask or None
    return hash_json([asdict(spec.data), asdict(spec.utility), dask, *_own_kernel(spec)]).hex()


def _own_kernel(spec: Spec) -> list[str]:
    """The kernel, if it is code."""
    return list(filter(is_dotted, [spec.values.kernel]))


def _known() -> set[str]:
    with suppress(OSError, RuntimeError, ValueError):
        return set(_file().read_text(encoding="ascii").split())
    return set()


def _file() -> Path:
    """One line for each setting; RuntimeError if the user has no home."""
    stated = Path(os.environ.get("XDG_STATE_HOME", ""))
    state = stated if stated.is_absolute() else Path.home() / ".local" / "state"
    return state / "dupre" / "made-here"
