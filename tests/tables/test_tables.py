from dupre import tables


def test_the_public_names_are_these():
    functions = {"columns_of", "embed_for", "hold_out", "metric", "model", "preprocessor"}
    assert set(tables.__all__) == {"Columns", "Model", "read_table", "read_validation"} | functions
    assert all(getattr(tables, name).__doc__ for name in tables.__all__)
