"""The command `dupre`: a mediator's whole job without writing Python.

`verbs` is what people type; a verb makes a `config`, a `job` prepares and runs it, and a `rundir`
keeps everything. Nothing in the library imports anything from here.
"""
