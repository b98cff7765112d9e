"""Reads task files in KernelBench's form without running any of them: `ast` only parses. kforge runs it with the interpreter of this machine.

    python -I -S -B task_reader.py < FILES > FACTS

FILES is a JSON object with texts by name; FACTS holds one object for each file: `constants`, `refused`, or `other` for what is no task. Constants are the
integers that the file binds once at its top: `a = 1`, `a, b = 1, 2`, `a = b = 1`, `(n,)`. `used` says whether code other than `get_inputs` and
`get_init_inputs` reads one, also through a name that is computed from it.
"""

import ast
import json
import sys
import symtable

GIVERS = ("get_inputs", "get_init_inputs")
WANTED = ("Model", *GIVERS)
LIBRARIES = ("torch", "torchgen", "functorch", "numpy", "typing_extensions", "sympy", "mpmath")
# Numbers beyond this are not sizes.
LARGEST = 1 << 48
OPERATORS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b if b else None,
    ast.LShift: lambda a, b: a << b if 0 <= b < 64 else None,
    ast.Pow: lambda a, b: a**b if 0 <= b < 64 and abs(a) < 1 << 16 else None,
}


def integer(node, depth=24):
    """The integer of an expression of numbers; none if it is no such expression."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) and not isinstance(node.value, bool) else None
    if depth == 0:
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = integer(node.operand, depth - 1)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        a, b = integer(node.left, depth - 1), integer(node.right, depth - 1)
        value = None if a is None or b is None else OPERATORS[type(node.op)](a, b)
        return value if value is not None and abs(value) <= LARGEST else None
    return None


def bound(statement):
    """The names that a statement at the top binds."""
    return {one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, (ast.Store, ast.Del))}


def pairs(target, value):
    """Single names with what they are bound to."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
        for one, part in zip(target.elts, value.elts):
            yield from pairs(one, part)


def assigned(statement):
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from pairs(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from pairs(statement.target, statement.value)


def constants(tree):
    """The constants, and for each computed name the names that it is computed from."""
    times, found, computed = {}, [], {}
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            continue
        for name in bound(statement):
            times[name] = times.get(name, 0) + 1 + isinstance(statement, (ast.For, ast.While, ast.AugAssign))
        for name, value in assigned(statement):
            number = integer(value)
            parts = [integer(one) for one in value.elts] if isinstance(value, (ast.Tuple, ast.List)) else []
            if number is not None:
                found.append({"name": name, "values": [number], "tuple": False, "line": statement.lineno})
            elif parts and None not in parts and isinstance(value, ast.Tuple):
                found.append({"name": name, "values": parts, "tuple": True, "line": statement.lineno})
            else:
                computed.setdefault(name, set()).update(one.id for one in ast.walk(value) if isinstance(one, ast.Name))
    return [one for one in found if times.get(one["name"]) == 1], computed


def read_elsewhere(text, tree):
    """The global names that code other than `get_inputs` and `get_init_inputs` reads."""
    found = set()

    def walk(table):
        for symbol in table.get_symbols():
            if symbol.is_referenced() and symbol.is_global():
                found.add(symbol.get_name())
        for child in table.get_children():
            walk(child)

    for child in symtable.symtable(text, "task.py", "exec").get_children():
        if child.get_name() not in GIVERS:
            walk(child)
    # Decorators, defaults and annotations are read at the top.
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name not in GIVERS:
            outer = [*statement.decorator_list, *statement.args.defaults, *[one for one in statement.args.kw_defaults if one]]
        elif isinstance(statement, ast.ClassDef):
            inner = [one for one in statement.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
            outer = [*statement.decorator_list, *statement.bases]
            for one in inner:
                outer += [*one.decorator_list, *one.args.defaults, *[value for value in one.args.kw_defaults if value]]
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.FunctionDef)):
            continue
        else:
            outer = [statement]
        found.update(one.id for part in outer for one in ast.walk(part) if isinstance(one, ast.Name))
    return found


def missing(tree):
    """The first import of what is neither Python's own nor of the libraries, and its line."""
    known = set(sys.builtin_module_names) | set(getattr(sys, "stdlib_module_names", ())) | set(LIBRARIES)
    if not hasattr(sys, "stdlib_module_names"):
        return None
    guarded = {id(one) for node in ast.walk(tree) if isinstance(node, ast.Try) for one in ast.walk(node)}
    for node in ast.walk(tree):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        for name in names:
            if id(node) not in guarded and (name.startswith(".") or name.split(".")[0] not in known):
                return name, node.lineno
    return None


def task(text):
    tree = ast.parse(text)
    refused = lambda kind, message, line: {"refused": {"kind": kind, "message": message, "line": line}}
    names = {one.name for one in tree.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))} | {name for one in tree.body for name in bound(one)}
    lacks = [name for name in WANTED if name not in names]
    if lacks:
        return {"other": lacks}
    absent = missing(tree)
    if absent:
        return refused("import", "imports `%s`, which is neither of PyTorch nor of numpy nor of Python's own library" % absent[0], absent[1])
    found, computed = constants(tree)
    read = read_elsewhere(text, tree)
    # What is read through computed names.
    pending = list(read)
    while pending:
        for name in computed.get(pending.pop(), ()):
            if name not in read:
                read.add(name)
                pending.append(name)
    for one in found:
        one["used"] = one["name"] in read
    return {"constants": found}


def main():
    out = {}
    for name, text in json.load(sys.stdin).items():
        try:
            out[name] = task(text)
        except SyntaxError as error:
            out[name] = {"refused": {"kind": "syntax", "message": "is not Python: %s" % error.msg, "line": error.lineno}}
        except (ValueError, RecursionError, MemoryError) as error:
            out[name] = {"refused": {"kind": "syntax", "message": "cannot be parsed: %s" % type(error).__name__, "line": None}}
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
