from __future__ import annotations

import pytest

from dupre.predictor import form


@pytest.fixture(scope="module", autouse=True)
def one_form():
    """One form of the predictor: the search among several takes time and is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(form, "CHOICES", {})
        yield


ALL_FORMS = form.CHOICES


@pytest.fixture
def all_forms(monkeypatch):
    """The predictor as it is, for tests of it in a whole run."""
    monkeypatch.setattr(form, "CHOICES", ALL_FORMS)
