"""Runs one baseline for kforge: a module or function of PyTorch, or a product of matrices, on a device. Run as `python driver.py CALL`; CALL is a JSON file, and
tensors lie in files beside it. Each line on standard input asks for something, and gets one line as its answer.

| asked | does |
|---|---|
| import | imports PyTorch |
| begin | starts the device, and constructs the module there |
| lay | copies these inputs to the device |
| prepare | compiles or captures, and calls until nothing is compiled any more |
| run | calls once, and writes the outputs |
| device | takes samples of device time |
| call | takes samples of host time, each until the device has done its work |

For people who write baselines: they are called as references in PyTorch are, but with tensors of the operator's own types, on the device, without gradients, and
with PyTorch's own settings. A baseline may import files of its package, Python's own library, torch, triton and numpy.
"""

import json
import time
import traceback

with open(sys.argv[1]) as described:
    call = json.load(described)

# Whatever the baseline prints goes to standard error, so that only this file answers.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

# Calls before samples count: the first ones compile, record graphs and fill pools of memory.
WARMING = 8

DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
}  # fmt: skip


def named():
    """The baseline, for messages of this file and of the one before it."""
    return "`%s`" % call["label"]


class Missing(Exception):
    """What this machine lacks."""


class WrongShape(Exception):
    """An output of another shape than the operator declares."""


class KnownToPackage(Known):
    """Lets files of the package import only what enters keys. What PyTorch imports for itself is its own."""

    def find_spec(self, name, path=None, target=None):
        return super().find_spec(name, path, target) if self.is_asked_by_package() else None

    def is_asked_by_package(self):
        frame = sys._getframe(2)
        own = os.path.realpath(__file__)
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith("<frozen") and "%simportlib%s" % (os.sep, os.sep) not in file and os.path.realpath(file) != own:
                return (os.path.realpath(file) + os.sep).startswith(self.package + os.sep)
            frame = frame.f_back
        return False


class OnCuda:
    """A GPU."""

    name = "cuda"

    def __init__(self):
        try:
            torch.cuda.init()
            torch.cuda.get_device_properties(0)
        except (RuntimeError, AssertionError) as error:
            raise Missing("PyTorch %s finds no GPU: %s" % (torch.__version__, str(error).strip().split("\n")[0]))
        self.samples = DeviceSamples()
        self.libraries()

    @staticmethod
    def libraries():
        """Tells Triton where the driver's library is, which it would ask a program for that a confined process cannot run."""
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if "/libcuda.so" in line}
        for path in sorted(paths):
            os.environ.setdefault("TRITON_LIBCUDA_PATH", os.path.dirname(path))

    def synchronize(self):
        torch.cuda.synchronize()

    def captured(self, restore, run):
        """A replay of the call, whose results stay where they are."""
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(3):
                restore()
                run()
        torch.cuda.current_stream().wait_stream(beside)
        restore()
        self.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = run()

        def replay():
            graph.replay()
            return result

        return replay

    def versions(self):
        return versions_on_cuda()


class OnProcessor:
    """The same without a GPU, for tests of kforge: no graphs."""

    name = "cpu"

    def __init__(self):
        self.samples = HostSamples()

    def synchronize(self):
        pass

    def captured(self, restore, run):
        raise Missing("CUDA graphs need a GPU")

    def versions(self):
        return {}


def put(module, name, tensor):
    """Makes a tensor the parameter or buffer of that name."""
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    if leaf in owner._parameters:
        owner._parameters[leaf] = torch.nn.Parameter(tensor, requires_grad=False)
    else:
        owner._buffers[leaf] = tensor


def held(module, name):
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    found = owner._parameters[leaf] if leaf in owner._parameters else owner._buffers[leaf]
    return found.data if isinstance(found, torch.nn.Parameter) else found


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


class Tensors:
    """The operator's tensors on the device: what is called, and what their contents were."""

    def __init__(self, device):
        self.device = device
        self.now, self.before = {}, {}
        self.known = {entry["name"]: entry for entry in call["tensors"]}

    def dtype(self, entry):
        name = DTYPES.get(entry["dtype"])
        found = getattr(torch, name, None) if name else None
        if found is None:
            fail("cannot have `%s`: PyTorch %s has no type for %s" % (entry["name"], torch.__version__, entry["dtype"]))
        return found

    def lay(self, files):
        """Copies contents. Addresses stay, so that graphs stay valid."""
        for name, file in files.items():
            entry = self.known[name]
            with open(file, "rb") as contents:
                data = bytearray(contents.read())
            whole = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
            whole = whole.to(self.device.name).view(self.dtype(entry))
            before = whole.as_strided(entry["shape"], entry["strides"])
            self.before[name] = before
            if name in self.now:
                self.now[name].copy_(before)
            else:
                self.now[name] = whole.clone().as_strided(entry["shape"], entry["strides"])

    def restore(self):
        for name in call["inouts"]:
            self.now[name].copy_(self.before[name])

    def changed(self):
        """The inputs that are no longer what they were."""
        inputs = [name for name in self.before if name not in call["inouts"]]
        return [name for name in inputs if not torch.equal(bits(self.now[name]), bits(self.before[name]))]

    def write(self, name, value, file):
        """Writes an output as the operator lays it out. Returns the type in which it was given, if that is another one."""
        entry = self.known[name]
        if not isinstance(value, torch.Tensor):
            value = torch.as_tensor(value)
        want, dtype = tuple(entry["shape"]), self.dtype(entry)
        if tuple(value.shape) != want and not (value.numel() == 1 and want in ((), (1,))):
            raise WrongShape("%s returned the shape %s for `%s`, expected %s" % (named(), list(value.shape), name, entry["shape"]))
        whole = torch.zeros(entry["bytes"], dtype=torch.uint8, device=value.device).view(dtype)
        whole.as_strided(entry["shape"], entry["strides"]).copy_(value.detach().reshape(want))
        if entry["bytes"] == 0:
            open(file, "wb").close()
        else:
            torch.from_file(file, shared=True, size=entry["bytes"], dtype=torch.uint8).copy_(whole.view(torch.uint8))
        return None if value.dtype == dtype else str(value.dtype).replace("torch.", "")


class Placed(Bound):
    """A module or function with its arguments and state on the device."""

    def place(self, tensors, values):
        self.tensors = tensors
        if self.module is not None:
            same = dict(self.module.named_parameters(remove_duplicate=False))
            for name, tensor in self.state.items():
                own = same.get(name)
                for alias in [other for other, value in same.items() if own is not None and value is own] or [name]:
                    put(self.module, alias, tensors.now[tensor])
            for name in self.kept:
                put(self.module, name, held(self.module, name).to(tensors.device.name))
        given = dict(values, **tensors.now)
        self.args = [given[self.arguments[name]] for name in self.arguments if name in self.positional]
        self.kwargs = {name: given[own] for name, own in self.arguments.items() if name not in self.positional}

    def restore(self):
        self.tensors.restore()
        for name, tensor in self.state.items():
            # What the call assigned instead of changing it in place.
            if tensor in call["inouts"] and held(self.module, name).data_ptr() != self.tensors.now[tensor].data_ptr():
                put(self.module, name, self.tensors.now[tensor])

    def inouts(self):
        found = {name: self.tensors.now[name] for name in call["inouts"]}
        found.update((tensor, held(self.module, name)) for name, tensor in self.state.items() if tensor in found)
        return found


class Baseline:
    """The baseline from its construction to its last sample."""

    def __init__(self):
        self.device = OnProcessor() if call["device"] == "cpu" else OnCuda()
        self.tensors = Tensors(self.device)
        self.bound, self.run = None, None
        torch.manual_seed(0)
        if call["product"] is not None:
            return
        constants = {name: number(value) for name, value in call["constants"].items()}
        with torch.device(self.device.name):
            what = getattr(load(call["root"], call["module"], constants), call["function"], None)
            if what is None:
                sys.exit("`%s` has no `%s`" % (call["module"], call["function"]))
            self.module = what if isinstance(what, torch.nn.Module) else None
            if isinstance(what, type) and issubclass(what, torch.nn.Module):
                init = [number(value) for value in call["init"]]
                self.module = what(*init, **{name: number(value) for name, value in call["keywords"].items()})
        if self.module is not None:
            self.module.train(call["train"])
        self.function = what if self.module is None else self.module.forward
        if not callable(self.function):
            fail("is neither a module nor a function")

    def restore(self):
        if self.bound is not None:
            self.bound.restore()

    def prepare(self):
        """Makes what is called of what is written."""
        if call["product"] is not None:
            operands = call["product"]["operands"]
            turned = {name: self.tensors.now[own].mT if name in call["product"]["transposed"] else self.tensors.now[own] for name, own in operands.items()}
            if call["device"] == "cuda":
                torch.backends.cuda.preferred_blas_library("cublas")
            self.run = lambda: torch.matmul(turned["a"], turned["b"])
        else:
            values = {name: number(value) for name, value in call["arguments"].items()}
            known = {name: entry for name, entry in self.tensors.known.items() if name in self.tensors.now}
            self.bound = Placed(self.module, self.function, dict(values, **self.tensors.now), known)
            self.bound.place(self.tensors, values)
            self.run = self.called()
        for _ in range(WARMING):
            self.restore()
            self.run()
        self.device.synchronize()
        if call["how"] == "cudagraph":
            self.run = self.device.captured(self.restore, self.run)
        return {"prepared": {"versions": dict(versions_of(call["how"]), **self.device.versions())}}

    def called(self):
        bound, what = self.bound, self.module if self.module is not None else self.function
        if call["how"] != "compile":
            return lambda: what(*bound.args, **bound.kwargs)
        compiled = torch.compile(what, mode=call["mode"] or "default", dynamic=False)

        def run():
            # Results of an earlier call may lie in a pool that this one uses again.
            torch.compiler.cudagraph_mark_step_begin()
            return compiled(*bound.args, **bound.kwargs)

        return run

    def outputs(self):
        self.restore()
        result = self.run()
        self.device.synchronize()
        changed = self.bound.inouts() if self.bound is not None else {}
        results = dict(changed)
        outputs = dict(call["outputs"])
        results.update(by_name(result, [name for name in outputs if name not in changed], list(outputs)))
        converted = {}
        for name, file in outputs.items():
            if name not in results:
                fail("gives no `%s`" % name)
            other = self.tensors.write(name, results[name], file)
            if other is not None:
                converted[name] = other
        return {"ran": {"converted": converted, "changed": self.tensors.changed()}}

    def device_times(self, count):
        samples = [self.device.samples.sample(call["cold"], self.restore, self.run) for _ in range(count)]
        return {"times": {"ns": [ns for ns, _ in samples], "waited": sum(waited for _, waited in samples)}}

    def call_times(self, count):
        taken = []
        for _ in range(count):
            self.restore()
            self.device.synchronize()
            began = time.perf_counter_ns()
            result = self.run()
            self.device.synchronize()
            taken.append(float(time.perf_counter_ns() - began))
            del result
        return {"times": {"ns": taken, "waited": 0}}


def imported():
    global torch
    let_in = [os.path.join(call["torch"], name) for name in call["packages"] + ["triton"]]
    # The folder of numpy can hold another PyTorch, and comes after.
    sys.path.append(call["torch"])
    if call["numpy"] is not None:
        let_in += [os.path.join(call["numpy"], name) for name in ("numpy", "numpy.libs")]
        sys.path.append(call["numpy"])
    for library in call["stubs"]:
        import ctypes

        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    sys.meta_path.insert(0, KnownToPackage(call["root"], call["library"] + let_in, call["left_out"], "torch, triton nor of numpy"))
    sys.path.extend(folder for folder in call["path"] if folder not in sys.path)
    try:
        import torch
    except ImportError as error:
        raise Missing("`%s` cannot import PyTorch: %s" % (sys.executable, error))
    if call["device"] != "cpu" and torch.version.cuda is None:
        raise Missing("PyTorch %s of `%s` is built without CUDA: install one with CUDA, or set another Python with the setting `toolchain.python`" % (torch.__version__, sys.executable))
    return {"done": {}}


def own_frames(trace):
    """The traceback from where code of the package begins."""
    root = os.path.realpath(call["root"]) + os.sep
    start = trace
    while start is not None and not os.path.realpath(start.tb_frame.f_code.co_filename).startswith(root):
        start = start.tb_next
    return start if start is not None else trace


def answer(baseline, line):
    (what, with_what), = json.loads(line).items()
    if what == "import":
        return baseline, imported()
    with torch.no_grad():
        if what == "begin":
            return Baseline(), {"done": {}}
        if what == "lay":
            baseline.tensors.lay(with_what["files"])
            return baseline, {"done": {}}
        if what == "prepare":
            return baseline, baseline.prepare()
        if what == "run":
            return baseline, baseline.outputs()
        if what == "device":
            return baseline, baseline.device_times(with_what["count"])
        if what == "call":
            return baseline, baseline.call_times(with_what["count"])
    raise ValueError("not a request: %s" % what)


def main():
    baseline = None
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            baseline, said = answer(baseline, line)
        except Missing as error:
            said = {"missing": {"why": str(error)}}
        except SystemExit as error:
            said = {"failed": {"message": str(error.code), "log": ""}}
        except WrongShape as error:
            said = {"failed": {"message": str(error), "log": "", "kind": "wrong-shape"}}
        except Exception as error:
            log = "".join(traceback.format_exception(type(error), error, own_frames(error.__traceback__)))
            first = (str(error).strip().split("\n") or [""])[0]
            message = "%s raised %s: %s" % (named(), type(error).__name__, first)
            is_full = type(error).__name__ == "OutOfMemoryError"
            said = {"missing": {"why": message}} if is_full else {"failed": {"message": message, "log": log}}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


main()
