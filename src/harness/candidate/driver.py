"""Runs one kernel in PyTorch for kforge. Run as `python driver.py CALL`; CALL is a JSON file. Each line on standard input asks for something, and gets one line
as its answer.

| asked | does |
|---|---|
| import | imports PyTorch |
| device | starts the device, if there is one |
| begin | maps the judge's memory, imports the kernel, constructs its module, and binds it to that memory, or to memory of the device |
| call | calls it once, waits for the device, checks the form of what it returns, and copies that to the judge's memory |
| echo | does what a timed call does besides the call itself |
| seal | gives up what starts programs, processes and threads and what creates files |
| record | starts what records the kernels of the device that calls launch |
| measure | takes samples of device time of a baseline, and says the versions of what runs |
| timed | calls it once when the process that times it hands over, and copies what it returns; only then the form of that is checked |

For people who write kernels in PyTorch: the source has a module or a function with the signature of the reference. It gets the operator's tensors in their own
types, params and dims by name, without gradients. It returns one tensor for each output in declared order, or a dict by name: plain tensors of the declared type,
shape and layout, in memory of their own. What it returns belongs to the caller, who may write to it. Inputs must not change; inouts are changed in place. A kernel
may import files of its package that lie beside it and below, Python's own library, torch and numpy.
"""

import json
import mmap
import platform
import struct
import traceback
import types

with open(sys.argv[1]) as described:
    call = json.load(described)

# Whatever the kernel prints goes to standard error, so that only this file answers.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

# The most characters of printed text that are kept.
MOST_TEXT = 64 * 1024
# The number of the call `seccomp`.
SECCOMP = {"x86_64": 317, "aarch64": 277}.get(platform.machine(), -1)
# The byte with which results are overwritten: a large number in every type of floats.
SPOIL = 0x7B

DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
}  # fmt: skip


class Missing(Exception):
    """What this machine lacks."""


class Printed:
    """What the kernel prints."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text[: max(0, MOST_TEXT - len(self.text))]

    def flush(self):
        pass

    def isatty(self):
        return False


class Original:
    """Functions as they were before code of the kernel ran."""

    def __init__(self):
        tensor = torch.Tensor
        self.tensor, self.parameter = tensor, torch.nn.Parameter
        self.copy, self.strided, self.detach, self.fill = tensor.copy_, tensor.as_strided, tensor.detach, tensor.fill_
        self.eq, self.all = torch.eq, torch.all
        self.address, self.storage, self.bytes = tensor.data_ptr, tensor.untyped_storage, tensor.element_size
        self.train, self.no_grad, self.view = torch.nn.Module.train, torch.no_grad, tensor.view
        self.contiguous, self.reshape, self.type, self.len = tensor.contiguous, tensor.reshape, type, len


def dtype_of(entry):
    name = DTYPES.get(entry["dtype"])
    found = getattr(torch, name, None) if name else None
    if found is None:
        raise Missing("PyTorch %s has no type for %s, which `%s` has" % (torch.__version__, entry["dtype"], entry["name"]))
    return found


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
    return owner._parameters[leaf] if leaf in owner._parameters else owner._buffers[leaf]


def needed(module, function, values):
    """The names of tensors that a call or a module's state can use. A kernel may do without the others."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return set(values)
    used = {call["names"].get(p.name, p.name) for p in parameters}
    if module is not None:
        own = [name for name, _ in module.named_parameters()] + [name for name, _ in module.named_buffers()]
        used |= {call["state"].get(name, name.replace(".", "_")) for name in own}
    return used


class Kernel:
    """The kernel from its import to its last call."""

    def __init__(self, watch, original, device, memory, page):
        self.watch, self.original, self.device, self.memory, self.page = watch, original, device, memory, page
        self.module = self.function = self.bound = None
        # The addresses of results that were overwritten.
        self.spoilt = set()

    def begin(self):
        torch.manual_seed(0)
        # What it makes before its first call lies where it computes.
        with torch.device(call["device"]) if self.apart() else contextlib.nullcontext():
            what = module_of(self.watch)
            with torch.no_grad():
                self.constructed(what)
        self.bind()

    @staticmethod
    def apart():
        """Whether tensors lie elsewhere than where PyTorch makes them by itself."""
        return call["apart"] or call["device"] != "cpu"

    def constructed(self, what):
        is_class = isinstance(what, type) and issubclass(what, torch.nn.Module)
        if is_class:
            what = what(*[number(value) for value in call["init"]], **{name: number(value) for name, value in call["keywords"].items()})
        self.module = what if isinstance(what, torch.nn.Module) else None
        self.function = what if self.module is None else self.module.forward
        if not callable(self.function):
            fail("is neither a module nor a function")

    def bind(self):
        values = {name: number(value) for name, value in call["arguments"].items()}
        given = {entry["name"]: entry for entry in call["tensors"] if entry["given"]}
        use = needed(self.module, self.function, {**values, **given})
        # A function is called as the reference's module is, without its constructor.
        if self.module is None:
            call["state"], call["init"], call["keywords"] = {}, [], {}
        own = set() if self.module is None else set(dict(self.module.named_parameters())) | set(dict(self.module.named_buffers()))
        if not call["stated"]:
            call["state"] = {name: tensor for name, tensor in call["state"].items() if name in own}
        self.bound = Bound(self.module, self.function, {**values, **given}, {name: entry for name, entry in given.items() if name in use})
        tensors = self.memory.tensors
        if self.module is not None:
            same = dict(self.module.named_parameters(remove_duplicate=False))
            for name, tensor in self.bound.state.items():
                own = same.get(name)
                for alias in [other for other, value in same.items() if own is not None and value is own] or [name]:
                    put(self.module, alias, tensors[tensor])
            for name in self.bound.kept if self.apart() else []:
                put(self.module, name, held(self.module, name).detach().to(call["device"]))
            for parameter in self.module.parameters():
                parameter.requires_grad_(False)
        known = {**values, **tensors}
        arguments, positional = self.bound.arguments, self.bound.positional
        self.args = [known[arguments[name]] for name in arguments if name in positional]
        self.kwargs = {name: known[own] for name, own in arguments.items() if name not in positional}
        self.inouts = [name for name in call["inouts"]]
        self.wrapped = self.baseline() if call["how"] in ("compile", "cudagraph") else None

    def baseline(self):
        """What is called of a baseline that PyTorch compiles, or that is captured in a CUDA graph at its first call."""
        plain = self.module if self.module is not None else self.function
        if call["how"] == "compile":
            return torch.compile(plain, mode=None if call["mode"] == "default" else call["mode"])
        captured = []

        def graph(*args, **kwargs):
            if not captured:
                beside = torch.cuda.Stream()
                beside.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(beside):
                    for _ in range(3):
                        plain(*args, **kwargs)
                torch.cuda.current_stream().wait_stream(beside)
                made = torch.cuda.CUDAGraph()
                with torch.cuda.graph(made):
                    result = plain(*args, **kwargs)
                captured.extend([made, result])
            captured[0].replay()
            return captured[1]

        return graph

    def ready(self, train):
        """Prepares a call."""
        original = self.original
        if self.module is not None:
            original.train(self.module, train)
            for name, tensor in self.bound.state.items():
                # What an earlier call assigned instead of changing it in place.
                if tensor in self.inouts and original.address(held(self.module, name)) != original.address(self.memory.tensors[tensor]):
                    put(self.module, name, self.memory.tensors[tensor])
        if self.wrapped is not None:
            return self.wrapped
        return self.module if self.module is not None else self.function

    def call(self, train):
        what = self.ready(train)
        with self.original.no_grad():
            self.memory.lay(self.device, self.original)
            result = what(*self.args, **self.kwargs)
            self.watch.phase = None
            self.take(result)
            self.memory.give(self.device, self.original)

    def timed(self, number, train, recorder=None):
        """One call whose time the judge takes, from the word that lets it begin to the word that ends it."""
        what = self.ready(train)
        self.device.begin()
        with self.original.no_grad():
            self.page.wait(number)
            if recorder is not None:
                recorder.begin()
            result = what(*self.args, **self.kwargs)
            self.watch.phase = None
            if recorder is not None:
                self.device.wait()
                recorder.end()
            results, outputs = self.results(result)
            self.give(results, outputs)
            self.device.wait()
            self.page.end(number)
            before = len(self.watch.found)
            self.check(results, outputs)
            self.unkept(results)
            if len(self.watch.found) == before:
                for name, value in results.items():
                    if self.original.address(value) != self.original.address(self.memory.tensors[name]):
                        self.spoil(self.original.detach(value))
        # Whatever the kernel left there is gone before the next call.
        self.device.wait()

    def measure(self, train, count):
        """Samples of device time of a baseline, which are believed as its versions are: see `samples.py`."""
        what = self.ready(train)
        self.device.begin()
        samples = DeviceSamples() if call["device"] == "cuda" else HostSamples()
        kept = {name: self.memory.tensors[name].clone() for name in self.inouts}

        def restore():
            for name, before in kept.items():
                self.original.copy(self.memory.tensors[name], before)

        with self.original.no_grad():
            taken = [samples.sample(True, restore, lambda: what(*self.args, **self.kwargs)) for _ in range(count)]
        self.device.wait()
        return taken

    def give(self, results, outputs):
        """Copies results to where the process that times calls takes them from."""
        original = self.original
        for name, value in results.items():
            target = self.memory.tensors.get(name) if name in outputs and isinstance(value, original.tensor) else None
            if target is not None and original.address(value) != original.address(target):
                original.copy(target, original.detach(value))

    def results(self, result):
        """What a call gives, by the names of tensors, and the names of those that the operator writes."""
        original, memory = self.original, self.memory
        outputs = [name for name, _ in call["outputs"]]
        changed = {}
        if self.module is not None:
            for name, tensor in self.bound.state.items():
                if tensor in self.inouts:
                    now = held(self.module, name)
                    if original.address(now) != original.address(memory.tensors[tensor]):
                        changed[tensor] = now.data if isinstance(now, original.parameter) else now
        inouts = [name for name in outputs if name in self.inouts]
        results = named_results(result, [name for name in outputs if name not in inouts], outputs)
        results.update((name, value) for name, value in changed.items() if name not in results)
        return results, outputs

    def check(self, results, outputs):
        """Finds results that do not have the declared form."""
        spans = []
        for name, value in results.items():
            if name not in outputs:
                self.watch.find("wrong-form", "returned `%s`, which the operator does not write; expected %s" % (name, listed(outputs)))
                continue
            try:
                wrong = self.form(name, value, spans)
                if wrong:
                    self.watch.find("wrong-form", wrong)
            except WrongResult as error:
                self.watch.find(error.kind, str(error))

    def unkept(self, results):
        """Finds results that an earlier call returned. They were overwritten since."""
        for name, value in results.items():
            if self.original.type(value) in (self.original.tensor, self.original.parameter) and self.is_spoilt(value):
                self.watch.find("keeps-state", "returned `%s` in memory that an earlier call returned, and did not write it" % name)

    def take(self, result):
        """Copies results to the judge's memory, or to that of the device, if all have the declared form."""
        original, memory = self.original, self.memory
        results, outputs = self.results(result)
        before = len(self.watch.found)
        self.check(results, outputs)
        if len(self.watch.found) > before:
            return
        written = {name: results.get(name, memory.tensors[name]) for name in outputs}
        memory.note(written, original)
        for what in self.device.left():
            self.watch.find("forbidden", what)
        self.device.wait()
        for name, value in written.items():
            if memory.changed(name, value, original):
                self.watch.find("forbidden", "returned `%s` before it was written: work on another stream goes on" % name)
            elif name in results and self.is_spoilt(value):
                self.watch.find("keeps-state", "returned `%s` in memory that an earlier call returned, and did not write it" % name)
        if len(self.watch.found) > before:
            return
        for name, value in results.items():
            target = memory.tensors[name]
            if original.address(value) == original.address(target):
                continue
            value = original.detach(value)
            original.copy(target, value)
            self.spoil(value)

    def form(self, name, value, spans):
        """What is wrong with the form of a result, whatever its values are. Raises what is wrong with its type or shape."""
        original, entry = self.original, self.memory.entries[name]
        kind = original.type(value)
        if kind is not original.tensor and kind is not original.parameter:
            of = "a subclass of torch.Tensor" if issubclass(kind, original.tensor) else "no tensor"
            return "returned a `%s` for `%s`, which is %s" % (kind.__name__, name, of)
        if value.device.type != call["device"]:
            return "returned `%s` on the device `%s`, expected `%s`" % (name, value.device, call["device"])
        if value.layout is not torch.strided or value.is_quantized:
            return "returned `%s` in the layout %s, expected a dense tensor" % (name, str(value.layout).replace("torch.", ""))
        if value.is_neg() or value.is_conj():
            return "returned `%s` as a view that is computed when it is read" % name
        want = dtype_of(entry)
        if value.dtype != want:
            raise WrongResult("wrong-type", "returned `%s` as %s, expected %s" % (name, word(value.dtype), word(want)))
        shape, strides = tuple(value.shape), tuple(entry["shape"])
        if shape != strides and not (value.numel() == 1 and strides in ((), (1,)) and shape in ((), (1,))):
            raise WrongResult("wrong-shape", "returned `%s` in the shape %s, expected %s" % (name, list(value.shape), entry["shape"]))
        if shape == strides and value.numel() > 0:
            apart = [at for at, extent in enumerate(shape) if extent > 1 and value.stride(at) != entry["strides"][at]]
            if apart:
                return "returned `%s` with the strides %s, expected %s" % (name, list(value.stride()), entry["strides"])
        if value.numel() == 0:
            return None
        start = original.address(value)
        span = 1 + sum((extent - 1) * stride for extent, stride in zip(value.shape, value.stride()))
        end = start + span * original.bytes(value)
        storage = original.storage(value)
        if start < storage.data_ptr() or end > storage.data_ptr() + storage.nbytes():
            return "returned `%s` with less memory than its elements need" % name
        for other, tensor in self.memory.tensors.items():
            first = original.address(tensor)
            if start < first + self.memory.entries[other]["bytes"] and first < end and not (other == name and name in self.inouts):
                return "returned `%s` in the memory of `%s`" % (name, other)
        for other, first, last in spans:
            if start < last and first < end:
                return "returned `%s` in the memory of `%s`" % (name, other)
        spans.append((name, start, end))
        return None

    def is_spoilt(self, value):
        """Whether a result is what `spoil` left of an earlier one."""
        if self.original.address(value) not in self.spoilt or value.numel() == 0 or not value.is_contiguous():
            return False
        flat = self.original.view(self.original.strided(value, (value.numel(),), (1,)), torch.uint8)
        return bool(self.original.all(self.original.eq(flat, SPOIL)))

    def spoil(self, value):
        """Overwrites a result: it belongs to the caller, and whoever keeps it for another call keeps nothing."""
        if value.numel() == 0:
            return
        flat = self.original.strided(value, (value.numel(),), (1,)) if value.is_contiguous() else None
        if flat is not None:
            self.original.fill(self.original.view(flat, torch.uint8), SPOIL if value.dtype != torch.bool else 0)
            if value.dtype != torch.bool:
                self.spoilt.add(self.original.address(value))
            return
        self.original.fill(value, float("nan") if value.is_floating_point() else 1)


def word(dtype):
    return str(dtype).replace("torch.", "")


def named_results(result, outputs, written):
    if isinstance(result, dict):
        return dict(result)
    results = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    names = written if len(results) == len(written) != len(outputs) else outputs
    if len(results) != len(names):
        raise WrongCount("returned %d results, expected %d: %s" % (len(results), len(names), ", ".join(names) or "none, because every written tensor is an inout"))
    return dict(zip(names, results))


class WrongCount(Exception):
    """Not one result for each output."""


class WrongResult(Exception):
    """A result that is wrong in a way which has a kind of finding of its own."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def module_of(watch):
    """What is called, from the kernel's source."""
    path = os.path.join(call["root"], call["module"])
    sys.path[:0] = [os.path.dirname(path), call["root"]]
    with open(path, "rb") as source:
        tree = ast.parse(source.read(), filename=path)
    constants = {name: number(value) for name, value in call["constants"].items()}
    maybe = {name: number(value) for name, value in call["of_reference"].items() if name not in constants}
    body, missing = [], set(constants)
    for statement in tree.body:
        body.append(statement)
        for name in sorted(bound_names(statement) & (set(constants) | set(maybe))):
            missing.discard(name)
            value = constants[name] if name in constants else maybe[name]
            again = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=literal(value))
            body.append(ast.fix_missing_locations(ast.copy_location(again, statement)))
    if missing:
        sys.exit("`%s` sets no constant %s at its top, which is a tunable or is in `call.constants`" % (call["module"], listed(missing)))
    tree.body = body
    Instrumented(watch.caught).visit(tree)
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    setattr(module, watch.caught, watch.handler())
    sys.modules[spec.name] = module
    exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)
    found = getattr(module, call["function"], None)
    if found is None:
        sys.exit("`%s` has no `%s`" % (call["module"], call["function"]))
    return found


class Served:
    """Answers what is asked."""

    def __init__(self):
        self.kernel = self.watch = self.original = self.memory = self.page = self.echoes = self.recorder = None
        self.device = OnProcessor()
        self.libc = ctypes.CDLL(None, use_errno=True)

    def do_import(self):
        import builtins
        import time

        for library in call["stubs"]:
            # Stand for libraries of CUDA that this torch is linked with.
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        # The folder of numpy can hold another PyTorch, and comes after.
        sys.path.append(call["torch"])
        if call["numpy"] is not None:
            sys.path.append(call["numpy"])
        global torch
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                import torch
            except ImportError as error:
                raise Missing("PyTorch cannot be imported: %s" % error)
        torch.set_num_threads(1)
        torch.set_num_interop_threads(1)
        self.original = Original()
        libraries = [call["torch"]] + call["library"]
        let_in = [os.path.join(call["torch"], name) for name in call["packages"]]
        if call["numpy"] is not None:
            let_in += [os.path.join(call["numpy"], name) for name in ("numpy", "numpy.libs")]
            libraries.append(call["numpy"])
        libraries = [os.path.realpath(folder) for folder in libraries] + libraries
        self.watch = watch = Watch(call["root"], call["sources"], libraries, os.path.realpath(os.getcwd()), call["hidden"])
        sys.meta_path.insert(0, KnownToKernel(watch, call["root"], call["library"] + let_in, call["left_out"], "torch nor of numpy"))
        guarded_suppress(watch)
        guarded_threads(watch)
        if not call["compiles"]:
            guarded_compiler(watch)
        if call["device"] == "cpu":
            guarded_devices(watch)
        spaces = [("builtins", builtins), ("time", time), ("os", os), ("gc", __import__("gc")), ("math", __import__("math")), ("torch", torch)]
        spaces += [("torch.Tensor", torch.Tensor), ("torch.nn.functional", torch.nn.functional), ("torch.nn.Module", torch.nn.Module)]
        spaces += [("torch.testing", torch.testing), ("torch.cuda", torch.cuda), ("torch.cuda.Event", torch.cuda.Event), ("torch.linalg", torch.linalg)]
        spaces += [("torch._C", torch._C), ("torch.cuda.Stream", torch.cuda.Stream)]
        spaces += [("torch.nn.Parameter", torch.nn.Parameter), ("torch._C.TensorBase", torch._C.TensorBase), ("torch.autograd", torch.autograd), ("threading", threading), ("_thread", _thread)]
        watch.snapshot(spaces)
        # Code of the kernel finds no driver under that name.
        self.own = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        own_sys.addaudithook(watch.hook)
        return {"done": {}}

    def do_device(self):
        if call["device"] == "cuda":
            self.device = OnCuda()
        return {"done": {}}

    def shared(self):
        """The memory, and the page if there is one; made once."""
        if self.memory is None:
            self.memory, self.page = Memory(), Page() if call["page"] is not None else None
        return self.memory, self.page

    def do_echo(self, asked):
        memory, page = self.shared()
        if self.echoes is None:
            names = [name for name, _ in call["outputs"] if name not in call["inouts"]]
            self.echoes = [(memory.tensors[name], torch.empty_like(memory.tensors[name])) for name in names]
        self.device.begin()
        page.wait(asked["number"])
        for target, value in self.echoes:
            self.original.copy(target, value)
        self.device.wait()
        page.end(asked["number"])
        return {"done": {}}

    def do_begin(self):
        self.echoes = None
        self.kernel = Kernel(self.watch, self.original, self.device, *self.shared())
        return self.watched("prepare", self.kernel.begin)

    def do_seal(self):
        """Installs a filter for all threads; the judge counts filters from outside."""
        if call["seal"] is not None:
            code = bytes.fromhex(call["seal"])
            kept = ctypes.create_string_buffer(code)
            program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(kept))
            # PR_SET_NO_NEW_PRIVS; then seccomp: SECCOMP_SET_MODE_FILTER for all threads (SECCOMP_FILTER_FLAG_TSYNC).
            one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
            refused = self.libc.prctl(38, one, none, none, none) or self.libc.syscall(ctypes.c_long(SECCOMP), one, one, program)
            if refused:
                raise Missing("the system refuses a filter for all threads of the kernel's process (error %d)" % (ctypes.get_errno() if refused < 0 else 0))
        return {"called": {"whole": True, "findings": [], "lacks": [], "printed": ""}}

    def do_record(self):
        if call["device"] != "cuda":
            raise Missing("a processor runs no kernels of a device")
        self.recorder = Recorder(self.device)
        return {"done": {}}

    def do_timed(self, asked):
        recorder = self.recorder if asked["recorded"] else None
        answer = self.watched("call", lambda: self.kernel.timed(asked["number"], asked["train"], recorder))
        if recorder is not None:
            answer["called"].update(recorder.taken())
        return answer

    def do_measure(self, asked):
        # What a baseline does in its own samples is not watched: whoever writes one is believed.
        taken = self.kernel.measure(asked["train"], asked["count"])
        versions = dict(versions_of(call["how"]), **(versions_on_cuda() if call["device"] == "cuda" else {}))
        return {"measured": {"versions": versions, "ns": [ns for ns, _ in taken], "waited": [bool(waited) for _, waited in taken]}}

    def do_call(self, asked):
        return self.watched("call", lambda: self.kernel.call(asked["train"]))

    def watched(self, phase, run):
        """Runs code of the kernel. The answer says what was found."""
        watch = self.watch
        printed = sys.stdout = Printed()
        watch.found, watch.lacks, whole = [], [], False
        watch.phase = phase
        try:
            run()
            whole = True
        except WrongCount as error:
            watch.phase = None
            watch.find("wrong-form", str(error))
        except MemoryError as error:
            watch.phase = None
            watch.find("limit-exceeded", "the kernel needs more memory than it may take")
        except SystemExit as error:
            watch.phase = None
            watch.find("launch-refused", str(error) if isinstance(error.code, str) else "the kernel ends its process")
        except BaseException as error:
            watch.phase = None
            # What was found before explains it.
            if not watch.found:
                self.raised(error)
        finally:
            watch.phase = None
            sys.stdout = sys.stderr
        watch.replaced()
        return {"called": {"whole": whole and not watch.found, "findings": watch.found, "lacks": watch.lacks, "printed": printed.text}}

    def raised(self, error):
        watch = self.watch
        place, line = watch.place(error)
        if isinstance(error, SyntaxError) and error.filename in watch.places:
            place = watch.mark(error.filename, error.lineno or 1)
        if watch.lack_of(error, place or "an unknown line"):
            return
        if type(error).__name__ == "OutOfMemoryError":
            return watch.lack("memory of the device, which it asks for at %s" % (place or "an unknown line"))
        text = " ".join(str(error).split())[:1000]
        at = ", at %s" % place if place else ""
        watch.find("raised", "%s%s%s" % (type(error).__name__, ": " + text if text else "", at), line)
        if place is None:
            traceback.print_exception(type(error), error, error.__traceback__)

    def answer(self, asked):
        (what, more), = asked.items()
        if what == "import":
            return self.do_import()
        if what == "device":
            return self.do_device()
        if what == "begin":
            return self.do_begin()
        if what == "call":
            return self.do_call(more)
        if what == "echo":
            return self.do_echo(more)
        if what == "record":
            return self.do_record()
        if what == "seal":
            return self.do_seal()
        if what == "timed":
            return self.do_timed(more)
        if what == "measure" and call["how"] is not None:
            return self.do_measure(more)
        return {"failed": {"message": "cannot do `%s`" % what}}


def serve():
    served = Served()
    for line in sys.stdin:
        try:
            answer = served.answer(json.loads(line))
        except Missing as error:
            answer = {"missing": {"why": str(error)}}
        except Exception as error:
            answer = {"failed": {"message": "".join(traceback.format_exception_only(type(error), error)).strip(), "log": traceback.format_exc()}}
        answers.write(json.dumps(answer) + "\n")


serve()
