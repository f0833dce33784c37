"""The command `dupre`: a mediator's whole job without writing Python.

`app` is what people type; its verbs are in `runs`, `questions` and `elsewhere`. A verb makes a
`config`, `prepare` makes a `job` of it, and a `rundir` keeps everything. Nothing in the library
imports anything from here.
"""
