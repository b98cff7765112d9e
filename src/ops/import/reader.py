"""Reads Triton kernels and their launches in Python sources, without running any of them: `ast` only parses. kforge runs it with the interpreter of this machine.

    python -I -S -B reader.py < FILES > FACTS

FILES is a JSON object with texts by name; FACTS holds one object for each file: `functions`, `launches`, or `error` with what the parser says.

An expression is `{"int": 3}`, `{"name": "n"}`, `{"op": "*", "of": [a, b]}`, `{"call": "ceil_div", "of": [a, b]}`, `{"stride": ["x_ptr", 0]}`, or `{"text": ...}` for
anything else. Names are parameters of the kernel where the launch passes a value for one.
"""

import ast
import json
import sys

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")
MEMORY = ("load", "store", "make_block_ptr", "make_tensor_descriptor", "advance")


def dotted(node):
    """`triton.language.load` for such a name; otherwise empty."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def last(node):
    """The last part of a name with dots, and of the function of a call."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def names(node):
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]


def literal(node):
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, (bool, int, float, str)) else None


class Scope:
    """The plain assignments of a function or file, by name: the last one before a place counts."""

    def __init__(self, body, line, outer=None):
        self.values = dict(outer.values) if outer else {}
        for node in sorted((n for n in ast.walk(body) if isinstance(n, (ast.Assign, ast.AnnAssign))), key=lambda n: n.lineno):
            if node.lineno >= line or node.value is None:
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self.assign(target, node.value)

    def assign(self, target, value):
        if isinstance(target, ast.Name):
            self.values[target.id] = value
        elif isinstance(target, ast.Tuple) and all(isinstance(one, ast.Name) for one in target.elts):
            for at, one in enumerate(target.elts):
                if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                    self.values[one.id] = value.elts[at]
                elif last(value) in ("shape", "size"):
                    self.values[one.id] = ast.Subscript(value, ast.Constant(at), ast.Load())

    def resolved(self, node, depth=6):
        while depth and isinstance(node, ast.Name) and node.id in self.values:
            node, depth = self.values[node.id], depth - 1
        return node


class Reader:
    """Expressions of a launch, over the parameters of its kernel."""

    def __init__(self, scope, known, tensors, meta):
        self.scope, self.known, self.tensors, self.meta = scope, known, tensors, meta

    def key(self, node):
        return spelled(node)

    def read(self, node, depth=24):
        for one in (node, self.scope.resolved(node)):
            if self.key(one) in self.known:
                return {"name": self.known[self.key(one)]}
        if depth == 0:
            return {"text": spelled(node)}
        value = literal(node)
        if isinstance(value, int) and not isinstance(value, bool):
            return {"int": value}
        if isinstance(node, ast.Name):
            inner = self.scope.resolved(node)
            if inner is not node:
                found = self.read(inner, depth - 1)
                if "text" not in json.dumps(found):
                    return found
            return {"name": node.id}
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.meta:
            value = literal(node.slice)
            if isinstance(value, str):
                return {"name": value}
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            both = [self.read(node.left, depth - 1), self.read(node.right, depth - 1)]
            return {"op": OPERATORS[type(node.op)], "of": both}
        if isinstance(node, ast.Call):
            called = {"cdiv": "ceil_div", "ceil_div": "ceil_div", "next_power_of_2": "next_pow2", "min": "min", "max": "max"}
            if last(node) in called and len(node.args) >= 1 and not node.keywords:
                return {"call": called[last(node)], "of": [self.read(one, depth - 1) for one in node.args]}
            if last(node) == "stride" and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
                of, axis = self.tensor(node.func.value), literal(node.args[0])
                if of and isinstance(axis, int):
                    return {"stride": [of, axis]}
            if last(node) == "int" and len(node.args) == 1:
                return self.read(node.args[0], depth - 1)
        return {"text": spelled(node)}

    def tensor(self, node):
        return self.tensors.get(spelled(node)) or self.tensors.get(spelled(self.scope.resolved(node)))


def spelled(node):
    try:
        return " ".join(ast.unparse(node).split())[:200]
    except (ValueError, RecursionError):
        return "?"


def decorators(function):
    """The names of decorators with their calls; none for a function that is not jitted."""
    found = {last(one): one for one in function.decorator_list}
    return found if "jit" in found else None


def configs(call):
    """What `@triton.autotune` tries: its configurations, those that cannot be read, and its key."""
    out, unread, key = [], "", []
    arguments = {one.arg: one.value for one in call.keywords}
    if call.args:
        arguments.setdefault("configs", call.args[0])
    if len(call.args) > 1:
        arguments.setdefault("key", call.args[1])
    listed = arguments.get("configs")
    for one in getattr(listed, "elts", []):
        if not isinstance(one, ast.Call) or last(one) != "Config":
            unread = unread or spelled(one)
            continue
        keywords = {kw.arg: kw.value for kw in one.keywords}
        inner = one.args[0] if one.args else keywords.get("kwargs")
        constants = {}
        for name, value in zip(getattr(inner, "keys", []), getattr(inner, "values", [])):
            constants[literal(name)] = literal(value)
        options = {name: literal(keywords[name]) for name in OPTIONS if name in keywords}
        for name, value in zip(("num_warps", "num_stages", "num_ctas"), one.args[1:]):
            options.setdefault(name, literal(value))
        if not isinstance(inner, ast.Dict) or None in constants or None in [*constants.values(), *options.values()]:
            unread = unread or spelled(one)
            continue
        out.append({"constants": constants, "options": options})
    if listed is not None and not isinstance(listed, (ast.List, ast.Tuple)):
        unread = spelled(listed)
    if "key" in arguments and isinstance(literal_list(arguments["key"]), list):
        key = literal_list(arguments["key"])
    return out, unread, key


def literal_list(node):
    try:
        return [one for one in ast.literal_eval(node) if isinstance(one, str)]
    except (ValueError, TypeError):
        return None


CONDITIONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def condition(node, args, depth=24):
    """The text of a heuristic in a manifest; none if it has none."""
    inner = lambda one: condition(one, args, depth - 1)
    if depth == 0:
        return None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == args:
        value = literal(node.slice)
        return value if isinstance(value, str) else None
    value = literal(node)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)):
        return json.dumps(value).replace('"', "'")
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        sign = "//" if isinstance(node.op, ast.FloorDiv) else OPERATORS[type(node.op)]
        a, b = inner(node.left), inner(node.right)
        return f"({a} {sign} {b})" if a and b else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in CONDITIONS:
        a, b = inner(node.left), inner(node.comparators[0])
        return f"{a} {CONDITIONS[type(node.ops[0])]} {b}" if a and b else None
    if isinstance(node, ast.BoolOp):
        all_of = [inner(one) for one in node.values]
        word = " and " if isinstance(node.op, ast.And) else " or "
        return word.join(f"({one})" for one in all_of) if all(all_of) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        one = inner(node.operand)
        return f"not ({one})" if one else None
    if isinstance(node, ast.IfExp):
        a, test, b = inner(node.body), inner(node.test), inner(node.orelse)
        return f"{a} if {test} else {b}" if a and test and b else None
    if isinstance(node, ast.Call) and last(node) in ("cdiv", "next_power_of_2") and not node.keywords:
        all_of = [inner(one) for one in node.args]
        if last(node) == "cdiv" and len(all_of) == 2 and all(all_of):
            return f"ceil_div({all_of[0]}, {all_of[1]})"
    return None


def heuristics(call):
    """What `@triton.heuristics` sets: for each constant the source, and its text in a manifest if it has one, or the value whose next power of two it is."""
    out = {}
    values = call.args[0] if call.args else next((kw.value for kw in call.keywords if kw.arg == "values"), None)
    for name, value in zip(getattr(values, "keys", []), getattr(values, "values", [])):
        name = literal(name)
        if not isinstance(name, str):
            continue
        found = {"source": spelled(value), "text": None, "next_pow2": None}
        if isinstance(value, ast.Lambda) and len(value.args.args) == 1:
            args, body = value.args.args[0].arg, value.body
            if isinstance(body, ast.Call) and last(body) == "next_power_of_2" and len(body.args) == 1:
                found["next_pow2"] = condition(body.args[0], args)
            else:
                found["text"] = condition(body, args)
        out[name] = found
    return out


def accesses(function):
    """What the body does with the memory behind each name, with names that follow from others: `read`, `written`, `both`, `atomic`."""
    plain = [one for one in parameters(function) if not (one.annotation and last(one.annotation) == "constexpr")]
    params = [one.arg for one in plain]
    of = {name: {name} for name in params}
    found = {}

    def roots(node):
        return set().union(*(of.get(name, set()) for name in names(node)), set())

    def note(node, what):
        for name in roots(node):
            before = found.get(name)
            found[name] = what if before in (None, what) else "atomic" if "atomic" in (before, what) else "both"

    # Twice, so that pointers that a loop moves are known at its first line.
    for _ in range(2):
        found.clear()
        for node in ast.walk(function):
            # What is added to an address moves it within its memory.
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                value = node.value
                # The value of a load is no address.
                if isinstance(value, ast.Call) and last(value) not in ("make_block_ptr", "make_tensor_descriptor", "advance"):
                    continue
                if any(isinstance(one, ast.Call) and last(one) == "load" for one in ast.walk(value)):
                    continue
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and target.id not in params:
                        of.setdefault(target.id, set()).update(base(value, of, params))
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            name = last(node)
            method = isinstance(node.func, ast.Attribute) and dotted(node.func.value) in of
            where = node.func.value if method else node.args[0] if node.args else None
            if where is None:
                continue
            if name == "load":
                note(pointer(where, of, params), "read")
            elif name == "store":
                note(pointer(where, of, params), "written")
            elif name.startswith("atomic_"):
                note(pointer(where, of, params), "atomic")
    return {name: found[name] for name in params if name in found}


def base(value, of, params):
    """The parameters whose memory an address lies in: the first name of a sum is its base."""
    return set().union(*(of.get(name, set()) for name in names(pointer(value, of, params))), set())


def pointer(node, of, params):
    """The part of an address that says which memory it is in."""
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            node = node.left
        elif isinstance(node, ast.Call) and last(node) in ("make_block_ptr", "make_tensor_descriptor", "advance"):
            given = next((kw.value for kw in node.keywords if kw.arg == "base"), None)
            node = given or (node.args[0] if node.args else ast.Constant(0))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            node = node.func.value
        elif isinstance(node, ast.Call) and last(node) == "cast" and node.args:
            node = node.args[0]
        else:
            return node


def parameters(function):
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def kernel(function, found):
    arguments = parameters(function)
    plain = [*function.args.posonlyargs, *function.args.args]
    defaults = dict(zip([one.arg for one in plain][len(plain) - len(function.args.defaults) :], function.args.defaults))
    defaults.update({one.arg: value for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults) if value})
    tuned, unread, key = configs(found["autotune"]) if isinstance(found.get("autotune"), ast.Call) else ([], "", [])
    return {
        "name": function.name,
        "line": function.lineno,
        "params": [
            {
                "name": one.arg,
                "constexpr": last(one.annotation) == "constexpr" if one.annotation else False,
                "default": literal(defaults[one.arg]) if one.arg in defaults else None,
            }
            for one in arguments
        ],
        "configs": tuned,
        "unread": unread,
        "key": key,
        "heuristics": heuristics(found["heuristics"]) if isinstance(found.get("heuristics"), ast.Call) else {},
        "access": accesses(function),
        "calls": sorted({last(node) for node in ast.walk(function) if isinstance(node, ast.Call) and last(node)}),
        "floats": sorted(floats(function)),
    }


def floats(function):
    """Parameters that are used as floats: beside a float, or in a sum with what was loaded is not seen."""
    out = set()
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(literal(node.right), float) and isinstance(node.left, ast.Name):
            out.add(node.left.id)
    return out


def launch(node, kernels, function, module):
    """A launch `kernel[grid](arguments)`."""
    of = kernels[node.func.value.id]
    scope = Scope(function, node.lineno, Scope(module, 1 << 60))
    params = [one["name"] for one in of["params"]]
    given = dict(zip(params, node.args))
    starred = any(isinstance(one, ast.Starred) for one in node.args) or any(kw.arg is None for kw in node.keywords)
    options = {}
    for kw in node.keywords:
        if kw.arg in params:
            given[kw.arg] = kw.value
        elif kw.arg in OPTIONS:
            options[kw.arg] = literal(scope.resolved(kw.value))
    pointers = [name for name in params if name in of["access"]]
    described = {name: descriptor(scope.resolved(given[name])) for name in pointers if name in given}
    described = {name: found for name, found in described.items() if found}
    given.update({name: found[0] for name, found in described.items()})
    tensors, known = {}, {}
    for name in pointers:
        if name in given:
            tensors.setdefault(spelled(given[name]), name)
    for one in of["params"]:
        name = one["name"]
        if name in given and name not in pointers and literal(given[name]) is None:
            for value in (scope.resolved(given[name]), given[name]):
                known.setdefault(spelled(value), name)
    grid = scope.resolved(node.func.slice)
    meta = set()
    if isinstance(grid, ast.Lambda):
        meta, grid = {one.arg for one in grid.args.args}, grid.body
    elif isinstance(grid, ast.Name):
        inner = [one for one in ast.walk(function) if isinstance(one, ast.FunctionDef) and one.name == grid.id]
        returns = [one.value for one in ast.walk(inner[-1]) if isinstance(one, ast.Return) and one.value] if inner else []
        if len(returns) == 1:
            meta, grid = {one.arg for one in inner[-1].args.args}, returns[0]
    reader = Reader(scope, known, tensors, meta)
    grid = scope.resolved(grid)
    extents = [reader.read(one) for one in grid.elts] if isinstance(grid, (ast.Tuple, ast.List)) else [reader.read(grid)]
    # What a parameter is given is not that parameter.
    values = Reader(scope, {}, tensors, set())
    arguments, constants = {}, {}
    for one in of["params"]:
        if one["name"] not in given or one["name"] in pointers:
            continue
        value = given[one["name"]]
        if one["constexpr"]:
            plain = literal(scope.resolved(value))
            constants[one["name"]] = {"value": plain} if plain is not None else reader_of_constant(reader, scope, value, one["name"])
        elif literal(value) is None and isinstance(value, ast.Constant):
            arguments[one["name"]] = {"none": True}
        elif isinstance(literal(value), float):
            arguments[one["name"]] = {"float": literal(value)}
        else:
            arguments[one["name"]] = values.read(value)
    blocks = Reader(scope, known, tensors, set())
    descriptors = {name: {"block": [blocks.read(one) for one in block], "nan": nan} for name, (_, block, nan) in described.items()}
    nulls = [name for name in params if name in given and isinstance(given[name], ast.Constant) and given[name].value is None]
    return {
        "kernel": of["name"],
        "line": node.lineno,
        "grid": extents,
        "arguments": arguments,
        "constants": constants,
        "options": options,
        "descriptors": descriptors,
        "nulls": nulls,
        "starred": starred,
    }


def descriptor(node):
    """The tensor of a `TensorDescriptor` of the host, the extents of its block, and whether it pads with NaN; none for anything else."""
    if not isinstance(node, ast.Call):
        return None
    if last(node) == "from_tensor":
        names = ("tensor", "block_shape", "padding")
    elif last(node) == "TensorDescriptor":
        names = ("base", "shape", "strides", "block_shape", "padding")
    else:
        return None
    given = dict(zip(names, node.args))
    given.update({kw.arg: kw.value for kw in node.keywords})
    block = given.get("block_shape")
    if names[0] not in given or not isinstance(block, (ast.List, ast.Tuple)):
        return None
    return given[names[0]], block.elts, literal(given.get("padding", ast.Constant("zero"))) == "nan"


def reader_of_constant(reader, scope, value, name):
    known = {key: of for key, of in reader.known.items() if of != name}
    return {"of": Reader(scope, known, reader.tensors, reader.meta).read(scope.resolved(value))}


def file(text):
    module = ast.parse(text)
    kernels = {}
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            found = decorators(node)
            if found is not None:
                kernels[node.name] = kernel(node, found)
    launches = []
    functions = [node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
            continue
        if not isinstance(node.func.value, ast.Name) or node.func.value.id not in kernels:
            continue
        around = [one for one in functions if one.lineno <= node.lineno <= one.end_lineno]
        inner = max(around, key=lambda one: one.lineno, default=module)
        launches.append(launch(node, kernels, inner, module))
    launches.sort(key=lambda one: one["line"])
    # A function that only others call is no kernel.
    called = {last(one) for name in kernels for one in calls_of(module, name)}
    launched = {one["kernel"] for one in launches}
    listed = [one for name, one in kernels.items() if name in launched or name not in called and one["access"]]
    return {"functions": listed, "launches": launches}


def calls_of(module, name):
    function = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name][-1]
    return [node for node in ast.walk(function) if isinstance(node, ast.Call)]


def main():
    out = {}
    for name, text in json.load(sys.stdin).items():
        try:
            out[name] = file(text)
        except SyntaxError as error:
            out[name] = {"functions": [], "launches": [], "error": f"line {error.lineno}: {error.msg}"}
        except (ValueError, RecursionError, MemoryError) as error:
            out[name] = {"functions": [], "launches": [], "error": f"{type(error).__name__}: {error}"}
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
