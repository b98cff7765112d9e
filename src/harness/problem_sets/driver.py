"""Describes task files in KernelBench's form. Run as `python driver.py CALL`; for each task of CALL it writes a file with what it found, or why the task cannot
be imported. kforge puts this file behind `apart.py`.
"""

import math

# The most bytes in float64 that values of a task may take here.
VALUES = 512 << 20


def elements(shape):
    return math.prod(shape)


def bytes_of(record):
    return 8 * sum(elements(shape) for what in ("inputs", "state", "outputs") for shape in record[what])


def arguments(run):
    """The parameters of `forward` that inputs are given for."""
    found = list(inspect.signature(run["model"].forward).parameters.values())
    if any(one.kind is one.VAR_POSITIONAL for one in found):
        raise Unfit("unsupported", "`forward` takes `*%s`, which has no names" % next(one.name for one in found if one.kind is one.VAR_POSITIONAL))
    if len(run["inputs"]) > len(found):
        raise Unfit("form", "`%s` gives %d inputs, but `forward` takes %d" % (INPUTS, len(run["inputs"]), len(found)))
    given = len(run["inputs"])
    return [one.name for one in found[:given]], [one.name for one in found[given:]]


def scalar(value, what):
    if isinstance(value, (bool, int, float)):
        return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value
    raise Unfit("unsupported", "%s is a %s, which a manifest cannot state" % (what, "None" if value is None else type(value).__name__))


def stated(value, what):
    """A constructor's argument, as JSON."""
    if isinstance(value, (list, tuple)):
        return [stated(part, what) for part in value]
    return {"text": value} if isinstance(value, str) else scalar(value, what)


def constructor(run):
    """The arguments of the constructor, by name where one is its default and has no form in a manifest."""
    found = [one for one in inspect.signature(run["module"].Model.__init__).parameters.values()][1:]
    names = [one.name if one.kind is not one.VAR_POSITIONAL else "" for one in found]
    out, skipped = [], False
    for at, value in enumerate(run["init"]):
        name = names[at] if at < len(names) else ""
        what = "the argument `%s` of `%s`" % (name or at, MODEL)
        if value is None and name and found[at].default is None:
            out.append({"name": name, "value": None})
            skipped = True
            continue
        if isinstance(value, dict):
            raise Unfit("unsupported", "%s is a dict, which a manifest cannot state" % what)
        out.append({"name": name, "value": stated(value, what)})
    if skipped and not all(one["name"] for one in out):
        raise Unfit("unsupported", "`%s` gives None for an argument without a name" % INIT)
    return out


def described(entry):
    task = Sized(entry["file"], entry["constants"])
    base = task.run({})
    names, others = arguments(base)
    varied = Varied(task, base)
    varied.add_virtual(base["init"])
    varied.find_groups()
    small, ragged = varied.shrink(False), varied.shrink(True)
    chosen = [probe for probe in (small, ragged) if probe is not None]
    for at, probe in enumerate(chosen):
        varied.probes.append(probe)
    place = lambda probe: varied.probes.index(probe) if probe is not None else None
    looked_at = ragged or small or varied.base
    values, laws, random = None, {}, base["drawn"]
    # Inputs without constants are cut out of those of the task's own size.
    cut = looked_at is not varied.base and any(atom["kind"] == "extent" for atom in task.atoms)
    if bytes_of(varied.base if cut else looked_at) <= VALUES:
        at_size = {at: value for at, value in enumerate(looked_at["values"])}
        run = task.run(at_size)
        weights = sum(elements(value.shape) for value in base["state"].values())
        if looked_at is not varied.base and weights <= WEIGHTS:
            laws = laws_of(task, base)
        values = examined(task, run, looked_at, laws)
        random = values["random"]
    elif random is not None and task.run({}, train=False)["drawn"] is not None:
        raise Unfit("random", "draws random numbers in evaluation mode also: no kernel can reproduce them", random["line"])
    return {
        "inputs": [
            {"argument": name, "dtype": dtype_of(value, "the input `%s`" % name)}
            if isinstance(value, torch.Tensor)
            else {"argument": name, "value": scalar(value, "the input `%s`" % name)}
            for name, value in zip(names, base["inputs"])
        ],
        "others": others,
        "init": constructor(base),
        "state": [
            {"name": name, "dtype": dtype_of(value, "`%s`" % name), "buffer": name in base["buffers"]}
            for name, value in [*base["state"].items(), *base["buffers"].items()]
        ],
        "outputs": [{"name": name, "dtype": dtype_of(value, "a result of `forward`")} for name, value in base["outputs"]],
        "atoms": task.atoms,
        "groups": varied.groups,
        "probes": varied.probes,
        "small": place(small),
        "ragged": place(ragged),
        "random": random,
        "values": values,
    }


def laws_of(task, run):
    """The laws of weights at the task's own size."""
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    with OnProcessor(), torch.no_grad():
        model = task.loaded({}).Model(*[as_stated(value) for value in run["init"]])
    found = {}
    for name, value in model.named_parameters():
        value = value.detach()
        if value.is_floating_point() and value.numel() and not bool((value == value.reshape(-1)[0]).all()):
            bound = math.sqrt(3.0) * float((value.double() * value.double()).mean().sqrt())
            found[name] = {"kind": "uniform", "bound": rounded(bound)}
    return found


def main():
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.set_deterministic_debug_mode("error")
    torch.compile = lambda model=None, *_, **__: model if model is not None else lambda function: function
    torch.nn.Module.compile = lambda *_, **__: None
    # What the first operations on `meta` import, once for all processes.
    with torch.device("meta"), OnMeta(), torch.no_grad():
        model = torch.nn.Linear(2, 2)
        torch.func.functional_call(model, dict(model.named_parameters()), (torch.randn(2, 2),))
    for number, entry in enumerate(call["tasks"]):
        apart(number, entry)


main()
