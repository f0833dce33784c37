import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.dummy import DummyClassifier

from dupre import ModelUtility
from dupre.data.owners import MAX_CLASSES_INFERRED, Owners
from dupre.data.sketch import Resolution, SketchCache
from dupre.errors import InputError
from dupre.game.coalitions import all_coalitions

COARSE = Resolution(directions=10, levels=20, thresholds=64)


def assert_same_rows(found, expected):
    """Rows of a coalition come in an order of their own."""
    assert found.shape == expected.shape
    assert sorted(found.tolist()) == sorted(expected.tolist())


def frame_of_three_owners():
    """Owner 'b' first, so that the order of names is not the order of rows."""
    return pd.DataFrame(
        {
            "size": [1.5, 2.0, -3.0, 0.25, 4.0, 9.0],
            "count": np.array([3, 1, 2, 7, 7, 5], dtype=np.int8),
            "open": [True, False, True, True, False, False],
            "city": ["Rome", "Oslo", "Rome", "Bern", "Oslo", "Bern"],
            "grade": pd.Categorical(list("xyxzzy"), categories=list("zyxw")),
            "firm": ["b", "a", "b", "c", "a", "b"],
            "sold": ["no", "yes", "yes", "no", "yes", "no"],
        }
    )


def vectors(owners, eta=0.5, resolution=COARSE):
    return SketchCache(owners, seed=0, resolution=resolution)(eta, 2, all_coalitions(owners.n))


def pairwise(rows):
    return np.linalg.norm(rows[:, None] - rows[None], axis=2)


# --- three ways to build the same owners


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_frames_of_other_libraries_hold_the_same_rows(library):
    module = pytest.importorskip(library)
    convert = module.Table.from_pandas if library == "pyarrow" else module.from_pandas
    ours = frame_of_three_owners()
    frame, X = convert(ours), convert(ours.drop(columns=["firm", "sold"]))
    expected = Owners.from_frame(ours, owner="firm", target="sold")
    for owners, validation in (
        (Owners.from_frame(frame, owner="firm", target="sold"), convert(ours.drop(columns="firm"))),
        (Owners.from_arrays(X, frame["sold"], frame["firm"]), (X, frame["sold"])),
        (Owners.from_mapping({"a": (X, frame["sold"]), "b": (X, frame["sold"])}), None),
    ):
        digests = owners.row_contents[: len(ours)]
        np.testing.assert_array_equal(digests, expected.row_contents)
        assert owners.columns == expected.columns
        if validation is not None:
            utility = ModelUtility(DummyClassifier(), owners, validation=validation)
            # polars keeps neither the order of levels nor those without a row.
            same = library == "pyarrow"
            pd.testing.assert_frame_equal(utility.X_val, expected.X, check_categorical=same)


def test_arrays_frame_and_mapping_of_the_same_rows_agree():
    frame = frame_of_three_owners()
    X, y, firm = frame.drop(columns=["firm", "sold"]), frame["sold"], frame["firm"]
    from_arrays = Owners.from_arrays(X, y, firm)
    from_frame = Owners.from_frame(frame, owner="firm", target="sold")
    from_frames = Owners.from_mapping(
        {name: frame[firm == name].drop(columns="firm") for name in "abc"}, target="sold"
    )
    from_pairs = Owners.from_mapping({name: (X[firm == name], y[firm == name]) for name in "abc"})
    for owners in (from_arrays, from_frame, from_frames, from_pairs):
        assert owners.names == ("a", "b", "c")
        assert owners.n == 3
        assert owners.rows.tolist() == [2, 3, 1]
        assert owners.task == "classification"
        np.testing.assert_array_equal(vectors(owners), vectors(from_arrays))
        for coalition in all_coalitions(3):
            of_owners = [pd.DataFrame(X).reset_index(drop=True) for X in owners.data_of(coalition)]
            expected = pd.concat([X, y], axis=1)[coalition[np.searchsorted(list("abc"), firm)]]
            found = pd.concat([of_owners[0], of_owners[1].set_axis(["sold"], axis=1)], axis=1)
            order = ["size", "count"]
            pd.testing.assert_frame_equal(
                found.sort_values(order, ignore_index=True),
                expected.sort_values(order, ignore_index=True),
                check_dtype=False,
            )


def test_numeric_arrays_and_mapping_agree_and_a_frame_remembers_its_columns():
    X, y = load_iris(return_X_y=True)
    owner = np.arange(len(y)) % 4
    parts = {i: (X[owner == i], y[owner == i]) for i in range(4)}
    lists = {i: (X[owner == i].tolist(), y[owner == i].tolist()) for i in range(4)}
    sparse_parts = {i: (sparse.csr_array(X[owner == i]), y[owner == i]) for i in range(4)}
    expected = vectors(Owners.from_arrays(X, y, owner))
    np.testing.assert_array_equal(vectors(Owners.from_mapping(parts)), expected)
    np.testing.assert_array_equal(vectors(Owners.from_mapping(lists)), expected)
    found = vectors(Owners.from_mapping(sparse_parts), eta=1.0)
    expected = vectors(Owners.from_arrays(X, y, owner), eta=1.0)
    np.testing.assert_allclose(pairwise(found), pairwise(expected), rtol=1e-4, atol=1e-6)

    owners = Owners.from_frame(frame_of_three_owners(), owner="firm", target="sold")
    assert owners.columns == ("size", "count", "open", "city", "grade")
    assert owners.target == "sold"
    assert repr(owners) == "Owners(3 owners, 6 rows, classification; a: 2, b: 3, c: 1)"


# --- names and their order


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["b", "a", "c", "a"], ("a", "b", "c")),
        ([10, 2, 33, 2], ("2", "10", "33")),
        (["10", "2", "33", "2"], ("10", "2", "33")),
        ([1.5, -0.5, 10.0, 1.5], ("-0.5", "1.5", "10.0")),
        ([True, False, False, True], ("False", "True")),
        ([2, "b", 10, "a"], ("10", "2", "a", "b")),
        ([("x", 2), ("x", 1), ("a", 9), ("a", 9)], ("('a', 9)", "('x', 1)", "('x', 2)")),
        (pd.Categorical(["lo", "hi", "lo", "mid"], ["lo", "mid", "hi"]), ("lo", "mid", "hi")),
        (pd.Categorical(["lo", "hi", "lo", "hi"], ["lo", "mid", "hi"]), ("lo", "hi")),
        (pd.Series([3, 1, 1, 2], dtype="Int64", index=[9, 9, 8, 7]), ("1", "2", "3")),
    ],
)
def test_owners_are_ordered_by_label_and_shown_as_strings(labels, names):
    X = np.arange(8.0).reshape(4, 2)
    owners = Owners.from_arrays(X, [0, 1, 0, 1], labels)
    assert owners.names == names
    for row, label in enumerate(labels):
        own = X[[str(other) == str(label) for other in labels]]
        coalition = np.array([name == str(label) for name in owners.names])
        assert_same_rows(owners.data_of(coalition)[0], own)
        assert owners.names[owners.owner[row]] == str(label)


def test_owners_of_a_mapping_are_ordered_by_label_and_can_be_hashed():
    part, more = (np.eye(2), [0, 1]), (np.ones((3, 2)), [0, 1, 1])
    owners = Owners.from_mapping({"z": part, 5: part, "a": more})
    assert owners.names == ("5", "a", "z")
    assert owners.owner.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert owners.X[:, 0].tolist() == [1, 0, 1, 1, 1, 1, 0]
    assert Owners.from_mapping({10: part, 9: part}).names == ("9", "10")
    owners, other = (Owners.from_arrays(np.eye(4), [0, 1, 0, 1], list("aabb")) for _ in range(2))
    assert len({owners, owners, other}) == 2


REFUSED_LABELS = {
    "both shown as '1'": [1, "1", 2, 2],
    "both shown as 'True'": ["True", True, "x", "x"],
    r"'\\ud800x' holds half a character": ["\ud800x", "b", "b", "b"],
    "an owner has a blank name, ''": ["", "b", "b", "b"],
    "an owner has a blank name, ' '": [" ", "b", "b", "b"],
}


@pytest.mark.parametrize(("message", "labels"), REFUSED_LABELS.items())
def test_labels_with_one_name_half_characters_and_blank_ones_are_refused(message, labels):
    with pytest.raises(InputError, match=message):
        Owners.from_arrays(np.eye(4), [0, 1, 0, 1], labels)
    with pytest.raises(InputError, match=message):
        Owners.from_mapping(dict.fromkeys(labels[:2], (np.eye(2), [0, 1])))


# --- the model's rows are the user's rows


def test_rows_of_a_frame_and_an_array_stay_as_they_were_given():
    frame = frame_of_three_owners()
    owners = Owners.from_frame(frame, owner="firm", target="sold")
    X, y = owners.data_of(np.array([True, False, True]))
    expected = frame.iloc[[1, 3, 4]]
    pd.testing.assert_frame_equal(X.sort_index(), expected.drop(columns=["firm", "sold"]))
    assert y.tolist() == frame["sold"][X.index].tolist()

    X, y, labels = mixed(["b", "a"], 3)
    owners = Owners.from_arrays(X, y, labels)
    owners.data_of(np.array([True, True]))
    np.testing.assert_array_equal(owners.X, X)
    assert [owners.names[i] for i in owners.owner] == labels.tolist()


KEPT = {
    "int8": np.arange(12, dtype=np.int8).reshape(6, 2),
    "float32": np.arange(12, dtype=np.float32).reshape(6, 2),
    "bool": np.arange(12).reshape(6, 2) % 5 == 0,
    "text": np.array([["u", "v"], ["w", "x"]] * 3),
    "mixed": np.array([["u", 1.5], ["w", 2]] * 3, dtype=object),
}


@pytest.mark.parametrize("X", KEPT.values(), ids=KEPT)
def test_rows_of_an_array_keep_dtype_and_values(X):
    owners = Owners.from_arrays(X, [0, 1] * 3, list("abcabc"))
    found, y = owners.data_of(np.array([True, False, True]))
    assert found.dtype == X.dtype
    both = [(*row, target) for row, target in zip(found.tolist(), y.tolist(), strict=True)]
    assert sorted(map(str, both)) == sorted(str((*X[i].tolist(), i % 2)) for i in (0, 3, 2, 5))


def test_sparse_rows_stay_sparse_with_values_and_dtype():
    dense = np.eye(6, 4, dtype=np.float32) * np.arange(1, 5, dtype=np.float32)
    for make in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        owners = Owners.from_arrays(make(dense), [0, 1] * 3, list("abcabc"))
        found, _ = owners.data_of(np.array([False, True, True]))
        assert sparse.issparse(found)
        assert found.dtype == np.float32
        assert_same_rows(found.toarray(), dense[[1, 4, 2, 5]])


def test_rows_of_a_list_or_series_stay_one_and_lists_of_a_mapping_are_joined():
    def lengths(texts):
        return [[len(text)] for text in texts]

    texts = ["good", "bad", "good good", "awful"]
    owners = Owners.from_arrays(texts, [1, 0, 1, 0], list("abab"), embed=lengths)
    found, y = owners.data_of(np.array([False, True]))
    assert isinstance(found, list)
    assert sorted(zip(found, y, strict=True)) == [("awful", 0), ("bad", 0)]
    parts = {"a": (["good", "bad"], [1, 0]), "b": (["fine"], [1])}
    found, y = Owners.from_mapping(parts, embed=lengths).data_of(np.array([True, True]))
    assert sorted(zip(found, y, strict=True)) == [("bad", 0), ("fine", 1), ("good", 1)]
    texts = pd.Series([f"text {i}" for i in range(6)], index=[5, 3, 1, 0, 2, 4])
    owners = Owners.from_arrays(texts, [0, 1] * 3, list("aabbcc"), embed=lengths)
    X, _ = owners.data_of(np.array([False, True, False]))
    assert sorted(X) == ["text 2", "text 3"]


def test_a_mapping_of_frames_with_different_categories_stays_categorical():
    def part(levels, values):
        return pd.DataFrame({"c": pd.Categorical(values, levels), "y": [0, 1]})

    frames = {"a": part(["u", "v"], ["u", "v"]), "b": part(["w", "v"], ["w", "v"])}
    before = {name: frame.copy() for name, frame in frames.items()}
    owners = Owners.from_mapping(frames, target="y")
    assert isinstance(owners.X["c"].dtype, pd.CategoricalDtype)
    assert sorted(owners.X["c"].cat.categories) == ["u", "v", "w"]
    assert owners.X["c"].tolist() == ["u", "v", "w", "v"]
    for name, frame in frames.items():  # the frames given are not changed
        pd.testing.assert_frame_equal(frame, before[name])
    never_filled = part(["u"], [None, None])
    owners = Owners.from_mapping({"a": frames["a"], "b": never_filled}, target="y")
    assert isinstance(owners.X["c"].dtype, pd.CategoricalDtype)


def test_misaligned_targets_or_owners_and_repeated_columns_are_refused():
    X = pd.DataFrame([[1.0, 2.0], [3.0, 5.0]], columns=["c", "c"])
    with pytest.raises(InputError, match="'c' appears twice"):
        Owners.from_arrays(pd.concat([X, X]), [0, 1] * 2, list("aabb"))
    with pytest.raises(InputError, match="'c' appears twice"):
        Owners.from_mapping({"a": (X, [0, 1]), "b": (X, [0, 1])})
    X, y = frame_of_three_owners()[["size"]], pd.Series([0, 1, 0, 1, 0, 1])
    with pytest.raises(InputError, match="X and y are matched row by row"):
        Owners.from_arrays(X, y.sample(frac=1, random_state=0), list("aabbcc"))
    with pytest.raises(InputError, match="X and owner are matched row by row"):
        Owners.from_arrays(X, y, pd.Series(list("aabbcc"), index=y.index[::-1]))
    parts = {"a": (X[:3], y[:3]), "b": (X[3:], y[3:][::-1])}
    with pytest.raises(InputError, match=r"owner 'b': X and y are .* pass y\.to_numpy\(\)"):
        Owners.from_mapping(parts)
    parts["b"] = (X[3:], y[3:][::-1].to_numpy())
    assert Owners.from_mapping(parts).y.tolist() == [0, 1, 0, 1, 0, 1]


# --- the order of a coalition's rows


def mixed(names, seed):
    """Rows of these owners, mixed, with each owner's own rows in the same order as ever."""
    rows = {name: 10 * ord(name[0]) + np.arange(3 + len(name)) for name in names}
    labels = np.repeat(names, [len(rows[name]) for name in names])
    np.random.default_rng(seed).shuffle(labels)
    taken = {name: iter(rows[name]) for name in names}
    X = np.array([[next(taken[label])] for label in labels], dtype=float)
    return X, (X[:, 0] % 2).astype(int), labels


def pooled(owners, members):
    X, y = owners.data_of(np.isin(owners.names, members))
    return X[:, 0].tolist(), y.tolist()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.sets(st.sampled_from(["b", "aa", "ccc", "dd"]), min_size=1))
def test_rows_of_a_coalition_do_not_depend_on_how_they_are_mixed_or_on_other_owners(seed, members):
    expected = pooled(Owners.from_arrays(*mixed(["aa", "b", "ccc", "dd"], 0)), list(members))
    for names in (["dd", "aa", "ccc", "b"], [*members, "x", "a", "ee"]):
        assert pooled(Owners.from_arrays(*mixed(names, seed)), list(members)) == expected
    rows = [10.0 * ord(name[0]) + i for name in members for i in range(3 + len(name))]
    assert sorted(expected[0]) == sorted(rows)


@settings(deadline=None, max_examples=25)
@given(st.permutations(range(12)), st.permutations("abcd"))
def test_rows_of_a_coalition_depend_neither_on_owner_names_nor_on_their_order(order, names):
    X, holder = np.arange(12.0)[:, None] % 7, np.repeat(np.arange(4), 3)
    y = (X[:, 0] % 2).astype(int)
    owners = Owners.from_arrays(X, y, holder)
    rows = np.array(order)
    renamed = Owners.from_arrays(X[rows], y[rows], np.array(names)[holder[rows]])
    for members in (["0"], ["1", "3"], ["0", "1", "2", "3"]):
        theirs = [names[int(name)] for name in members]
        assert pooled(renamed, theirs) == pooled(owners, members)


CLASSES = [["no", "yes"] * 30, [True, False] * 30, [0, 1, 2] * 20, [0.0, 1.0, 2.0] * 20]
CLASSES += [pd.Categorical(["no", "yes"] * 30), np.arange(60) % MAX_CLASSES_INFERRED]
CLASSES += [pd.Categorical(np.resize(levels, 60)) for levels in (np.arange(30), [0.5, 1.5])]
NUMBERS = [np.arange(60) % (MAX_CLASSES_INFERRED + 1), np.linspace(0, 1, 60), [0.5, 1.0] * 30]
NUMBERS += [pd.Series(np.linspace(0, 1, 60), dtype="Float64")]
NUMBERS += [np.linspace(0, 1, 60).reshape(-1, 1)]


DAYS = pd.date_range("2020-01-01", periods=60)
TIMES = [DAYS, pd.Series(DAYS), DAYS.to_numpy(), pd.Series(DAYS.tz_localize("UTC")), DAYS - DAYS[0]]
TIMES += [[day.date() for day in DAYS], pd.Series(pd.period_range("2020-01", periods=60))]


@pytest.mark.parametrize("y", TIMES, ids=lambda y: type(y).__name__)
def test_dates_and_times_are_no_targets_unless_they_are_stated_to_be_classes(y):
    X, owner = np.eye(60), np.arange(60) % 3
    with pytest.raises(InputError, match=r"but y holds dates or times such as .* convert them"):
        Owners.from_arrays(X, y, owner)
    frame = pd.DataFrame(X).assign(owner=owner, when=y)
    with pytest.raises(InputError, match="the column 'when' holds dates or times"):
        Owners.from_frame(frame, owner="owner", target="when")
    assert Owners.from_arrays(X, y, owner, task="classification").task == "classification"


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_task_is_inferred_from_the_targets_unless_it_is_stated(task):
    X, owner = np.eye(60), np.arange(60) % 3
    for y in CLASSES if task == "classification" else NUMBERS:
        assert Owners.from_arrays(X, y, owner).task == task, y
    mapping = dict.fromkeys("ab", (X, pd.Series(CLASSES[-1])))
    assert Owners.from_mapping(mapping).task == "classification"
    for y in (np.arange(60), np.arange(60) % 3):
        assert Owners.from_arrays(X, y, owner, task=task).task == task


def test_embed_gives_the_numeric_view_and_the_model_gets_images_and_missing_values():
    digits = load_digits()
    images, y, owner = digits.images[:60], digits.target[:60], np.arange(60) % 3
    owners = Owners.from_arrays(images, y, owner, embed=lambda X: X.reshape(len(X), -1))
    flat = Owners.from_arrays(images.reshape(60, -1), y, owner)
    np.testing.assert_array_equal(vectors(owners), vectors(flat))
    X, _ = owners.data_of(np.array([False, True, False]))
    assert X.shape == (20, 8, 8)
    assert_same_rows(X.reshape(20, -1), images[1::3].reshape(20, -1))

    X = np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, 1.0], [0.0, 0.0]])

    def fill(X):
        X[np.isnan(X)] = 0
        return X

    for changed in (X.copy(), pd.DataFrame(X)):
        owners = Owners.from_arrays(changed, [0, 1] * 2, list("aabb"), embed=fill)
        found, y = owners.data_of(np.array([True, False]))
        np.testing.assert_array_equal(np.asarray(found)[np.argsort(y)], X[:2])
        np.testing.assert_array_equal(changed, X)
    texts = [["a"], ["b", "b"]] * 2
    owners = Owners.from_arrays(
        texts, [0, 1] * 2, list("aabb"), embed=lambda X: [[len(row)] for row in X]
    )
    for row in owners.data_of(np.array([True, True]))[0]:
        row.clear()
    assert texts == [["a"], ["b", "b"]] * 2


# --- rows that cannot be used


def with_bad_value(value):
    X = np.random.default_rng(0).normal(size=(6, 3))
    X[4, 2] = value
    return X


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_a_bad_number_in_x_is_named_by_owner_and_column(value, make):
    with pytest.raises(InputError, match=r"column '2' of owner 'b'.* 1 of 3 rows"):
        Owners.from_arrays(make(with_bad_value(value)), [0, 1] * 3, list("aaabbb"))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_number_in_a_frame_is_named_by_owner_and_column(value):
    frame = frame_of_three_owners()
    frame.loc[[1, 4], "size"] = value
    parts = {name: part.drop(columns="firm") for name, part in frame.groupby("firm")}
    for make in (
        lambda: Owners.from_frame(frame, owner="firm", target="sold"),
        lambda: Owners.from_mapping(parts, target="sold"),
    ):
        with pytest.raises(InputError, match=r"column 'size' of owner 'a'.* 2 of 2 rows"):
            make()


def test_a_missing_entry_or_target_is_named_by_owner_and_column():
    for column in (
        pd.Series([1, None, 3, 4], dtype="Int64"),
        pd.Series([True, None, False, True], dtype="boolean"),
        pd.to_datetime(pd.Series(["2020-01-01", None, "2020-01-03", "2020-01-04"])),
    ):
        with pytest.raises(InputError, match=r"column 'when' of owner 'a'.* 1 of 2 rows"):
            Owners.from_arrays(pd.DataFrame({"when": column}), [0, 1, 0, 1], list("aabb"))
    texts = ["u", "v", "u", None]
    several = [[0.5, 1.5, 2.5, np.nan], [0.5, 1.5, 2.5, np.inf], texts, pd.Categorical(texts)]
    for y in (*several, pd.Series([0, 1, 0, None], dtype="Int64")):
        with pytest.raises(InputError, match=r"y of owner 'b'.* 1 of 2 rows"):
            Owners.from_arrays(np.eye(4), y, list("aabb"))


def test_masked_entries_are_refused_and_a_mask_without_any_is_not():
    X = np.ma.masked_equal([[1.0], [-999.0], [3.0], [4.0]], -999)
    y, owner, message = [0, 1, 0, 1], list("aabb"), "X has masked entries, 1 of [24], .* fill them"
    for embed in (None, np.asarray):
        with pytest.raises(InputError, match=message):
            Owners.from_arrays(X, y, owner, embed=embed)
    with pytest.raises(InputError, match=f"owner 'a': {message}"):
        Owners.from_mapping({"a": (X[:2], y[:2]), "b": (X[2:], y[2:])})
    with pytest.raises(InputError, match="y has masked entries, 2 of 4"):
        Owners.from_arrays(X.data, np.ma.masked_equal(y, 1), owner)
    unmasked = Owners.from_arrays(np.ma.masked_equal(X.data, 7), np.ma.masked_equal(y, 7), owner)
    assert unmasked.y.tolist() == y


X4, Y4, AB = np.eye(4), [0, 1, 0, 1], list("aabb")


@pytest.mark.parametrize(
    ("X", "y", "owner", "options", "message"),
    [
        (X4, Y4[:3], AB, {}, "got 4, 3 and 4"),
        (X4, Y4, AB[:3], {}, "got 4, 4 and 3"),
        (X4[:2], Y4, AB, {}, "got 2, 4 and 4"),
        (sparse.csr_array(X4[:2]), Y4, AB, {}, "got 2, 4 and 4"),
        (X4, Y4, ["a"] * 4, {}, "at least two owners, got 1: a"),
        (X4, Y4, ["a", None, "b", "b"], {}, "row 1 has no owner label"),
        (X4, Y4, [1.0, 2.0, np.nan, 1.0], {}, "row 2 has no owner label"),
        (X4, Y4, pd.Categorical(["a", "b", "a", None]), {}, "row 3 has no owner label"),
        (np.ones((4, 2, 2)), Y4, AB, {}, r"got shape \(4, 2, 2\); .*embed="),
        (np.ones(4), Y4, AB, {}, r"two dimensions.* got shape \(4,\)"),
        (["some", "text", "to", "read"], Y4, AB, {}, r"got shape \(4,\); .*embed="),
        (pd.DataFrame(index=range(4)), Y4, AB, {}, "X has no columns"),
        (X4, np.ones((4, 2)), AB, {}, r"y must be one-dimensional.* \(4, 2\)"),
        (X4, pd.DataFrame(np.ones((4, 2))), AB, {}, r"y must be one-dimensional.* \(4, 2\)"),
        (X4, None, AB, {}, "y must be one-dimensional"),
        (X4, Y4, np.column_stack([AB, AB]), {}, r"one label per row, got shape \(4, 2\)"),
        (X4[:, :0], Y4, AB, {}, "X has no columns"),
        (X4 * 1e300, Y4, AB, {}, "column '0' of owner 'a'"),
        (X4, np.array([1, "u", 1, "u"], dtype=object), AB, {}, "mixes types such as int and str"),
        (X4, Y4, AB, {"task": "ranking"}, "task must be .* got 'ranking'"),
        (X4, list("uvuv"), AB, {"task": "regression"}, "needs numbers to predict, but y holds 'u'"),
        (X4, Y4, AB, {"embed": "x"}, r"embed= must be a callable\(X\) .* got 'x'"),
        (X4, Y4, AB, {"embed": lambda X: X[:3]}, r"each of the 4 rows, got shape \(3, 4\)"),
        (X4, Y4, AB, {"embed": lambda X: X[:, 0]}, r"each of the 4 rows, got shape \(4,\)"),
        (X4, Y4, AB, {"embed": lambda X: [["u"]] * 4}, "numeric .* array: could not convert"),
        (X4, Y4, AB, {"embed": lambda X: X / [1, 1, 1, 0.5] + np.nan}, "column '0' of owner 'a'"),
    ],
)
def test_unusable_rows_are_refused_with_the_culprit(X, y, owner, options, message):
    with pytest.raises(InputError, match=message):
        Owners.from_arrays(X, y, owner, **options)


@pytest.mark.parametrize(
    ("owner", "target", "message"),
    [
        ("shop", "sold", r"the owner column 'shop' is not in the frame; its columns are 'size', "),
        ("firm", "price", "the target column 'price' is not in the frame"),
        ("firm", "firm", "owner and target are the same column 'firm'"),
    ],
)
def test_unusable_columns_of_a_frame_are_named(owner, target, message):
    frame = frame_of_three_owners()
    with pytest.raises(InputError, match=message):
        Owners.from_frame(frame, owner=owner, target=target)
    with pytest.raises(InputError, match="X has no columns"):
        Owners.from_frame(frame[["firm", "sold"]], owner="firm", target="sold")
    with pytest.raises(
        InputError, match="expected a frame of pandas, polars or pyarrow, got ndarray"
    ):
        Owners.from_frame(np.eye(3), owner=0, target=1)


PART = (np.eye(2), [0, 1])
FRAME = pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]})
OTHER, HOLED = FRAME.rename(columns={"x": "z"}), np.array([[1.0, 2.0], [np.nan, 3.0]])


def test_an_unusable_mapping_is_refused_with_the_culprit():
    for data, options, message in (
        ({}, {}, "non-empty mapping"),
        ([PART, PART], {}, "non-empty mapping"),
        ({"a": PART}, {}, "at least two owners, got 1: a"),
        ({"a": PART, "b": (np.eye(2)[:0], [])}, {}, "owner 'b' has no rows"),
        ({"a": FRAME, "b": FRAME[:0]}, {"target": "y"}, "owner 'b' has no rows"),
        ({"a": PART, "b": (np.eye(2), [0, 1, 1])}, {}, "owner 'b': X has 2 rows but y has 3"),
        ({"a": PART, "b": np.eye(2)}, {}, r"owner 'b': expected \(X, y\) .*got ndarray"),
        ({"a": PART, "b": (np.eye(2), np.eye(2))}, {}, "y must be one-dimensional"),
        ({"a": PART, "b": (np.eye(2, 3), [0, 1])}, {}, r"rows of 'a' have .* of 'b' \(3,\)"),
        ({"a": PART, "b": (sparse.eye_array(2), [0, 1])}, {}, "'a' has an array, 'b' has a sparse"),
        ({"a": PART, "b": FRAME}, {"target": "y"}, "'a' has an array, 'b' has a DataFrame"),
        ({"a": FRAME, "b": FRAME}, {}, "owner 'a' holds a DataFrame: name its target"),
        ({"a": FRAME, "b": FRAME[["x"]]}, {"target": "y"}, "'y' is not in the frame of owner 'b'"),
        ({"a": FRAME, "b": OTHER}, {"target": "y"}, "same columns: 'b' lacks 'x', which 'a' has"),
        ({"a": PART, "b": (HOLED, [0, 1])}, {}, "column '0' of owner 'b' .* 1 of 2 rows"),
        ({"a": PART, "b": (np.eye(2), [np.nan, 1.0])}, {}, "y of owner 'b' .* 1 of 2 rows"),
    ):
        with pytest.raises(InputError, match=message):
            Owners.from_mapping(data, **options)


# --- owners who join, leave and change


def frames(*names):
    return {
        name: frame.drop(columns="firm")
        for name, frame in frame_of_three_owners().groupby("firm")
        if name in names
    }


def same_owners(found, expected):
    assert found.names == expected.names
    np.testing.assert_array_equal(found.contents, expected.contents)
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.points.mean, expected.points.mean)
    np.testing.assert_array_equal(vectors(found), vectors(expected))


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_who_joins_leaves_or_changes_makes_the_owners_of_these_rows(name):
    every = frame_of_three_owners()
    before = Owners.from_frame(every, owner="firm", target="sold")
    rest = Owners.from_frame(every[every.firm != name], owner="firm", target="sold")
    rows = every[every.firm == name].drop(columns="firm")
    same_owners(before.without(name), rest)
    same_owners(rest.with_owner(name, rows), before)
    same_owners(rest.with_owner(name, rows.drop(columns="sold"), rows["sold"]), before)
    same_owners(before.with_rows(name, rows[::-1]), before)
    assert len(before.with_rows(name, rows.head(1)).y) == len(every) - len(rows) + 1


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, list])
def test_rows_of_any_kind_can_join(kind):
    X, y, who = np.arange(12.0).reshape(6, 2), np.arange(6) + 0.5, list("aabbcc")
    embed = {"embed": np.asarray} if kind is list else {}
    every = Owners.from_arrays(kind(X), y, who, **embed)
    some = Owners.from_arrays(kind(X[2:]), y[2:], who[2:], **embed)
    same_owners(some.with_owner("a", kind(X[:2]), y[:2]), every)


def test_the_task_stays_and_types_do_where_no_value_changes():
    owners = Owners.from_arrays(np.arange(8).reshape(4, 2), [0, 1, 0, 1], [2, 2, 10, 10])
    more = owners.with_owner(3, [[1.0, 2.0]], [1.0])
    assert (more.names, more.task) == (("2", "3", "10"), "classification")
    assert (more.X.dtype, more.y.dtype) == (owners.X.dtype, owners.y.dtype)
    other = owners.with_owner(3, [[1.5, 2.0]], [1.0])
    assert other.X.dtype == float


def test_newcomers_are_embedded_like_the_others_and_workers_need_no_embedding():
    def flat(X):
        return X.reshape(len(X), -1)

    images, y, who = (
        np.random.default_rng(0).normal(size=(6, 2, 2)),
        np.arange(6) + 0.5,
        list("aabbcc"),
    )
    every = Owners.from_arrays(images, y, who, embed=flat)
    some = Owners.from_arrays(images[:4], y[:4], who[:4], embed=flat)
    same_owners(some.with_owner("c", images[4:], y[4:]), every)
    assert some.embedded
    assert some.without_points().embed is None


def test_changes_of_owners_that_cannot_be_are_refused_by_name():
    frame = frame_of_three_owners()
    owners = Owners.from_frame(frame, owner="firm", target="sold")
    rows = frames("a")["a"]
    for change, message in (
        (lambda: owners.with_owner("a", rows), "'a' already; with_rows"),
        (lambda: owners.without("A"), r"no owner 'A' \(did you mean 'a'\?\)"),
        (lambda: owners.with_rows("A", rows), r"no owner 'A' \(did you mean 'a'\?\)"),
        (lambda: owners.without("a", "b"), "at least two owners, got 1: c"),
        (lambda: owners.with_owner("d", rows.drop(columns="city")), "'d' lacks 'city'"),
        (lambda: owners.with_owner("d", rows.assign(town=1)), "'a' lacks 'town'"),
        (lambda: owners.with_owner("d", rows.drop(columns="sold")), "target column 'sold'"),
        (lambda: owners.with_owner("d", rows.head(0)), "'d' has no rows"),
        (lambda: owners.with_owner("d", rows.assign(size=np.nan)), "'size' of owner 'd' holds NaN"),
        (lambda: owners.with_owner(" ", rows), "blank name"),
    ):
        with pytest.raises(InputError, match=message):
            change()
    numbers = Owners.from_arrays(np.eye(4), np.array([0.5, 1, 2, 3]), list("aabb"))
    with pytest.raises(InputError, match="holds 'many'"):
        numbers.with_owner("c", np.eye(4), ["many"] * 4)
