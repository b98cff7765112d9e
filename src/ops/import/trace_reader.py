"""Reads the functions of Python sources without running any of them: `ast` only parses. kforge runs it with the interpreter of this machine.

    python -I -S -B trace_reader.py < SOURCES > FUNCTIONS

SOURCES is a JSON object with texts by name. FUNCTIONS holds an object for each of them: the names of the arguments of each function at its top, in order; null for
one whose arguments have no names. A text that is not Python has `null` in place of the object.
"""

import ast
import json
import sys


def functions(text):
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            args = node.args
            named = not (args.posonlyargs or args.vararg or args.kwarg)
            found[node.name] = [one.arg for one in (*args.args, *args.kwonlyargs)] if named else None
    return found


def main():
    out = {}
    for name, text in json.load(sys.stdin).items():
        try:
            out[name] = functions(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            out[name] = None
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
