import ast
import pickle
from pathlib import Path

import dupre
from dupre.cli.output import COMMAND_WORDS, command_message
from dupre.errors import EngineError, EvaluationError, InputError, Interrupted, Remedy, StoreError

SOURCE = Path(dupre.__file__).parent


def remedies_named_in(path):
    return {
        Remedy[node.attr]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Remedy"
    }


def test_remedies_are_named_in_python_and_in_the_command_and_survive_pickling():
    raised = set()
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "cli":
            raised |= remedies_named_in(path)
    assert raised == set(Remedy) == set(COMMAND_WORDS)
    error = InputError("the utility is nan; state a finite ", Remedy.EMPTY)
    assert str(error) == "the utility is nan; state a finite empty="
    assert command_message(error) == "the utility is nan; state a finite --empty"
    typed = InputError("there is no file ", "empty=")  # what users typed is never a remedy
    assert command_message(typed) == str(typed) == "there is no file empty="

    error = Interrupted("stopped; ", Remedy.GO_ON)
    assert command_message(error) == "stopped; `dupre resume DIR` goes on"
    error.run = "my {run}"
    assert command_message(error) == "stopped; `dupre resume 'my {run}'` goes on"
    parts = ("no room; take ", Remedy.ANOTHER_STORE, ", or ", Remedy.CALL_AGAIN)
    for kind in (InputError, EvaluationError, EngineError, Interrupted, StoreError):
        again = pickle.loads(pickle.dumps(kind(*parts)))
        assert type(again) is kind
        assert again.parts == parts
        assert all(isinstance(again.parts[i], Remedy) for i in (1, 3))
        assert str(again) == "".join(parts)
