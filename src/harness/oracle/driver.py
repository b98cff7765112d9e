"""Calls one function of a package for kforge. Run as `python driver.py CALL`; CALL is a JSON file, all other files lie beside it.

For people who write such functions:

* A reference, `def rms_norm(x, w, eps): return y`, is called by name with what its signature names: tensors that are read (numpy arrays of float64, or of
  int64 for integer types, in the shape the operator sees), params, dims. A `**rest` takes all that is left. It returns the array of the only output, or
  a tuple of arrays in declared order, or a dict of arrays by name. A dict may also hold, as `"y.scale"`, the operator on absolute values, which a
  tolerance's `scaled` is measured in.
* A generator of inputs, `def inputs(seed, distribution, rows, cols): return {"table": ...}`, returns the tensors that it makes; kforge draws the rest.
  The same arguments must give the same arrays, on any machine.
* A check, `def check(got, want, x, eps)`, says what of one output may stand. `got` is what a kernel wrote and `want` what the reference gave, rounded to the
  output's type; both are arrays as above, and with them it may name what a reference may. No array can be written to. It returns a truth value for the whole
  output, or an array of truth values in the output's shape, one an element; or either of these and a text that says why, as a tuple. Anything else, and any
  exception, is an error of the check and no verdict. It is asked about null candidates too, so it must bear whatever a wrong kernel could give.
* Such a file may import files of its package that lie beside it and below, Python's own library and numpy. Nothing else that is installed can be imported,
  because kforge would not know that it changed.
"""

import traceback


def load(root, file):
    """The module in a file of the package, which may import its neighbours and anything from the package's root."""
    path = os.path.join(root, file)
    sys.path[:0] = [os.path.dirname(path), root]
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(file))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def read(entry):
    return numpy.fromfile(entry["file"], dtype=entry["kind"]).reshape(entry["shape"])


def write(name, value, entry):
    array = numpy.asarray(value)
    if array.shape != tuple(entry["shape"]):
        sys.exit("`%s` has the shape %s, expected %s" % (name, list(array.shape), entry["shape"]))
    if entry["kind"] == "int64" and array.dtype.kind == "f" and not numpy.array_equal(array, numpy.trunc(array)):
        sys.exit("`%s` holds integers, but fractions were given for it" % name)
    # Unsigned values beyond int64 keep their bits.
    array = array if array.dtype == numpy.uint64 and entry["kind"] == "int64" else array.astype(entry["kind"])
    numpy.ascontiguousarray(array).tofile(entry["file"])


def chosen(function, values):
    """Those of `values` that the function asks for."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return values
    for p in parameters:
        if p.name not in values and p.default is p.empty and p.kind is not p.VAR_POSITIONAL:
            sys.exit("`%s` asks for `%s`; there are %s" % (function.__name__, p.name, ", ".join(sorted(values))))
    return {p.name: values[p.name] for p in parameters if p.name in values}


def by_name(result, names):
    if isinstance(result, dict):
        return result
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(names):
        sys.exit("%d results were returned, expected %d: %s" % (len(results), len(names), ", ".join(names)))
    return dict(zip(names, results))


def verdict(result, shape, what):
    """What a check said: truth values, one or one an element, and its words."""
    message = None
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], str):
        result, message = result
    try:
        array = numpy.asarray(result)
    except ValueError:
        # Of parts that do not go together.
        array = numpy.asarray(None)
    if array.dtype != bool or array.shape not in ((), shape):
        kind = type(result).__name__ if array.shape == () else "values of %s in the shape %s" % (array.dtype, list(array.shape))
        sys.exit("%s gave %s, expected a truth value, or truth values in the shape %s, or either and a text" % (what, kind, list(shape)))
    return array, message


def check(call, function, values):
    (output, entry), = call["outputs"]
    shape = tuple(entry["shape"])
    said = []
    for asked in call["checks"]:
        values["got"] = read(asked["got"])
        for value in values.values():
            if isinstance(value, numpy.ndarray):
                value.flags.writeable = False
        what = "`%s`, asked about `%s` of %s," % (function.__name__, output, asked["whose"])
        arguments = chosen(function, values)
        try:
            result = function(**arguments)
        except Exception as error:
            # Without the line of this file.
            traceback.print_exception(type(error), error, error.__traceback__.tb_next)
            sys.exit("%s raised %s; a check must bear whatever a wrong kernel could give" % (what, type(error).__name__))
        array, message = verdict(result, shape, what)
        if array.shape == () and shape != ():
            said.append({"whole": bool(array), "message": message})
        else:
            array.astype(numpy.uint8).tofile(asked["accepted"])
            said.append({"whole": None, "message": message})
    with open("said.json", "w") as file:
        json.dump(said, file)


def main():
    function = getattr(load(call["root"], call["module"]), call["function"], None)
    if function is None:
        sys.exit("`%s` has no function `%s`" % (call["module"], call["function"]))
    # Numbers that JSON does not have are words.
    words = ("inf", "-inf", "nan")
    values = {name: float(value) if value in words else value for name, value in call["arguments"].items()}
    values.update((name, read(entry)) for name, entry in call["inputs"])
    if call["task"] == "check":
        return check(call, function, values)
    outputs = call["outputs"]
    result = function(**chosen(function, values))
    results = by_name(result, [name for name, _ in outputs])
    known = {name: entry for name, entry in outputs}
    for name, entry in outputs:
        known[name + ".scale"] = dict(entry, file=entry["file"] + ".scale")
    for name, value in results.items():
        if name not in known:
            sys.exit("`%s` was returned, but there is no such tensor to give; expected %s" % (name, ", ".join(sorted(known))))
        write(name, value, known[name])


main()
