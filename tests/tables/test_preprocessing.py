import numpy as np
import pandas as pd
from sklearn.base import clone

from dupre.tables.features import Columns
from dupre.tables.preprocessing import as_levels, as_numbers, describe_steps, preprocessor

COLUMNS = Columns(("x", "flag"), ("c", "mix"), ("d",), (("notes", "99 different texts"),))
ONE = Columns((), ("c",), ())


def table(rows=12):
    return pd.DataFrame(
        {
            "x": np.linspace(-1, 1, rows),
            "flag": np.arange(rows) % 2 == 0,
            "c": [["r", "g", None][i % 3] for i in range(rows)],
            "mix": [[True, "a", 1, None, 2.5][i % 5] for i in range(rows)],
            "d": pd.date_range("2024-05-31", periods=rows),
            "notes": [f"note {i}" for i in range(rows)],
        }
    )


def test_dates_are_days_since_1970_and_levels_are_texts():
    days = pd.to_datetime(pd.Series(["1970-01-02", "1969-12-31T12:00", None]), format="ISO8601")
    found = as_numbers(pd.DataFrame({"d": days, "n": [1, 2, 3], "b": [True, False, True]}))
    assert np.array_equal(found, [[1, 1, 1], [-0.5, 2, 0], [np.nan, 3, 1]], equal_nan=True)
    never = pd.Series(np.array(["9999-12-31", "0001-01-01"], dtype="datetime64[s]"))
    assert as_numbers(pd.DataFrame({"d": never}))[:, 0].tolist() == [2932896, -719162]

    mixed = pd.DataFrame({"a": [True, "a", 1, None, np.nan], "b": pd.Categorical(list("xyxyx"))})
    assert as_levels(mixed).T.tolist() == [["True", "a", "1", None, None], list("xyxyx")]


def test_the_result_is_dense_scaled_and_complete_and_other_columns_change_nothing():
    frame = table()
    frame.loc[2, ["x", "d"]] = None
    prepare = preprocessor(COLUMNS)
    found = prepare.fit_transform(frame)
    assert isinstance(found, np.ndarray)
    assert found.shape == (12, 2 + 1 + 3 + 5)
    assert np.isfinite(found).all()
    assert np.allclose(found[:, :3].mean(axis=0), 0)
    assert np.allclose(found[:, :3].std(axis=0), 1)
    assert np.array_equal(found[:, 3:].sum(axis=1), np.full(12, 2))  # one level of each category

    assert np.array_equal(found, clone(prepare).fit_transform(frame.assign(notes="else")))
    prepare = preprocessor(ONE).fit(table())
    assert not prepare.transform(pd.DataFrame({"c": ["blue"]})).any()


def test_small_coalitions_empty_columns_and_very_many_levels_are_prepared():
    frame = table()
    for rows in ([0], [3, 4]):
        assert np.isfinite(preprocessor(COLUMNS).fit(frame.iloc[rows]).transform(frame)).all()
    empty = frame.iloc[:4].assign(x=np.nan, d=pd.NaT, c=None, mix=None)
    prepare = preprocessor(COLUMNS).fit(empty)
    assert np.isfinite(prepare.transform(frame)).all()
    assert prepare.transform(empty)[:, 0].tolist() == [0] * 4
    levels = [f"l{i}" for i in range(80) for _ in range(1 + (i < 50))]
    found = preprocessor(ONE).fit_transform(pd.DataFrame({"c": levels}))
    assert found.shape == (130, 51)
    assert np.array_equal(found.sum(axis=1), np.ones(130))
    steps = describe_steps(Columns(("x",), (), ()))
    assert steps == ("numbers (1): fill gaps with the median, scale",)
