"""Reads references of gpu-mode's tasks without running any of them: `ast` only parses. kforge runs it with the interpreter of this machine.

    python -I -S -B gpu_mode_reader.py < SOURCES > FACTS

SOURCES is a JSON object with texts by name. FACTS holds an object for each of them: `functions`, the names of the arguments of each function at its top, null
where some have no name; `names`, those that `ref_kernel` gives the parts of its argument; `check`, how results are compared; `refused` for a text that is not
Python.
"""

import ast
import json
import sys

REFERENCE, CHECK = "ref_kernel", "check_implementation"
# The functions that compare by a tolerance, and what they take where it is not stated.
CLOSE, USUAL = ("make_match_reference", "match_reference", "verbose_allclose"), {"rtol": 1e-05, "atol": 1e-08}
EQUAL = "verbose_allequal"


def arguments(node):
    args = node.args
    return None if args.posonlyargs or args.vararg or args.kwarg else [one.arg for one in (*args.args, *args.kwonlyargs)]


def called(node):
    """The name of the function that a call calls."""
    return node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else None


def number(node):
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    return None


def close(call, constants):
    """The tolerance of a call; none if it is no number."""
    found = dict(USUAL)
    for keyword in call.keywords:
        if keyword.arg in found:
            value = keyword.value
            value = constants.get(value.id) if isinstance(value, ast.Name) else number(value)
            if value is None or not 0 <= value < float("inf"):
                return None
            found[keyword.arg] = value
        elif keyword.arg is None:
            return None
    # Beside the tensors or the reference, only words are read.
    most = {"make_match_reference": 1, "match_reference": 3, "verbose_allclose": 2}[called(call)]
    return {"kind": "close", **found} if len(call.args) <= most else None


def check(node, constants):
    """How results are compared by what `check_implementation` is bound to, or by the calls in its body."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and called(one) in (*CLOSE, EQUAL)]
    if len(calls) != 1:
        return {"kind": "own"}
    return {"kind": "equal"} if called(calls[0]) == EQUAL else close(calls[0], constants) or {"kind": "own"}


def names(node):
    """The names to which a function binds the parts of its argument, where it does so before anything else is bound to that argument."""
    args = [*node.args.posonlyargs, *node.args.args]
    if not args:
        return None
    for one in ast.walk(node):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name) and one.value.id == args[0].arg and len(one.targets) == 1:
            target = one.targets[0]
            if isinstance(target, (ast.Tuple, ast.List)) and all(isinstance(part, ast.Name) for part in target.elts):
                return [part.id for part in target.elts]
    return None


def facts(text):
    found = {"functions": {}, "names": None, "check": {"kind": "own"}}
    constants = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            found["functions"][node.name] = arguments(node)
            if node.name == REFERENCE:
                found["names"] = names(node)
            if node.name == CHECK:
                found["check"] = check(node, constants)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    value = number(node.value)
                    constants.pop(target.id, None)
                    if value is not None:
                        constants[target.id] = value
                    if target.id == CHECK:
                        found["check"] = check(node.value, constants)
    return found


def main():
    out = {}
    for name, text in json.load(sys.stdin).items():
        try:
            out[name] = facts(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            message = "is not Python: %s" % (error.msg if isinstance(error, SyntaxError) else type(error).__name__)
            out[name] = {"functions": {}, "names": None, "check": {"kind": "own"}, "refused": {"kind": "syntax", "message": message, "line": line}}
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
