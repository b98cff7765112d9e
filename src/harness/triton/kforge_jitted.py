"""Reads a source in Triton and finds its function, for the programs that compile it and that interpret it. Knows files and Python; does not know what is done
with the function.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types

# Packages whose parts a file may name at its top although no device code uses them.
INERT = ("torch",)


class Inert(type):
    """The class of everything in an inert module: attributes exist, can be inherited from and decorate, and calls raise."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(name, (), {"__module__": cls.__module__})

    def __call__(cls, *args, **kwargs):
        # A decorator such as `@torch.no_grad()` or `@torch.compile`: what it decorates stays as it is.
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType):
            return args[0]
        if cls.__mro__[1:] == (object,):
            return cls
        raise RuntimeError(f"`{cls.__name__}` is called while the source is read, and the package it belongs to is not read here")


class InertModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(name, (), {"__module__": self.__name__})


class InertFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in INERT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return InertModule(spec.name)

    def exec_module(self, module):
        pass


class Refused(Exception):
    """The source or its declaration is wrong: the text says why, with file and line where there is one."""


def load(job, place=None):
    """The module of the source. `place` names the place of an error."""
    tree = job["tree"]
    main = os.path.join(tree, job["main"])
    sys.path[:0] = [os.path.dirname(main), tree]
    spec = importlib.util.spec_from_file_location("kforge_source", main)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kforge_source"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # a source may also raise SystemExit
        raise Refused(f"{(place or where)(error, job)}: the source cannot be read: {type(error).__name__}: {error}") from error
    return module


def where(error, job):
    """The innermost place in the source's files at which an exception was raised."""
    tree = job["tree"].rstrip("/") + "/"
    place = job["main"]
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(tree):
        return f"{error.filename[len(tree):]}:{error.lineno}"
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(tree):
            place = f"{file[len(tree):]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def function(module, job, kind):
    """The jitted function, which is of that class, without `@autotune` and `@heuristics`: the manifest chooses what they would."""
    name = job["function"]
    found = getattr(module, name, None)
    while found is not None and not isinstance(found, kind):
        found = getattr(found, "fn", None)
    if found is None:
        raise Refused(f"{job['main']}: `{name}` is not a function with `@triton.jit`")
    return found


def constant(value):
    import triton.language as tl

    if value is None or not isinstance(value, dict):
        return value
    return tl.dtype(value["dtype"]) if "dtype" in value else float(value["float"])
