"""PyTorch on the processor for kforge: watched operations. kforge puts this file between `torch_imports.py` and `torch_module.py`, and a driver after them, so
that they are one program, run as `python driver.py CALL`.
"""

import traceback

LOW_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
LOW_COMPLEX = (torch.complex64, torch.complex32)


class Refused(Exception):
    """What a reference must not do. Not one of the errors that code of a package would catch by name."""


class Drawn(Refused):
    """It draws random numbers: by an operation, at a place."""

    def __init__(self, message, operation, place):
        super().__init__(message)
        self.operation, self.place = operation, place


def where():
    """The innermost line of the package that is being executed."""
    frame = sys._getframe(1)
    root = os.path.realpath(call["root"]) + os.sep
    while frame is not None:
        place = os.path.realpath(frame.f_code.co_filename)
        if place.startswith(root):
            return "%s:%d" % (place[len(root) :], frame.f_lineno)
        frame = frame.f_back
    return call["module"]


def is_low(value):
    if not isinstance(value, torch.Tensor):
        return False
    return (value.is_floating_point() and value.dtype != torch.float64) or (value.is_complex() and value.dtype != torch.complex128)


def word(dtype):
    return str(dtype).replace("torch.", "")


class Watch(TorchDispatchMode):
    """Sees every operation: remembers the first one that gives floats below float64, and refuses random numbers, or replaces them by a number."""

    def __init__(self, fill=None):
        super().__init__()
        self.low, self.fill = None, fill

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        may_draw = torch.Tag.nondeterministic_seeded in func.tags
        before = torch.random.get_rng_state() if may_draw else None
        result = func(*args, **kwargs)
        if may_draw and (kwargs.get("generator") is not None or not torch.equal(before, torch.random.get_rng_state())):
            hint = "; `mode` of the reference is \"train\"" if call["train"] else ""
            place = where()
            if self.fill is not None:
                for value in tree_flatten(result)[0]:
                    if isinstance(value, torch.Tensor):
                        value.fill_(self.fill)
                return result
            raise Drawn("draws random numbers (`%s` at %s), which no kernel can reproduce%s" % (func, place, hint), str(func), place)
        if self.low is None:
            for value in tree_flatten(result)[0]:
                if is_low(value):
                    self.low = (word(value.dtype), str(func), where())
                    break
        return result


class Undrawn:
    """Runs a reference watched. One that draws random numbers is accepted if its results do not depend on them: a module that is constructed in each call draws
    weights, and then gets others."""

    def __init__(self, run):
        self.run, self.watch = run, Watch()

    def __call__(self):
        try:
            return self.run(self.watch)
        except Drawn as error:
            drawn = error
        results = []
        for fill in (0, 1):
            self.watch = Watch(fill)
            results.append(self.run(self.watch))
        one, other = [tree_flatten(result)[0] for result in results]
        if len(one) != len(other) or not all(same(a, b) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else a == b for a, b in zip(one, other)):
            raise drawn
        return results[1]


class Constructing(TorchDispatchMode):
    """Replaces random values by NaN, so that what a constructor draws cannot be mistaken for a value of the module."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        inplace = args and isinstance(args[0], torch.Tensor) and func._schema.is_mutable
        result = args[0] if inplace else func(*args, **kwargs)
        for value in tree_flatten(result)[0]:
            if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
                value.fill_(float("nan"))
        return result


class OnProcessor(TorchFunctionMode):
    """Refuses other devices by name."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            self.refuse("cuda")
        stated = [kwargs.get("device")] + (list(args[1:]) if func is torch.Tensor.to else [])
        for device in stated:
            if isinstance(device, int) and not isinstance(device, bool):
                device = "cuda" if "device" in kwargs else None
            name = device.type if isinstance(device, torch.device) else device if isinstance(device, str) else None
            if name is not None and name.split(":")[0] not in ("cpu", "meta"):
                self.refuse(name)
        return func(*args, **kwargs)

    def refuse(self, device):
        raise Refused("uses the device `%s` (at %s); references are computed on the processor" % (device, where()))


class InDouble(TorchFunctionMode):
    """Takes every cast to a lower float as one to float64."""

    CASTS = {
        torch.Tensor.float: torch.Tensor.double,
        torch.Tensor.half: torch.Tensor.double,
        torch.Tensor.bfloat16: torch.Tensor.double,
        torch.Tensor.cfloat: torch.Tensor.cdouble,
        torch.Tensor.chalf: torch.Tensor.cdouble,
    }

    def __torch_function__(self, func, types, args=(), kwargs=None):
        args, kwargs = tree_map(self.double, args), tree_map(self.double, kwargs or {})
        return self.CASTS.get(func, func)(*args, **kwargs)

    @staticmethod
    def double(value):
        if not isinstance(value, torch.dtype):
            return value
        return torch.float64 if value in LOW_FLOATS else torch.complex128 if value in LOW_COMPLEX else value


def same(now, before):
    """Whether two tensors have the same bits. Versions of tensors do not say it: batch normalisation changes its statistics without a new version."""
    if now.shape != before.shape or now.dtype != before.dtype:
        return False
    now, before = now.contiguous().reshape(-1), before.contiguous().reshape(-1)
    if now.dtype == torch.float64:
        now, before = now.view(torch.int64), before.view(torch.int64)
    return torch.equal(now, before)
