"""Runs a kernel in Triton with Triton's interpreter. kforge runs it with Python in a confined process, in a folder with the programs beside this one.

    python -I -S -B driver.py

Reads one line of JSON from its standard input (`run.rs`), and reports as a runner does, a line of JSON each, on what is its standard output when it starts.
`site` in its folder holds numpy.
"""

import json
import os
import random
import signal
import sys
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__))
# The status of a runner that could not run the candidate, by no fault of the candidate.
REFUSED = 70
# That of a program of kforge's own that failed: it is not remembered.
PANICKED = 101
# The most characters of printed text that are kept.
MOST_TEXT = 64 * 1024
VERSIONS = [(3, minor) for minor in range(5, 10)]


class Reports:
    def __init__(self):
        # From here on, what prints writes to standard error.
        self.file = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)

    def send(self, report):
        self.file.write(json.dumps(report).encode() + b"\n")

    def not_emulated(self, what):
        self.send({"not-emulated": {"cause": {"construct": what}, "what": what}})


class Printed:
    """What the kernel prints."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text[: MOST_TEXT - len(self.text)]

    def flush(self):
        pass


class Function:
    """A function of the source with its parameters and constants, ready to be called."""

    def __init__(self, params, constants, call):
        self.params, self.constants, self.call = params, constants, call


class Kernel:
    """The functions that launches name."""

    def __init__(self, job, tl, interpreter):
        self.tl, self.interpreter = tl, interpreter
        source = os.path.join(HERE, "source")
        self.places = {os.path.join(source, name): at for at, name in enumerate(sorted(job["files"]))}
        for name, text in job["files"].items():
            path = os.path.join(source, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.job = dict(job, tree=source)

    def read(self):
        """Runs the source, and finds its functions."""
        from kforge_jitted import Refused, constant, function, load

        module = load(self.job, lambda error, _: self.place(error))
        self.functions = {}
        for entry, stated in self.job["functions"].items():
            found = function(module, dict(self.job, **stated), self.interpreter.InterpretedFunction)
            names, params = list(found.arg_names), stated["params"]
            known = [param["name"] for param in params]
            if names != known:
                raise Refused(f"`{stated['function']}` has the parameters {', '.join(names)}, and kforge read {', '.join(known)}")
            constants = {p["name"]: constant(p["value"]) for p in params if "value" in p}
            self.functions[entry] = Function(params, constants, found.rewrite())

    def mark(self, file, line):
        return "@{%x}" % ((self.places[file] << 20) | line)

    def frames(self, error):
        """Files and lines at which an error was raised, the innermost last."""
        trace, frames = error.__traceback__, []
        while trace is not None:
            frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno, trace.tb_frame.f_code.co_name))
            trace = trace.tb_next
        return frames

    def place(self, error):
        """The innermost place of the source at which an error was raised, as a mark."""
        of = [(file, line) for file, line, _ in self.frames(error) if file in self.places]
        return self.mark(*of[-1]) if of else "an unknown line"

    def pair(self, error):
        of = [(file, line) for file, line, _ in self.frames(error) if file in self.places]
        return ["@pc", (self.places[of[-1][0]] << 20) | of[-1][1]] if of else None

    def arguments(self, function, args, memory):
        """The arguments of a launch as tensors, as the interpreter's own launcher makes them."""
        import numpy as np

        out, given = dict(function.constants), iter(args)
        for param in function.params:
            if "type" not in param:
                continue
            arg = next(given)
            if "descriptor" in arg:
                out[param["name"]] = self.descriptor(param["type"], arg["descriptor"], memory)
                continue
            kind = of_name(self.tl, param["type"])
            if "pointer" in arg:
                out[param["name"]] = self.pointer(kind, arg["pointer"]["buffer"], arg["pointer"]["offset"], memory)
                continue
            value = np.frombuffer(bytes.fromhex(arg["scalar"]), dtype=self.interpreter._get_np_dtype(kind)).copy()
            out[param["name"]] = self.tl.tensor(self.interpreter.TensorHandle(value, kind), kind)
        return out

    def pointer(self, kind, buffer, offset, memory):
        import numpy as np
        from kforge_memory import BUFFER

        value = np.array([memory.by_name[buffer].start + offset], dtype=np.uint64)
        return self.tl.tensor(self.interpreter.TensorHandle(value, kind, {BUFFER: buffer}), kind)

    def descriptor(self, name, arg, memory):
        """A descriptor, as the interpreter's own launcher makes it of one of the host. `name` is as `tensordesc<fp16[64, 32]>`."""
        element = of_name(self.tl, name[name.index("<") + 1 : name.index("[")])
        numbers = lambda values: [self.interpreter._implicit_cvt(value) for value in values]
        return self.interpreter.interpreter_semantic.make_tensor_descriptor(
            base=self.pointer(self.tl.pointer_type(element), arg["buffer"], 0, memory),
            shape=numbers(arg["shape"]),
            strides=numbers(arg["strides"][:-1]) + [self.tl.constexpr(1)],
            block_shape=[self.tl.constexpr(extent) for extent in arg["block"]],
            padding_option="nan" if arg["nan"] else "zero",
        )

    def launch(self, entry, grid, args, order, memory):
        builder = self.interpreter.interpreter_builder
        memory.launch(tuple(grid))
        builder.set_grid_dim(*grid)
        function = self.functions[entry]
        args = self.arguments(function, args, memory)
        programs = list(range(grid[0] * grid[1] * grid[2]))
        if order == "reversed":
            programs.reverse()
        elif isinstance(order, dict):
            random.Random(order["random"]).shuffle(programs)
        for program in programs:
            memory.begin(program)
            builder.set_grid_idx(*memory.index_of(program))
            function.call(**args)


def of_name(tl, name):
    """A type by its name in Triton: `*fp16`, `i32`."""
    if name.startswith("*"):
        return tl.pointer_type(of_name(tl, name[1:]))
    named = {"i1": "int1", "u1": "int1", "fp16": "fp16", "fp32": "fp32", "fp64": "fp64", "bf16": "bf16"}
    if name in named or name.startswith("fp8"):
        return tl.dtype(named.get(name, name))
    return tl.dtype({"i": "int", "u": "uint"}[name[0]] + name[1:])


def explained(kernel, error):
    """An error that the kernel raised: a finding, or None and what is not emulated."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__
    frames, name = kernel.frames(error), type(error).__name__
    text = " ".join(str(error).split()) or name
    of_triton = [(file, function) for file, _, function in frames if os.sep + "triton" + os.sep in file and file not in kernel.places]
    file, function = of_triton[-1] if of_triton else ("", "")
    own = frames and frames[-1][0] in kernel.places
    at = kernel.place(error)
    if isinstance(error, NotImplementedError):
        return None, f"{text} at {at}"
    if isinstance(error, AssertionError) and function in ("create_assert", "create_assume", "_new_static_assert"):
        said = f": {text}" if str(error) else ""
        return finding("assertion", f"assertion failed{said}, at {at}", kernel.pair(error)), None
    if isinstance(error, AssertionError) and function == "materialize_pointers":
        return finding("raised", f"a tensor descriptor is wrong: {text}, at {at}", kernel.pair(error)), None
    if not own and file == kernel.interpreter.__file__:
        # The interpreter itself failed, which may be its own lack.
        return None, f"{name} in Triton's interpreter ({text}) at {at}"
    return finding("raised", f"{name}: {text}, at {at}", kernel.pair(error)), None


def finding(kind, message, line=None):
    found = {"kind": kind, "message": message, "count": 1}
    return dict(found, line=line) if line else found


def run(kernel, at, asked, launches, reports):
    """Runs once. Returns whether another run is worth it."""
    import kforge_memory
    import numpy as np

    memory = kforge_memory.Memory(asked["buffers"], kernel.places)
    kernel.interpreter._interpreter.memory = memory
    not_emulated, failure, whole = None, None, False
    try:
        with np.errstate(all="ignore"):
            for launch in launches:
                if "memset" in launch:
                    memory.by_name[launch["memset"]["buffer"]].bytes[:] = launch["memset"]["value"]
                else:
                    of = launch["kernel"]
                    kernel.launch(of["entry"], of["grid"], of["args"], asked["order"], memory)
        whole = True
    except kforge_memory.Ended:
        pass
    except kforge_memory.NotEmulated as error:
        not_emulated = f"{error} at {kernel.place(error)}"
    except kforge_memory.Wrong as error:
        failure = finding("trap", f"{error}, at {kernel.place(error)}", kernel.pair(error))
    except MemoryError:
        failure = finding("limit-exceeded", "the kernel needs more memory than it may take")
    except Exception as error:
        failure, not_emulated = explained(kernel, error)
    findings = list(memory.findings.values()) + ([failure] if failure else [])
    memory.close()
    for found in findings:
        reports.send({"finding": {"trial": at, "finding": found}})
    if not_emulated:
        reports.not_emulated(not_emulated)
    if whole:
        reports.send({"trial-done": {"trial": at}})
    return whole and not findings


def imported(triton_folder):
    """Triton, with everything of its interpreter replaced that is not right."""
    sys.path[:] = [path for path in sys.path if path != HERE] + [HERE, os.path.join(HERE, "site"), triton_folder]
    import triton
    import triton.language as tl
    import triton.runtime.interpreter as interpreter

    import kforge_memory
    import kforge_narrow
    from kforge_jitted import InertFinder

    sys.path.remove(HERE)
    version = tuple(int(part) for part in triton.__version__.split("+")[0].split(".")[:2])
    if version not in VERSIONS:
        raise ImportError(f"Triton {triton.__version__} is installed, and kforge knows the interpreters of 3.5 to 3.9")
    interpreter._interpreter = kforge_memory.Watched(interpreter._interpreter, None)
    kforge_narrow.mend()
    # Once for all functions. The interpreter does it again at each call of each function, and takes it back behind it.
    interpreter._patch_lang(types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core}))
    # Some releases convert arrays of one element, which later numpys refuse.
    tl.tensor.__index__ = lambda self: int(self.handle.data.reshape(-1)[0])
    interpreter._patch_lang = lambda fn: types.SimpleNamespace(restore=lambda: None)
    sys.meta_path.insert(0, InertFinder())
    return tl, interpreter


def main():
    reports = Reports()
    asked = json.loads(sys.stdin.readline())
    reports.send({"confined": {"missing": []}})
    tl, interpreter = imported(asked["triton"])
    from kforge_jitted import Refused

    kernel = Kernel(asked["kernel"], tl, interpreter)
    # From here on, code of the source runs.
    reports.send("loading")
    printed = sys.stdout = Printed()
    signal.setitimer(signal.ITIMER_REAL, asked["limit"])
    try:
        kernel.read()
    except Refused as error:
        line = kernel.pair(error.__cause__) if error.__cause__ else None
        reports.send({"finding": {"trial": 0, "finding": finding("raised", str(error), line)}})
        return
    for at, one in enumerate(asked["runs"]):
        signal.setitimer(signal.ITIMER_REAL, asked["limit"])
        more = run(kernel, at, one, asked["launches"], reports)
        # Each run prints the same; that of the first is shown.
        if printed.text and at == 0:
            reports.send({"printed": {"text": printed.text}})
        if not more:
            return


if __name__ == "__main__":
    try:
        main()
    except ImportError as error:
        sys.stderr.write(f"Triton's interpreter cannot be started: {error}\n")
        sys.exit(REFUSED)
    except Exception:
        # Not of the kernel: its errors are caught where it runs.
        traceback.print_exc()
        sys.exit(PANICKED)
