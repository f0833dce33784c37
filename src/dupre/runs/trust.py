"""Whether the settings of a run directory were made here: they name code.

`config.toml` says which tables to read, which model, metric and kernel to import, and which cluster
to connect to. When a command writes it, a digest of these settings is kept in the user's state
directory. A directory with other settings comes from elsewhere, or was changed: it needs --trust.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from dupre.data.digests import hash_json
from dupre.errors import InputError
from dupre.runs.config import HELD_BY, Config
from dupre.tables.user_code import is_dotted
from dupre.wording import join_list, quote


def check_made_here(config: Config, directory: str) -> None:
    """Raise InputError if no command of this user has written or trusted these settings."""
    if _digest(config) in _known():
        return
    code = [name for name in (config.utility.model, config.utility.metric) if is_dotted(name)]
    code += _own_kernel(config)
    doing = [f"read {quote(config.data.path)}"]
    doing += [f"import {' and '.join(map(quote, code))}"] if code else []
    doing += [f"connect to {quote(config.machine.dask)}"] if config.machine.dask else []
    raise InputError(
        f"{directory!r} was not made here: its config.toml would make this command "
        f"{join_list(doing)}. If you trust who made it, add --trust; this is asked once"
    )


def remember(config: Config) -> bool:
    """Keep in mind that these settings were made or trusted here; False if that is not possible."""
    mark = _digest(config)
    with suppress(OSError, RuntimeError):  # no home, or none that can be written to
        if mark not in _known():
            _file().parent.mkdir(parents=True, exist_ok=True)
            with _file().open("a", encoding="ascii") as file:
                file.write(f"{mark}\n")
        return True
    return False


def _digest(config: Config) -> str:
    utility = asdict(config.utility)
    for name in HELD_BY:  # they name no code, and earlier digests are without them
        del utility[name]
    parts = [asdict(config.data), utility, config.machine.dask, *_own_kernel(config)]
    return hash_json(parts).hex()


def _own_kernel(config: Config) -> list[str]:
    """The kernel, if it is code."""
    return list(filter(is_dotted, [config.values.kernel or ""]))


def _known() -> set[str]:
    with suppress(OSError, RuntimeError, ValueError):
        return set(_file().read_text(encoding="ascii").split())
    return set()


def _file() -> Path:
    """One line for each setting; RuntimeError if the user has no home."""
    stated = Path(os.environ.get("XDG_STATE_HOME", ""))
    state = stated if stated.is_absolute() else Path.home() / ".local" / "state"
    return state / "dupre" / "made-here"
