from dupre import tables


def test_the_public_names_are_these():
    functions = {"columns_of", "embed_for", "metric", "model", "preprocessor"}
    functions |= {"read_table", "read_validation"}
    assert set(tables.__all__) == {"Columns", "Data", "Model"} | functions
    assert all(getattr(tables, name).__doc__ for name in tables.__all__)
