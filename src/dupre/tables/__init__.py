"""Tables from files: what a mediator brings, checked before anything is trained.

`reading` finds and joins the files, `tablefile` and `textfile` read one of them, `columns` tells
what its columns hold, and `roles` whether owner and target can be meant.
"""
