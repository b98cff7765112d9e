"""Makes the inputs of one trial with a function of PyTorch for kforge, on the processor. Run as `python driver.py CALL`; CALL is a JSON file, all other files lie
beside it. kforge puts this file behind `torch_processor.py`.

For people who write such functions:

* `def inputs(axes_and_scalars, device): return {"x": ...}` gets a dict of the operator's dims, derived ones included, and params by name, and the processor as
  `device`. It returns a dict of tensors by name, in the declared shapes; kforge draws the rest. A function for an operator with one input may return its
  tensor, and with several a tuple of all of them in declared order.
* PyTorch's, Python's and numpy's generators of random numbers are seeded, for each trial with another number. They are the only source of chance.
* Tensors have the types that PyTorch gives them: floats are float32 unless something else is stated. What asks for a GPU gets the processor.
* Such a file may import what a reference in PyTorch may.
"""

import random
import traceback
import warnings


def write(name, value, entry):
    value = torch.as_tensor(value).detach()
    if list(value.shape) != list(entry["shape"]):
        sys.exit("`%s` has the shape %s, expected %s" % (name, list(value.shape), entry["shape"]))
    if value.is_complex():
        sys.exit("`%s` is complex" % name)
    if entry["kind"] == "int64" and value.is_floating_point() and not torch.equal(value, value.trunc()):
        sys.exit("`%s` holds integers, but fractions were given for it" % name)
    value = value.to(getattr(torch, entry["kind"])).contiguous().reshape(-1)
    if value.numel() == 0:
        return open(entry["file"], "wb").close()
    file = torch.from_file(entry["file"], shared=True, size=value.numel(), dtype=value.dtype)
    file.copy_(value)


def seeded(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)


def main():
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    # Fills what is allocated without values, so that it is the same each time. What PyTorch has no deterministic form of is deterministic with one thread.
    torch.set_deterministic_debug_mode("warn")
    warnings.simplefilter("ignore")
    without_devices()
    arguments = {name: number(value) for name, value in call["arguments"].items()}
    seeded(call["seed"])
    with AsProcessor(), torch.no_grad():
        function = getattr(load(call["root"], call["module"], {}), call["function"], None)
        if not callable(function):
            sys.exit("`%s` has no function `%s`" % (call["module"], call["function"]))
        seeded(call["seed"])
        torch.set_default_dtype(torch.float32)
        result = function(dict(arguments), torch.device("cpu"))
    known = dict(call["outputs"])
    results = by_name(result, list(known), list(known))
    for name, value in results.items():
        if name in known:
            write(name, value, known[name])
        elif name not in arguments:
            fail("returned `%s`, which is no input of the operator; expected %s" % (name, listed(known)))


def own_frames(trace):
    """The traceback from where code of the package begins."""
    root = os.path.realpath(call["root"]) + os.sep
    start = trace
    while start is not None and not os.path.realpath(start.tb_frame.f_code.co_filename).startswith(root):
        start = start.tb_next
    return start if start is not None else trace


try:
    main()
except Exception as error:
    traceback.print_exception(type(error), error, own_frames(error.__traceback__))
    sys.exit(1)
