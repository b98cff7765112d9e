"""Describes tasks of gpu-mode. Run as `python driver.py CALL`; for each task of CALL it writes a file with what it found, or why the task cannot be imported. kforge
puts this file behind `meta.py` and `apart.py`.

A task is a file with `generate_input(...)`, which gives what a kernel gets as one value, and `ref_kernel(data)`, and a list of cases: the arguments of
`generate_input`. The value consists of tensors and constants in tuples, lists and dicts. Its leaves are numbered in that order. Sizes come from torch's `meta`
device where a case runs there; where it reads values, the case is made on the processor. Values are computed for the smallest case only.
"""

import math
import warnings

GENERATE, REFERENCE = "generate_input", "ref_kernel"
SEED = 1234


def form_of(value, leaves, path=()):
    """The form of a value: a list of leaves' numbers, `tuple`, `list` or `dict` with forms."""
    if type(value) in (tuple, list):
        return {type(value).__name__: [form_of(part, leaves, path + (at,)) for at, part in enumerate(value)]}
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {"dict": [[key, form_of(part, leaves, path + (key,))] for key, part in value.items()]}
    if isinstance(value, torch.Tensor) and type(value) in (torch.Tensor, torch.nn.Parameter):
        leaves.append((path, value))
    elif value is None or isinstance(value, (bool, int, float, str, torch.dtype)):
        leaves.append((path, value))
    else:
        raise Unfit("unsupported", "%s is a %s, which is neither a tensor nor a constant" % (place_of(path), type(value).__name__))
    return len(leaves) - 1


def place_of(path):
    return "what `%s` returns" % GENERATE if not path else "`data%s`" % "".join("[%r]" % step for step in path)


def value_of(form, leaves):
    """A value of a form, with other leaves."""
    if isinstance(form, int):
        return leaves[form]
    (kind, parts), = form.items()
    if kind == "dict":
        return {key: value_of(part, leaves) for key, part in parts}
    return {"tuple": tuple, "list": list}[kind](value_of(part, leaves) for part in parts)


def results_of(result):
    """The results of a reference with their names, where they have some."""
    if isinstance(result, torch.Tensor):
        return [("", result)]
    named = list(result.items()) if type(result) is dict else [(str(at), value) for at, value in enumerate(result)] if isinstance(result, (tuple, list)) else None
    if not named or not all(isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in named):
        raise Unfit("unsupported", "`%s` returns a %s, expected a tensor, or several" % (REFERENCE, type(result).__name__))
    return named


def constant_of(value):
    """A constant as JSON."""
    if isinstance(value, torch.dtype):
        return {"dtype": word(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def kind_of(value):
    return (str(value.dtype), value.dim()) if isinstance(value, torch.Tensor) else type(value).__name__


class Task:
    """The functions of a task."""

    def __init__(self, entry):
        torch.set_default_dtype(torch.float32)
        with AsProcessor():
            module = load(call["root"], entry["file"], {})
        for name in (GENERATE, REFERENCE):
            if not callable(getattr(module, name, None)):
                raise Unfit("form", "has no function `%s`" % name)
        self.generate, self.reference = getattr(module, GENERATE), getattr(module, REFERENCE)

    def given(self, case, mode, seed=SEED):
        """What a kernel gets for a case: its form, and its leaves with their places."""
        torch.manual_seed(seed)
        arguments = dict(case["arguments"])
        if case["seed"]:
            arguments["seed"] = seed
        with torch.no_grad(), mode():
            data = self.generate(**arguments)
        leaves = []
        return form_of(data, leaves), leaves

    def sizes(self, case):
        """The sizes of a case, without values where that is possible."""
        try:
            return self.sized(case, AsMeta)
        except Unfit:
            raise
        except Exception:
            # It reads values, or does what `meta` cannot.
            return self.sized(case, AsProcessor)

    def sized(self, case, mode):
        form, leaves = self.given(case, mode)
        with torch.no_grad(), mode():
            results = results_of(self.reference(value_of(form, [value for _, value in leaves])))
        return form, leaves, results

    def run(self, form, leaves, modes):
        """The reference on the processor, and the leaves that it changed."""
        own = [value.clone() if isinstance(value, torch.Tensor) else value for value in leaves]
        before = [value.clone() if isinstance(value, torch.Tensor) else value for value in own]
        with torch.no_grad():
            for mode in modes:
                mode.__enter__()
            try:
                result = self.reference(value_of(form, own))
            finally:
                for mode in reversed(modes):
                    mode.__exit__(None, None, None)
        results = [(name, value.detach().clone()) for name, value in results_of(result)]
        changed = [at for at, value in enumerate(own) if isinstance(value, torch.Tensor) and not same(value, before[at])]
        return results, changed


def filled(value, low):
    """The same tensor with other values everywhere."""
    if value.dtype == torch.bool:
        return torch.full_like(value, low)
    if value.is_floating_point():
        return torch.full_like(value.float(), 0.0 if low else float("nan")).to(value.dtype)
    return torch.full_like(value, 0 if low else 1)


def alike(one, two):
    return len(one) == len(two) and all(a[0] == b[0] and same(a[1], b[1]) for a, b in zip(one, two))


def in_double(value):
    """A tensor as a reference gets it."""
    if not isinstance(value, torch.Tensor) or value.dtype == torch.bool:
        return value
    return value.double() if value.is_floating_point() else value.long()


def computed(task, form, leaves):
    """The results in float64, as a reference computes them, and the first operation in low floats."""
    doubled = [in_double(value) for value in leaves]
    torch.set_default_dtype(torch.float64)
    run = Undrawn(lambda watch: task.run(form, doubled, [OnProcessor(), watch]))
    try:
        results, _ = run()
    except Refused:
        raise
    except Exception:
        if run.watch.low is None:
            raise
        results, _ = Undrawn(lambda watch: task.run(form, doubled, [OnProcessor(), InDouble(), watch]))()
    finally:
        torch.set_default_dtype(torch.float32)
    return results, run.watch.low


def examined(task, case, sizes):
    """What values show of the smallest case: types of results, which tensors are only room for results, and whether results depend on inputs."""
    form, leaves = task.given(case, AsProcessor)
    values = [value for _, value in leaves]
    try:
        results, changed = Undrawn(lambda watch: task.run(form, values, [OnProcessor(), watch]))()
    except Drawn as drawn:
        raise Unfit("random", "`%s` %s" % (REFERENCE, str(drawn).split(";")[0]), line_of(drawn.place)) from drawn
    room = []
    for at, value in enumerate(values):
        fits = [k for k, (_, result) in enumerate(results) if isinstance(value, torch.Tensor) and value.dtype == result.dtype and all(s["shapes"][at] == s["outputs"][k] for s in sizes)]
        if not fits:
            continue
        tried = [task.run(form, [*values[:at], filled(value, low), *values[at + 1 :]], [OnProcessor()])[0] for low in (True, False)]
        if all(alike(one, results) for one in tried):
            room.append((at, fits[0]))
    for at in changed:
        if all(at != own for own, _ in room):
            raise Unfit("unsupported", "`%s` changes %s, which it reads" % (REFERENCE, place_of(leaves[at][0])))
    first, low = computed(task, form, values)
    _, others = task.given(case, AsProcessor, SEED + 1)
    second, _ = computed(task, form, [value for _, value in others])
    return {
        "outputs": [{"name": name, "dtype": dtype_of(value, "a result of `%s`" % REFERENCE)} for name, value in results],
        "room": room,
        "contiguous": [value.is_contiguous() if isinstance(value, torch.Tensor) else True for value in values],
        "constant": [value.numel() > 0 and same(value, other) for (_, value), (_, other) in zip(first, second)],
        "low": {"floats": low[0], "operation": low[1], "line": line_of(low[2])} if low else None,
    }


def described(entry):
    task = Task(entry)
    cases, base, kinds = [], None, None
    for at, case in enumerate(entry["cases"]):
        try:
            form, leaves, results = task.sizes(case)
            own = (repr(form), [kind_of(value) for _, value in leaves], [(name, kind_of(value)) for name, value in results])
            if kinds is None:
                base, kinds = (form, leaves), own
            elif own != kinds:
                raise Unfit("unsupported", "has tensors of other types or ranks than the cases before it")
        except Unfit as error:
            cases.append({"refused": {"kind": error.kind, "message": error.message, "line": error.line}})
            continue
        except ImportError:
            raise
        except Exception as error:
            text = " ".join(("%s: %s" % (type(error).__name__, error)).split())[:300]
            cases.append({"refused": {"kind": "error", "message": text, "line": line_in_task(error.__traceback__)}})
            continue
        shape = lambda value: list(value.shape) if isinstance(value, torch.Tensor) else []
        constants = [None if isinstance(value, torch.Tensor) else constant_of(value) for _, value in leaves]
        cases.append({"shapes": [shape(value) for _, value in leaves], "outputs": [shape(value) for _, value in results], "constants": constants})
    known = [(at, case) for at, case in enumerate(cases) if "refused" not in case]
    if not known:
        refused = cases[0]["refused"]
        raise Unfit(refused["kind"], refused["message"], refused["line"])
    form, leaves = base
    elements = lambda case: sum(math.prod(shape) for shape in case["shapes"])
    smallest = min(known, key=lambda one: elements(one[1]))[0]
    found = examined(task, entry["cases"][smallest], [case for _, case in known])
    found.update(
        form=form,
        leaves=[
            {"path": list(path), "dtype": dtype_of(value, place_of(path)) if isinstance(value, torch.Tensor) else None} for path, value in leaves
        ],
        cases=cases,
    )
    return found


def main():
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.set_deterministic_debug_mode("warn")
    warnings.simplefilter("ignore")
    torch.compile = lambda model=None, *_, **__: model if model is not None else lambda function: function
    torch.nn.Module.compile = lambda *_, **__: None
    without_devices()
    for number, entry in enumerate(call["tasks"]):
        apart(number, entry)


main()
