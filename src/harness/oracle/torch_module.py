# Modules and functions of PyTorch in a file of the package: how they are loaded, and which tensors of the operator are their arguments, parameters and buffers.
# kforge puts this file before each driver that calls PyTorch; `call` is what such a driver was asked, and has imported torch.

import ast
import importlib.machinery
import importlib.util
import inspect


def named():
    return "`%s::%s`" % (call["module"], call["function"])


def fail(message):
    sys.exit("%s %s" % (named(), message))


def number(value):
    """A value of the manifest. Numbers that JSON does not have are words; lists are tuples."""
    if isinstance(value, str):
        return float(value)
    if isinstance(value, list):
        return tuple(number(part) for part in value)
    if isinstance(value, dict):
        return float(value["float"]) if "float" in value else value["text"]
    return value


def bound_names(statement):
    """The names that a statement at the top of a file binds."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return set()
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def literal(value):
    if isinstance(value, tuple):
        return ast.Tuple(elts=[literal(part) for part in value], ctx=ast.Load())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return ast.Call(func=ast.Name(id="float", ctx=ast.Load()), args=[ast.Constant(value=str(value))], keywords=[])
    return ast.Constant(value=value)


def with_constants(tree, constants):
    """Gives constants the stated values from where a file sets them. Returns the names that it does not set."""
    body, missing = [], set(constants)
    for statement in tree.body:
        body.append(statement)
        for name in sorted(bound_names(statement) & set(constants)):
            missing.discard(name)
            again = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=literal(constants[name]))
            body.append(ast.fix_missing_locations(ast.copy_location(again, statement)))
    tree.body = body
    return missing


def parsed(path):
    with open(path, "rb") as source:
        return ast.parse(source.read(), filename=path)


def modules_of(tree, folders):
    """The modules that a file imports and that are files below these folders, by name."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names += [node.module] + ["%s.%s" % (node.module, alias.name) for alias in node.names]
    found = {}
    for name in names:
        places = [os.path.join(folder, *name.split(".")) for folder in folders]
        files = [file for place in places for file in (place + ".py", os.path.join(place, "__init__.py")) if os.path.isfile(file)]
        if files:
            found.setdefault(name, files[0])
    return found


class StatedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of the package with stated constants."""

    def __init__(self, name, path, constants):
        super().__init__(name, path)
        self.constants = constants

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        tree = parsed(path)
        missing = with_constants(tree, self.constants)
        if missing:
            names = listed("%s.%s" % (fullname, name) for name in missing)
            sys.exit("`constants` names %s, but `%s` sets no such constant at its top" % (names, os.path.basename(path)))
        return compile(tree, path, "exec", dont_inherit=True)


class Stated:
    """Finds the modules of the package whose constants have stated values."""

    def __init__(self, root, constants):
        self.root, self.constants = os.path.realpath(root) + os.sep, constants
        self.seen, self.asks = set(), False

    def find_spec(self, name, path=None, target=None):
        if name not in self.constants or self.asks:
            return None
        self.asks = True
        try:
            finders = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
            spec = next((spec for spec in (finder.find_spec(name, path, target) for finder in finders) if spec is not None), None)
        finally:
            self.asks = False
        if spec is None or not spec.origin or not os.path.realpath(spec.origin).startswith(self.root):
            return spec
        self.seen.add(name)
        spec.loader = StatedLoader(name, spec.origin, self.constants[name])
        return spec


def load(root, file, constants):
    """The module in a file of the package. Its constants have the given values from where the file sets them: `NAME` is one of the file, or otherwise of the one
    module that the file imports and that sets it; `helpers.NAME` is one of the module `helpers` of the package, whoever imports that.
    """
    path = os.path.join(root, file)
    sys.path[:0] = [os.path.dirname(path), root]
    tree = parsed(path)
    stem = os.path.splitext(os.path.basename(file))[0]
    own, others = {}, {}
    for stated, value in constants.items():
        module, _, name = stated.rpartition(".")
        (own if module in ("", stem) else others.setdefault(module, {}))[name] = value
    missing = with_constants(tree, own)
    modules = modules_of(tree, sys.path[:2]) if missing else {}
    for name in sorted(missing):
        setting = [module for module, place in modules.items() if any(name in bound_names(one) for one in parsed(place).body)]
        if len(setting) > 1:
            sys.exit("`constants` names `%s`, which %s set: state one of them, as in `%s.%s`" % (name, listed(setting), setting[0], name))
        if not setting:
            sys.exit("`constants` names %s, but `%s` sets no such constant at its top, and neither does a module of the package that it imports" % (listed(missing), file))
        others.setdefault(setting[0], {})[name] = own[name]
    stated = Stated(root, others)
    if others:
        sys.meta_path.insert(0, stated)
    spec = importlib.util.spec_from_file_location(stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)
    if others.keys() - stated.seen:
        unseen = sorted(others.keys() - stated.seen)[0]
        name = sorted(others[unseen])[0]
        sys.exit("`constants` names `%s.%s`, but `%s` imports no module `%s` of the package" % (unseen, name, file, unseen))
    return module


def listed(names):
    return ", ".join("`%s`" % name for name in sorted(names))


class Bound:
    """The arguments of `forward` or of the function, and the state of the module, by tensors of the operator."""

    def __init__(self, module, function, values, tensors):
        self.module = module
        self.arguments, self.state, self.kept = {}, {}, []
        used = set()
        parameters = inspect.signature(function).parameters.values()
        names = call["names"]
        known = {p.name for p in parameters}
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        for name in names:
            if name not in known and not takes_all:
                fail("has no argument `%s`, which `names` of the reference states; there are %s" % (name, listed(known) or "none"))
        for p in parameters:
            if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
                continue
            own = names.get(p.name, p.name)
            if own in values:
                self.arguments[p.name] = own
                used.add(own)
            elif p.default is p.empty:
                fail("asks for `%s`, which no tensor, param or dim is named; there are %s. `names` of the reference can state which it is" % (p.name, listed(values)))
        if module is not None:
            used |= self.bind(module, values, tensors, used)
        elif call["state"] or call["init"] or call["keywords"]:
            fail("is a function: `init` and `state` of the reference are for modules")
        if takes_all:
            for name in values:
                if name not in used:
                    self.arguments[name] = name
                    used.add(name)
        idle = [name for name in tensors if name not in used]
        if idle:
            what = "neither an argument nor in its state" if module is not None else "not an argument"
            fail("does not use %s: %s. `names` and `state` of the reference can state what it is" % (listed(idle), what))
        self.positional = {p.name for p in parameters if p.kind is p.POSITIONAL_ONLY}

    def bind(self, module, values, tensors, taken):
        used, missing = set(), []
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        stated = call["state"]
        aliases = dict(module.named_parameters(remove_duplicate=False))
        for name in stated:
            if name not in parameters and name not in buffers:
                same = [other for other, value in parameters.items() if name in aliases and value is aliases[name]]
                hint = "; it is `%s` by another name" % same[0] if same else "; there are %s" % (listed(set(parameters) | set(buffers)) or "none")
                fail("has no parameter or buffer `%s`, which `state` of the reference states%s" % (name, hint))
        for name, own in list(parameters.items()) + list(buffers.items()):
            tensor = stated.get(name, name.replace(".", "_"))
            if tensor in tensors and not (name not in stated and tensor in taken):
                if tuple(own.shape) != tuple(tensors[tensor]["shape"]):
                    fail("has the %s `%s` in the shape %s, but `%s` has the shape %s" % ("parameter" if name in parameters else "buffer", name, list(own.shape), tensor, tensors[tensor]["shape"]))
                self.state[name] = tensor
                used.add(tensor)
            elif name in parameters and name not in stated:
                missing.append(name)
            else:
                if own.is_floating_point() and bool(own.isnan().any()):
                    fail("draws `%s` at random in its constructor, and no tensor gives it: bind it in `state` of the reference" % name)
                self.kept.append(name)
        if missing:
            shapes = ", ".join("`%s` %s" % (name, list(parameters[name].shape)) for name in missing)
            fail("has parameters that no tensor gives: %s. Declare inputs named %s, or name tensors in `state` of the reference" % (shapes, listed(name.replace(".", "_") for name in missing)))
        return used


def by_name(result, outputs, written):
    if isinstance(result, dict):
        return result
    results = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    names = written if len(results) == len(written) != len(outputs) else outputs
    if len(results) != len(names):
        fail("returned %d results, expected %d: %s" % (len(results), len(names), ", ".join(names) or "none, because every written tensor is an inout"))
    return dict(zip(names, results))
