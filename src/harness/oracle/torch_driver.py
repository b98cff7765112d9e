"""Calls one module or function of PyTorch for kforge, on the processor and in float64. Run as `python driver.py CALL`; CALL is a JSON file, all other files lie
beside it.

For people who write such references:

* A module is constructed with the arguments of `init`. Its parameters and buffers are the tensors that `state` names, or that have their name with `.` as
  `_`; its own values are never used, except those of buffers that no tensor gives. `forward` is called by name with tensors, params and dims.
* A function is called in the same way. Floats arrive in float64, integers in int64, truth values as bool.
* What changes a tensor must be an inout. One result for each output in declared order, or a dict by name.
* Random numbers, devices other than the processor, files and the network are refused. `torch.compile` returns what it is given.
* Such a file may import files of its package that lie beside it and below, Python's own library, torch and numpy.
"""


def read(name, entry):
    with open(entry["file"], "rb") as file:
        data = bytearray(file.read())
    dtype = getattr(torch, entry["kind"])
    tensor = torch.frombuffer(data, dtype=dtype).reshape(entry["shape"]) if data else torch.empty(entry["shape"], dtype=dtype)
    return tensor.bool() if name in call["truths"] else tensor


def write(name, value, entry):
    if not isinstance(value, torch.Tensor):
        try:
            value = torch.as_tensor(value)
        except (RuntimeError, TypeError, ValueError):
            fail("returned a %s for `%s`, expected a tensor" % (type(value).__name__, name))
    want = tuple(entry["shape"])
    if tuple(value.shape) != want and not (value.numel() == 1 and want in ((), (1,))):
        sys.exit("`%s` has the shape %s, expected %s" % (name, list(value.shape), entry["shape"]))
    if value.is_complex():
        sys.exit("`%s` is complex" % name)
    if entry["kind"] == "int64" and value.is_floating_point() and not torch.equal(value, value.trunc()):
        sys.exit("`%s` holds integers, but fractions were given for it" % name)
    value = value.detach().to(getattr(torch, entry["kind"])).contiguous().reshape(-1)
    if value.numel() == 0:
        return open(entry["file"], "wb").close()
    file = torch.from_file(entry["file"], shared=True, size=value.numel(), dtype=value.dtype)
    file.copy_(value)


class Computed(Bound):
    """A call whose state and arguments are bound, in float64."""

    def run(self, function, values, inouts, modes):
        """Calls it with copies. Returns the results, and the tensors of inouts afterwards."""
        copies = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in values.items()}
        own = {}
        if self.module is not None:
            all_of = dict(self.module.named_parameters())
            all_of.update(self.module.named_buffers())
            for name in self.kept:
                value = all_of[name].detach().clone()
                own[name] = value.double() if value.is_floating_point() else value
        state = {name: copies[tensor] for name, tensor in self.state.items()}
        state.update(own)
        before = {name: value.clone() for name, value in own.items()}
        args = [copies[self.arguments[name]] for name in self.arguments if name in self.positional]
        kwargs = {name: copies[tensor] for name, tensor in self.arguments.items() if name not in self.positional}
        torch.set_default_dtype(torch.float64)
        with torch.no_grad():
            for mode in modes:
                mode.__enter__()
            try:
                if self.module is None:
                    result = function(*args, **kwargs)
                else:
                    result = torch.func.functional_call(self.module, state, tuple(args), kwargs)
            finally:
                for mode in reversed(modes):
                    mode.__exit__(None, None, None)
        # What was assigned to the module rather than changed in place.
        copies.update((tensor, state[name]) for name, tensor in self.state.items())
        for name, value in values.items():
            if isinstance(value, torch.Tensor) and name not in inouts and not same(copies[name], value):
                named = next((own for own, tensor in self.state.items() if tensor == name), name)
                fail("changes `%s`, but `%s` is an input: declare it under `inouts`" % (named, name))
        for name, value in before.items():
            if call["state"].get(name, "") is not None and not same(state[name], value):
                fail("changes the buffer `%s`, which no inout gives: declare an inout for it, or state `\"%s\" = false` in `state` of the reference" % (name, name))
        return result, {name: copies[name] for name in inouts}


def computed(bound, function, values, inouts):
    """The results in the best precision that can be had, and what to say of it."""
    run = Undrawn(lambda watch: bound.run(function, values, inouts, [OnProcessor(), watch]))
    failed = None
    try:
        plain = run()
    except Exception as error:
        if run.watch.low is None or isinstance(error, Refused):
            raise
        plain, failed = None, error
    watch = run.watch
    if watch.low is None:
        return plain, {"floats": "float64", "operation": None, "place": None, "mapped": False}
    dtype, operation, place = watch.low
    said = {"floats": dtype, "operation": operation, "place": place, "mapped": False}
    if call["casts"] == "keep":
        if failed is not None:
            raise failed
        return plain, said
    run = Undrawn(lambda watch: bound.run(function, values, inouts, [OnProcessor(), InDouble(), watch]))
    try:
        mapped = run()
    except Refused:
        raise
    except Exception:
        if failed is not None:
            raise failed
        return plain, said
    again = run.watch
    if again.low is None:
        return mapped, dict(said, mapped=True)
    if plain is None:
        return mapped, dict(said, floats=again.low[0], operation=again.low[1], place=again.low[2])
    return plain, said


def main():
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.set_deterministic_debug_mode("error")
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    # A compiled module computes what the module computes.
    torch.compile = lambda model=None, *_, **__: model if model is not None else lambda function: function
    torch.nn.Module.compile = lambda *_, **__: None
    constants = {name: number(value) for name, value in call["constants"].items()}
    with OnProcessor():
        what = getattr(load(call["root"], call["module"], constants), call["function"], None)
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        torch.set_deterministic_debug_mode("error")
        if what is None:
            sys.exit("`%s` has no `%s`" % (call["module"], call["function"]))
        module = what if isinstance(what, torch.nn.Module) else None
        if isinstance(what, type) and issubclass(what, torch.nn.Module):
            with Constructing(), torch.no_grad():
                module = what(*[number(value) for value in call["init"]], **{name: number(value) for name, value in call["keywords"].items()})
    if module is not None:
        module.train(call["train"])
    function = what if module is None else module.forward
    if not callable(function):
        fail("is neither a module nor a function")
    precisions = [one_set(module, function, dict(given["inputs"]), dict(given["outputs"])) for given in call["sets"]]
    with open("precision.json", "w") as file:
        json.dump(precisions, file)


def one_set(module, function, tensors, outputs):
    """Computes the outputs of one set of inputs. Returns what is to be said of their precision."""
    values = {name: number(value) for name, value in call["arguments"].items()}
    values.update((name, read(name, entry)) for name, entry in tensors.items())
    inouts = [name for name in outputs if name in tensors]
    bound = Computed(module, function, values, tensors)
    (result, changed), precision = computed(bound, function, values, inouts)
    results = dict(changed)
    results.update(by_name(result, [name for name in outputs if name not in changed], list(outputs)))
    known = dict(outputs)
    for name, entry in outputs.items():
        known[name + ".scale"] = dict(entry, file=entry["file"] + ".scale")
    for name, value in results.items():
        if name not in known:
            fail("returned `%s`, which the operator does not write; expected %s" % (name, listed(known)))
        write(name, value, known[name])
    return precision


def own_frames(trace):
    """The traceback from where code of the package begins."""
    root = os.path.realpath(call["root"]) + os.sep
    start = trace
    while start is not None and not os.path.realpath(start.tb_frame.f_code.co_filename).startswith(root):
        start = start.tb_next
    return start if start is not None else trace


try:
    main()
except Refused as error:
    fail(str(error))
except Exception as error:
    traceback.print_exception(type(error), error, own_frames(error.__traceback__))
    sys.exit(1)
