"""From a file to owners, validation rows and a model.

`read` finds and joins files, `formats` and `csv_json` read one of them, `columns` says what its
columns hold, and `roles` whether owner and target can be meant. `holdout` keeps rows for
validation, `preprocessing` and `models` build what is trained, `user_code` loads a user's own.
"""
