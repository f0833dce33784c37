"""The user's estimator: what it must be, its seeds, and one training with labels that it accepts.

Every `random_state` of the estimator is set from the seed of the training, and so is that of
estimators in the grid of a search, and of a splitter which shuffles unless it is a whole number. If
the estimator uses torch, the generator of torch is seeded for the training and put back afterwards:
networks begin with random weights.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor

from dupre._types import Task
from dupre.errors import InputError, Remedy


def check_estimator(estimator: Any, task: Task) -> Any:
    """A clone of the estimator; InputError if it is none, or made for another task."""
    if isinstance(estimator, type):
        raise InputError(f"expected an estimator, got the class; write {estimator.__name__}()")
    if not is_estimator(estimator):
        raise InputError(
            f"expected a scikit-learn classifier, regressor or pipeline that ends in one, got "
            f"{type(estimator).__name__}; wrap other models (skorch for torch), or pass any "
            "callable(members) -> float to dupre.value instead of a ModelUtility"
        )
    try:
        model = clone(estimator)
    except Exception as cause:  # its code may be the user's
        raise InputError(
            f"{type(estimator).__name__} cannot be cloned ({cause}); __init__ of an estimator of "
            "your own must name each parameter, and store it unchanged under that name"
        ) from cause
    wrong = {"classification": is_regressor, "regression": is_classifier}[task]
    try:
        is_wrong = wrong(model)
    except AttributeError as cause:
        raise InputError(
            f"{type(model).__name__} does not say whether it classifies or regresses ({cause}); "
            "let it inherit ClassifierMixin or RegressorMixin, then BaseEstimator, of sklearn.base"
        ) from cause
    if is_wrong:
        raise InputError(
            f"the owners' task is {task} but {type(model).__name__} is made for the other "
            "one; change the model, or ",
            Remedy.STATE_TASK,
        )
    return model


def is_estimator(thing: Any) -> bool:
    """Whether a thing is an estimator that predicts, at the latest when it is fitted.

    A StackingClassifier with its default final estimator has no `predict` before.
    """
    if isinstance(thing, type) or not (hasattr(thing, "get_params") and hasattr(thing, "fit")):
        return False
    try:
        return hasattr(thing, "predict") or is_classifier(thing) or is_regressor(thing)
    except AttributeError:  # only estimators of scikit-learn say of which kind they are
        return False


def fit(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    *,
    again: Callable[[], Any],
    seed: int,
    classes: bool,
    groups: NDArray[Any] | None = None,
) -> Any:
    """A clone of the estimator, fitted with this seed.

    Some classifiers want the labels 0, 1, …, k - 1 (XGBoost). One that refuses the labels as they
    are gets their positions among the labels of these rows, and answers in labels.

    Args:
        estimator: not changed.
        X: rows; a model may change them.
        y: targets, (N,).
        again: gathers X for a second try: the first may have changed it in place.
        seed: of everything random.
        classes: whether the targets are labels.
        groups: of the rows, (N,), for a search that keeps groups together.
    """
    keyword = None if groups is None else _keyword_of_groups(estimator)
    known = {keyword: groups} if keyword else {}
    try:
        return _fit(estimator, X, y, seed, **known)
    except (TypeError, ValueError):
        # What other errors mean is not about labels: they fail the training as they are.
        labels, positions = np.unique(y, return_inverse=True)
        if not classes or labels.tolist() == list(range(len(labels))):
            raise
    return _InLabels(_fit(estimator, again(), positions, seed, **known), labels)


def _keyword_of_groups(estimator: Any) -> str | None:
    """By which keyword a search that splits its rows by groups gets them; None if there is none.

    The search may be the last step of pipelines.
    """
    from sklearn import model_selection as ms
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = _keyword_of_groups(last)
        return f"{name}__{inner}" if inner else None
    if isinstance(estimator, TransformedTargetRegressor):  # it passes all keywords on
        return _keyword_of_groups(estimator.regressor)
    kinds = (ms.GroupKFold, ms.StratifiedGroupKFold, ms.LeaveOneGroupOut, ms.LeavePGroupsOut)
    by_group = isinstance(getattr(estimator, "cv", None), (*kinds, ms.GroupShuffleSplit))
    return "groups" if by_group else None


def random_states(model: Any) -> list[str]:
    """The names of all parameters that are seeds."""
    params = model.get_params(deep=True)
    return sorted(p for p in params if p == "random_state" or p.endswith("__random_state"))


def random_splitters(model: Any) -> list[str]:
    """The names of all parameters that hold a splitter, or the like, which draws without a seed.

    `KFold(shuffle=True)` is no estimator: its `random_state` is no parameter of the model.
    """
    return sorted(name for name, part in model.get_params(deep=True).items() if _draws(part))


def random_grids(model: Any) -> list[str]:
    """The names of all parameters whose candidates are estimators with seeds.

    `GridSearchCV(pipeline, {"clf": [RandomForestClassifier()]})` has them in a dictionary, where
    `get_params` does not look.
    """
    params = model.get_params(deep=True)
    return sorted(p for p, grid in params.items() if any(map(_uses_chance, _candidates(grid))))


def _candidates(grid: Any) -> list[Any]:
    """Estimators and splitters in a dictionary of lists, or in a list of such dictionaries."""
    if isinstance(grid, (list, tuple)):
        return [found for part in grid if isinstance(part, dict) for found in _candidates(part)]
    values = grid.values() if isinstance(grid, dict) else ()
    lists = [value for value in values if isinstance(value, (list, tuple, np.ndarray))]
    return [part for some in lists for part in some if _is_estimator(part) or _is_splitter(part)]


def _is_estimator(part: Any) -> bool:
    return hasattr(part, "get_params") and not isinstance(part, type)


def _is_splitter(part: Any) -> bool:
    return hasattr(part, "get_n_splits") and not isinstance(part, type)


def _uses_chance(part: Any) -> bool:
    """Whether an estimator or a splitter has a seed that is to be set."""
    if not _is_estimator(part):
        return _draws(part)
    return any(find(part) for find in (random_states, random_splitters, random_grids))


def _draws(part: Any) -> bool:
    """Whether an object that is no estimator has a `random_state` that is no whole number.

    A splitter that does not shuffle has one too, and does not use it.
    """
    if isinstance(part, type) or _is_estimator(part):
        return False
    state = getattr(part, "random_state", 0)
    free = state is None or isinstance(state, (np.random.RandomState, np.random.Generator))
    return free and bool(getattr(part, "shuffle", True))


def uses_seed(estimator: Any) -> bool:
    """Whether the seed of a training may change what is learned."""
    return _uses_chance(estimator) or uses_torch(estimator)


def other_libraries(estimator: Any) -> set[str]:
    """Names of the packages besides scikit-learn that an estimator and its parts come from."""
    found = [part for part in _parts(estimator) if _is_estimator(part) or _is_splitter(part)]
    return {type(part).__module__.split(".")[0] for part in found} - {"sklearn"}


def uses_torch(estimator: Any) -> bool:
    """Whether a class of an estimator or of a part of it is of torch, or of a module that uses it.

    That torch is loaded is not enough: another program in this process may have loaded it, and the
    same estimator would then be trained otherwise.
    """
    # A model of torch has loaded it; to import it here would take seconds for all others.
    torch = sys.modules.get("torch")
    classes = [part if isinstance(part, type) else type(part) for part in _parts(estimator)]
    modules = {base.__module__ for cls in classes for base in cls.__mro__} - {"builtins"}
    return torch is not None and any(
        name.split(".")[0] in ("torch", "skorch")
        or any(thing is torch for thing in vars(sys.modules.get(name, object)).values())
        for name in modules
    )


def _parts(estimator: Any) -> list[Any]:
    """An estimator and all that it is made of, candidates of a search included."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    for candidate in [found for part in parts for found in _candidates(part)]:
        parts += _parts(candidate) if _is_estimator(candidate) else [candidate]
    return parts


def _fit(estimator: Any, X: Any, y: NDArray[Any], seed: int, **known: Any) -> Any:
    model = clone(estimator)
    rng = np.random.default_rng(seed)
    _set_seeds(model, rng)
    with _torch_seed(seed) if uses_torch(model) else nullcontext():
        fitted = model.fit(X, y, **known)
    return model if fitted is None else fitted  # some forget to return themselves


def _set_seeds(model: Any, rng: np.random.Generator) -> None:
    """Seed a model, its splitters and its candidates; splitters and grids are copied first."""
    # Names are sorted, so that the order of parameters in a version of scikit-learn does not
    # matter; 31 bits, for some libraries keep a seed in a signed integer.
    model.set_params(**{state: int(rng.integers(2**31)) for state in random_states(model)})
    for name in random_splitters(model):
        splitter = copy(model.get_params(deep=True)[name])
        splitter.random_state = int(rng.integers(2**31))
        model.set_params(**{name: splitter})
    for name in random_grids(model):
        grid = deepcopy(model.get_params(deep=True)[name])
        for candidate in filter(_uses_chance, _candidates(grid)):
            if _is_estimator(candidate):
                _set_seeds(candidate, rng)
            else:
                candidate.random_state = int(rng.integers(2**31))
        model.set_params(**{name: grid})


@contextmanager
def _torch_seed(seed: int) -> Iterator[None]:
    """Seed torch; its generators are as before afterwards."""
    torch: Any = sys.modules["torch"]
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


class _InLabels(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """A classifier fitted on positions of labels, which answers in labels."""

    def __init__(self, model: Any, labels: NDArray[Any]):
        self.model = model
        self.classes_ = labels

    def predict(self, X: Any) -> Any:
        return self.classes_[np.asarray(self.model.predict(X)).astype(np.int64)]

    def __getattr__(self, name: str) -> Any:
        if name in ("predict_proba", "decision_function"):
            return getattr(self.model, name)
        raise AttributeError(name)
