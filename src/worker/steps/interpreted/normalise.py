"""Brings sources into a form in which comments, empty lines and the layout of statements do not count. kforge runs it with Python in a process of its own.

    python -I -S -B normalise.py JOB OUT

JOB is JSON: `{"tree": FOLDER, "docs": WHETHER DOCUMENTATION STRINGS STAY}`. OUT gets, for each Python file of that folder and
below, `{"files": {NAME: [TEXT, LINES]}}`, where LINES has for each line of the text the line of the file from which it came; or `{"refused": MESSAGE}`. Nothing of the sources runs.
"""

import ast
import json
import os
import sys


class Bare(ast.NodeTransformer):
    """Leaves documentation strings out, which change no machine code either."""

    def bare(self, node):
        self.generic_visit(node)
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.copy_location(ast.Pass(), first)]
        return node

    visit_Module = visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = bare


def lines_of(tree, again, count):
    """For each line of the text of `again`, which equals `tree`, the line on which its outermost statement begins."""
    lines = [0] * count
    for old, new in zip(ast.walk(tree), ast.walk(again)):
        if hasattr(new, "lineno") and not lines[new.lineno - 1]:
            lines[new.lineno - 1] = old.lineno
    # Empty lines, and the later lines of strings.
    for at in range(1, count):
        lines[at] = lines[at] or lines[at - 1]
    return lines


def read(tree):
    """Names and texts of the Python files of a folder and below."""
    for folder, folders, names in os.walk(tree, followlinks=True):
        folders.sort()
        for name in sorted(name for name in names if name.endswith(".py")):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                yield os.path.relpath(path, tree), file.read()


def normalised(name, text, docs):
    tree = ast.parse(text, name)
    tree = tree if docs else Bare().visit(tree)
    made = ast.unparse(tree) + "\n"
    again = ast.parse(made)
    count = made.count("\n")
    if ast.dump(tree) != ast.dump(again):
        # Some strings are written differently. Such a file stays as it is.
        return [text, list(range(1, text.count("\n") + 2))]
    return [made, lines_of(tree, again, count)]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    try:
        files = dict(read(job["tree"]))
        answer = {"files": {name: normalised(name, text, job["docs"]) for name, text in files.items()}}
    except SyntaxError as error:
        answer = {"refused": f"{error.filename}:{error.lineno}: the source cannot be read: {type(error).__name__}: {error.msg}"}
    except (ValueError, RecursionError) as error:
        answer = {"refused": f"a source cannot be read: {type(error).__name__}: {error}"}
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(answer, file, sort_keys=True)


if __name__ == "__main__":
    main()
