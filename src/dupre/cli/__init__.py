"""The command `dupre`: a mediator's whole job without writing Python.

`app` is the entry point; the verbs are in `train`, `ask` and `external`. Verbs read options, call
`dupre.runs`, and print.
"""
