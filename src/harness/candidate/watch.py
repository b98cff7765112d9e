# What code of a kernel in PyTorch does besides computing: files, processes, threads, frames of other code, replaced functions, swallowed errors. kforge puts this
# file between `torch_module.py` and `driver.py`.
#
# All of this lies in the process of the kernel, which could get around it. It names reasons; what decides is outside: the judge's values, its memory, its clock.

import ast
import contextlib
import importlib.abc
import importlib.machinery
import linecache
import secrets
import sys as own_sys
import threading
import _thread

# Of these, code may look something up and go on without it.
LOOKED_UP = (StopIteration, StopAsyncIteration, GeneratorExit, LookupError, AttributeError)
# The packages beside PyTorch that only a GPU needs. What imports one where it is not installed is not wrong.
OF_DEVICES = ("triton", "cuda", "cutlass", "tilelang", "cupy")
# Parts of Python's own library that look at the frame that calls them, for whoever calls them.
LOOKING = ("inspect.py", "traceback.py", "sys.py", "pdb.py", "bdb.py", "trace.py")

STARTS = ("os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system", "os.startfile", "subprocess.Popen", "pty.spawn")
CHANGES = ("os.remove", "os.rename", "os.truncate", "os.chmod", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "shutil.rmtree", "shutil.move")
FRAMES = ("sys._getframe", "sys._current_frames", "sys._current_exceptions", "gc.get_objects", "gc.get_referrers", "gc.get_referents")
TRACES = ("sys.settrace", "sys.setprofile", "sys.unraisablehook", "sys.excepthook", "sys.addaudithook")
HELD = ("tb_frame", "gi_frame", "cr_frame", "ag_frame", "f_back")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Refused(Exception):
    """What a kernel must not do, at the place where it tries."""


class NeedsDevice(RuntimeError):
    """It asks for a GPU, and there is none."""


def below(path, folders):
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


class Watch:
    """Whose code runs, in which phase, and what it did."""

    def __init__(self, root, sources, libraries, scratch, hidden):
        self.root, self.libraries, self.scratch, self.hidden = root, libraries, scratch, hidden
        self.places = {os.path.join(root, name): at for at, name in enumerate(sorted(sources))}
        self.phase, self.busy = None, threading.local()
        self.found, self.lacks = [], []
        self.caught = "kforge_caught_%s" % secrets.token_hex(8)
        self.spaces, self.names = [], {}

    def kind(self, file):
        """Whose a file of code is."""
        if file in self.places or below(file, [self.root]):
            return "own"
        if file == __file__ or file.startswith("<frozen"):
            return "other"
        if file.startswith("<"):
            return "made"
        return "library" if below(file, self.libraries) else "own"

    def by(self):
        """The place in the kernel's code that is responsible for what happens, and the names of the files of Python's own library in between. None if a library is."""
        frame, between = own_getframe(1), []
        while frame is not None:
            file = frame.f_code.co_filename
            if file == __file__:
                if frame.f_code.co_name in ("serve", "main", "module_of", "constructed"):
                    return None
            elif file.startswith("<frozen importlib"):
                between.append("importlib")
            elif not file.startswith("<"):
                if self.kind(file) == "own":
                    return self.mark(file, frame.f_lineno), between
                if not below(file, call["library"]) or any(step in file.split(os.sep) for step in call["left_out"]):
                    return None
                between.append(os.path.basename(file))
            frame = frame.f_back
        return None

    def mark(self, file, line):
        if file in self.places:
            return "@{%x}" % ((self.places[file] << 20) | line)
        return "%s:%d" % (os.path.basename(file), line)

    def place(self, error):
        """The innermost place in the kernel's code at which an error was raised, and its line."""
        trace, last = error.__traceback__, None
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file in self.places:
                last = (file, trace.tb_lineno)
            trace = trace.tb_next
        if last is None:
            return None, None
        return self.mark(*last), ["@pc", (self.places[last[0]] << 20) | last[1]]

    def find(self, kind, message, line=None):
        finding = {"kind": kind, "message": message, "count": 1}
        if line is not None:
            finding["line"] = line
        if finding not in self.found and len(self.found) < 32:
            self.found.append(finding)

    def refuse(self, message):
        self.find("forbidden", message)
        raise Refused(message.split(", at ")[0])

    def lack(self, what):
        if what not in self.lacks:
            self.lacks.append(what)

    def hook(self, event, args):
        if self.phase is None or event in ("exec", "compile", "marshal.loads", "builtins.id") or getattr(self.busy, "now", False):
            return
        with self.quiet():
            self.event(event, args)

    @contextlib.contextmanager
    def quiet(self):
        """What this file does is not watched."""
        before, self.busy.now = getattr(self.busy, "now", False), True
        try:
            yield
        finally:
            self.busy.now = before

    def event(self, event, args):
        if event == "object.__getattr__":
            if args[1] in HELD:
                self.frames(event, args[1])
        elif event == "object.__setattr__":
            if args[1] == "__code__":
                by = self.by()
                if by is not None:
                    self.refuse("replaces the code of `%s`, at %s" % (getattr(args[0], "__qualname__", "a function"), by[0]))
        elif event in FRAMES:
            self.frames(event, None)
        elif event == "open":
            self.open(args)
        elif event in STARTS:
            by = self.by() if self.phase == "call" else None
            if by is not None:
                self.refuse("starts a process (`%s`) in a call, at %s" % (event, by[0]))
        elif event in CHANGES:
            by = self.by()
            if by is not None and (self.phase == "call" or not self.is_scratch(args[0])):
                self.refuse("changes files (`%s` of `%s`), at %s" % (event, self.shown(args[0]), by[0]))
        elif event in TRACES:
            by = self.by()
            if by is not None:
                self.refuse("watches other code (`%s`), at %s" % (event, by[0]))
        elif event.startswith("socket.") or event in ("urllib.Request", "http.client.connect"):
            by = self.by()
            if by is not None:
                self.refuse("uses the network (`%s`), at %s" % (event, by[0]))
        elif event in ("os.kill", "os.killpg", "signal.pthread_kill"):
            by = self.by()
            if by is not None:
                self.refuse("sends a signal (`%s`), at %s" % (event, by[0]))

    def frames(self, event, name):
        by = self.by()
        if by is None or "importlib" in by[1]:
            return
        # What makes a class looks at the module that asks for it.
        if by[1] and not any(file in LOOKING for file in by[1]):
            return
        self.refuse("looks at the frames of other code (`%s`), at %s" % (name or event, by[0]))

    def open(self, args):
        path, mode, flags = (tuple(args) + (None, 0))[:3]
        if isinstance(path, int) or path is None:
            return
        by = self.by()
        if by is None or "importlib" in by[1] or "linecache.py" in by[1]:
            return
        writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & WRITING)
        if self.phase == "call":
            self.refuse("opens `%s` in a call, at %s" % (self.shown(path), by[0]))
        if self.is_scratch(path):
            return
        if writes:
            self.refuse("writes `%s`, at %s" % (self.shown(path), by[0]))
        real = os.path.realpath(os.fsdecode(path))
        if not below(real, [self.root, "/usr", "/lib", "/lib64", "/etc", "/opt"] + self.libraries):
            self.refuse("reads `%s`, which is neither its own nor of a library, at %s" % (self.shown(path), by[0]))

    def is_scratch(self, path):
        try:
            return below(os.path.realpath(os.fsdecode(path)), [self.scratch]) or path == os.devnull
        except (TypeError, ValueError):
            return False

    def shown(self, path):
        try:
            path = os.fsdecode(path)
        except (TypeError, ValueError):
            return "?"
        if below(os.path.abspath(path), [self.root]):
            return os.path.relpath(path, self.root)
        # Numbers of processes differ from run to run.
        steps = path.split(os.sep)
        return os.sep.join("PID" if step.isdigit() and steps[:2] == ["", "proc"] else step for step in steps)

    def handler(self):
        """What code of the kernel calls first where it catches an error."""

        def caught():
            error = own_sys.exc_info()[1]
            if error is None or self.phase is None or isinstance(error, LOOKED_UP + (Refused,)):
                return
            with self.quiet():
                self.swallowed(error)

        return caught

    def swallowed(self, error):
        where, line = self.place(error)
        at = ", raised at %s" % where if where else ""
        if self.lack_of(error, where or "an unknown line"):
            return
        if isinstance(error, ImportError) and self.phase != "call":
            self.lack("`%s`, which it imports at %s and goes on without" % (error.name or "a module", where or "an unknown line"))
            return
        when = "in a call" if self.phase == "call" else "before its first call"
        self.find("forbidden", "catches an error of its own %s and goes on (%s%s)" % (when, type(error).__name__, at), line)

    def lack_of(self, error, where):
        """Whether an error comes from what this machine lacks."""
        name = getattr(error, "name", None) if isinstance(error, ImportError) else None
        if name and name.split(".")[0] in OF_DEVICES:
            self.lack("`%s`, which it imports at %s, is not installed here" % (name, where))
            return True
        if isinstance(error, NeedsDevice):
            self.lack("a GPU, which it asks for at %s" % where)
            return True
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.endswith(os.path.join("torch", "utils", "cpp_extension.py")):
                self.lack("the build of an extension at %s (%s: %s)" % (where, type(error).__name__, " ".join(str(error).split())[:300]))
                return True
            trace = trace.tb_next
        return False

    def snapshot(self, spaces):
        """Remembers functions and classes by the names under which they are known."""
        for name, space in spaces:
            self.spaces.append((name, space, set(vars(space))))
            for key, value in list(vars(space).items()):
                if callable(value) or isinstance(value, (property, staticmethod, classmethod)):
                    self.names[(name, key)] = (space, value)

    def replaced(self):
        """Names that mean something else than before."""
        for (name, key), (space, before) in self.names.items():
            now = vars(space).get(key)
            if now is not before and not self.is_of_library(now):
                self.find("forbidden", "replaces `%s.%s`" % (name, key))
        for name, space, keys in self.spaces:
            if not isinstance(space, type):
                continue
            inherited = set().union(*(vars(base) for base in space.__mro__[1:]))
            for key in sorted((set(vars(space)) - keys) & inherited):
                if not self.is_of_library(vars(space)[key]):
                    self.find("forbidden", "replaces `%s.%s`" % (name, key))

    def is_of_library(self, value):
        """Whether a library defines a value, which then only came later."""
        code = getattr(value, "__code__", None)
        if code is not None:
            return self.kind(code.co_filename) == "library"
        return value is not None and str(getattr(value, "__module__", "")).split(".")[0] in ("torch", "numpy", "triton")


def own_getframe(depth):
    return GETFRAME(depth + 1)


GETFRAME = own_sys._getframe


class Instrumented(ast.NodeTransformer):
    """Puts a call first in each handler of errors that does not raise again."""

    def __init__(self, name):
        self.name = name

    def visit_ExceptHandler(self, node):
        self.generic_visit(node)
        if isinstance(node.body[-1], ast.Raise):
            return node
        asks = ast.Expr(ast.Call(func=ast.Name(id=self.name, ctx=ast.Load()), args=[], keywords=[]))
        node.body.insert(0, ast.copy_location(asks, node))
        ast.fix_missing_locations(node)
        return node


class OwnLoader(importlib.machinery.SourceFileLoader):
    """Loads modules of the kernel's package, watched."""

    def __init__(self, name, path, watch):
        super().__init__(name, path)
        self.watch = watch

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data, path, **_):
        tree = Instrumented(self.watch.caught).visit(ast.parse(data, filename=path))
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module):
        setattr(module, self.watch.caught, self.watch.handler())
        super().exec_module(module)


class KnownToKernel(Known):
    """Lets files of the kernel import what enters keys, and nothing else. What libraries import for themselves is their own."""

    def __init__(self, watch, *args):
        super().__init__(*args)
        self.watch = watch

    def find_spec(self, name, path=None, target=None):
        with self.watch.quiet():
            by = self.asked_by()
            if by is None:
                return None
            if name.split(".")[0] in self.watch.hidden:
                message = "imports `%s`, the file of the reference, at %s" % (name, by)
                self.watch.find("forbidden", message)
                raise ImportError("`%s` is the file of the reference" % name, name=name)
            try:
                spec = super().find_spec(name, path, target)
            except ImportError as error:
                if name.split(".")[0] in OF_DEVICES:
                    return None
                raise ImportError(str(error), name=name) from None
            if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader) and spec.origin and below(spec.origin, [self.watch.root]):
                spec.loader = OwnLoader(spec.loader.name, spec.loader.path, self.watch)
            return spec

    def asked_by(self):
        """The place of the kernel's code that imports; None if a library does."""
        frame = own_getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith("<frozen") and file != __file__ and os.sep + "importlib" + os.sep not in file:
                return self.watch.mark(file, frame.f_lineno) if self.watch.kind(file) == "own" else None
            frame = frame.f_back
        return None


def guarded_suppress(watch):
    """`contextlib.suppress` that says what it swallows."""
    before = contextlib.suppress.__exit__

    def exit(self, kind, value, trace):
        swallowed = before(self, kind, value, trace)
        if swallowed and value is not None and watch.phase is not None and not isinstance(value, LOOKED_UP):
            with watch.quiet():
                place, _ = watch.place(value)
                if place is not None:
                    watch.swallowed(value)
        return swallowed

    contextlib.suppress.__exit__ = exit


def guarded_compiler(watch):
    """`torch.compile` where the policy does not allow what it makes."""
    import torch._dynamo

    def refused(*_, **__):
        with watch.quiet():
            by = watch.by() if watch.phase is not None else None
            watch.refuse("uses `torch.compile`, at %s, and its policy does not allow `inductor`" % (by[0] if by is not None else "an unknown line"))

    torch.compile = torch.nn.Module.compile = torch._dynamo.optimize = refused


def guarded_threads(watch):
    """Threads that code of the kernel starts."""
    before = _thread.start_new_thread

    def start(*args, **kwargs):
        if watch.phase is not None:
            with watch.quiet():
                by = watch.by()
                if by is not None:
                    watch.refuse("starts a thread, at %s" % by[0])
        return before(*args, **kwargs)

    _thread.start_new_thread = _thread.start_new = start
    threading._start_new_thread = start


def guarded_devices(watch):
    """A GPU that is asked for where there is none."""

    def none(*_, **__):
        with watch.quiet():
            by = watch.by() if watch.phase is not None else None
        if by is not None:
            watch.lack("a GPU, which it asks for at %s" % by[0])
        raise NeedsDevice("there is no GPU here")

    torch.cuda._lazy_init = none
