"""A task on torch's `meta` device: shapes and types without values. kforge puts this file between `torch_call.py` and `values.py`.

A task is a file with `class Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`. What its shapes depend on are atoms: integers of constants at its top,
integers that `get_init_inputs` returns, and extents of the inputs that follow neither. `Sized` evaluates the task with other values of its atoms.
"""

MODEL, INPUTS, INIT = "Model", "get_inputs", "get_init_inputs"
DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
}


class Unfit(Exception):
    """Why a task cannot be imported."""

    def __init__(self, kind, message, line=None):
        super().__init__(message)
        self.kind, self.message, self.line = kind, message, line


def line_of(place):
    """The line of `task.py:12`."""
    return int(place.rsplit(":", 1)[1]) if ":" in place else None


def line_in_task(trace):
    """The innermost line of the task in a traceback."""
    root, line = os.path.realpath(call["root"]) + os.sep, None
    while trace is not None:
        if os.path.realpath(trace.tb_frame.f_code.co_filename).startswith(root):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def dtype_of(value, what):
    found = DTYPES.get(word(value.dtype))
    if found is None:
        raise Unfit("unsupported", "%s has the type %s, which kforge does not have" % (what, word(value.dtype)))
    return found


class OnMeta(TorchDispatchMode):
    """Refuses to read values, and remembers between which integers a tensor was drawn and the first operation that may draw random numbers."""

    def __init__(self):
        super().__init__()
        self.ranges, self.kept, self.drawn = {}, [], None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            raise Unfit("reads-values", "reads values of tensors, as `.item()` does: its result has no fixed form", line_of(where()))
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags and self.drawn is None:
            self.drawn = {"operation": str(func), "line": line_of(where())}
        name = func._schema.name
        if name == "aten::randint" and isinstance(result, torch.Tensor):
            low, high = (args[0], args[1]) if len(args) > 2 else (0, args[0])
            self.remember(result, [low, high])
        elif name == "aten::detach" and id(args[0]) in self.ranges:
            self.remember(result, self.ranges[id(args[0])])
        return result

    def remember(self, result, ends):
        self.ranges[id(result)] = ends
        # An id is of one tensor only while that exists.
        self.kept.append(result)


def integers(value, path=()):
    """The integers of constructor's arguments, with their places."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            yield from integers(part, path + (at,))


def replaced(value, path, integer):
    if not path:
        return integer
    parts = list(value)
    parts[path[0]] = replaced(parts[path[0]], path[1:], integer)
    return parts


def as_stated(value):
    """A constructor's argument as the reference will get it: lists are tuples."""
    return tuple(as_stated(part) for part in value) if isinstance(value, (list, tuple)) else value


class Sized:
    """A task, and its atoms. An atom is a table: `kind`, `value`, and where it stands."""

    def __init__(self, file, constants):
        self.file, self.constants = file, constants
        self.atoms = []
        for at, constant in enumerate(constants):
            for index, value in enumerate(constant["values"]):
                self.atoms.append({"kind": "constant", "of": at, "index": index, "value": value})
        self.evaluations = 0

    def loaded(self, values):
        """The module of the task, with other constants. `values` are those of atoms by index."""
        stated = {}
        for at, constant in enumerate(self.constants):
            own = [(atom["index"], values[i]) for i, atom in enumerate(self.atoms) if atom["kind"] == "constant" and atom["of"] == at and i in values]
            if own:
                parts = list(constant["values"])
                for index, value in own:
                    parts[index] = value
                stated[constant["name"]] = tuple(parts) if constant["tuple"] else parts[0]
        module = load(call["root"], self.file, stated)
        for name in (MODEL, INPUTS, INIT):
            if not callable(getattr(module, name, None)):
                raise Unfit("form", "has no `%s`" % name)
        if not (isinstance(module.Model, type) and issubclass(module.Model, torch.nn.Module)):
            raise Unfit("form", "`%s` is not a class of modules" % MODEL)
        return module

    def given(self, module, values, watch, device):
        """What the task gives: arguments of the constructor, and inputs."""
        with OnProcessor(), torch.device(device), watch:
            init, inputs = module.get_init_inputs(), module.get_inputs()
        for what, value in ((INIT, init), (INPUTS, inputs)):
            if not isinstance(value, (list, tuple)):
                raise Unfit("form", "`%s` returns a %s, expected a list" % (what, type(value).__name__))
        init, inputs = list(init), list(inputs)
        for at, atom in enumerate(self.atoms):
            if at not in values:
                continue
            if atom["kind"] == "init":
                init = replaced(init, atom["path"], values[at])
            elif atom["kind"] == "extent":
                own, axis = inputs[atom["input"]], atom["axis"]
                shape = list(own.shape)
                shape[axis] = values[at]
                # On the processor sizes only shrink: the values stay those of the task.
                inputs[atom["input"]] = own.narrow(axis, 0, values[at]) if device == "cpu" else torch.empty(shape, dtype=own.dtype, device=device)
        return init, inputs

    def run(self, values, train=True, forward=True):
        """The task on `meta`."""
        self.evaluations += 1
        watch = OnMeta()
        torch.set_default_dtype(torch.float32)
        module = self.loaded(values)
        init, inputs = self.given(module, values, watch, "meta")
        ranges = [watch.ranges.get(id(value)) for value in inputs]
        run = {"module": module, "init": init, "inputs": inputs, "ranges": ranges}
        if not forward:
            return run
        watch.drawn = None
        with OnProcessor(), torch.device("meta"), watch, torch.no_grad():
            model = module.Model(*[as_stated(value) for value in init])
        model.train(train)
        state = dict(model.named_parameters())
        buffers = dict(model.named_buffers())
        watch.drawn = None
        with OnProcessor(), torch.device("meta"), watch, torch.no_grad():
            result = torch.func.functional_call(model, {**state, **buffers}, tuple(inputs))
        run.update(model=model, state=state, buffers=buffers, result=result, outputs=outputs_of(result), drawn=watch.drawn)
        return run

    def record(self, run):
        """The integers of a run."""
        shape = lambda value: list(value.shape) if isinstance(value, torch.Tensor) else []
        out = {"inputs": [shape(value) for value in run["inputs"]], "init": [value for _, value in integers(run["init"])], "ranges": run["ranges"]}
        if "outputs" in run:
            out["state"] = [shape(value) for value in [*run["state"].values(), *run["buffers"].values()]]
            out["outputs"] = [shape(value) for _, value in run["outputs"]]
        return out

    @staticmethod
    def form(run):
        """What must not change with sizes."""
        kind = lambda value: (str(value.dtype), value.dim()) if isinstance(value, torch.Tensor) else (type(value).__name__, repr(value))
        out = [[kind(value) for value in run["inputs"]], [path for path, _ in integers(run["init"])], repr(without_integers(run["init"]))]
        if "outputs" in run:
            for part in (run["state"], run["buffers"], dict(run["outputs"])):
                out.append([(name, kind(value)) for name, value in part.items()])
        return out


def without_integers(value):
    if isinstance(value, (list, tuple)):
        return [without_integers(part) for part in value]
    return 0 if isinstance(value, int) and not isinstance(value, bool) else value


def outputs_of(result):
    """The results with their names, where they have some."""
    if isinstance(result, torch.Tensor):
        return [("", result)]
    if isinstance(result, dict):
        named = list(result.items())
    elif isinstance(result, (list, tuple)):
        named = [(str(at), value) for at, value in enumerate(result)]
    else:
        raise Unfit("unsupported", "`forward` returns a %s, expected tensors" % type(result).__name__)
    for name, value in named:
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise Unfit("unsupported", "`forward` returns a %s within its result, expected tensors" % type(value).__name__)
    return named
