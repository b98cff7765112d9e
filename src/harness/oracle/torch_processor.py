# The processor in place of every GPU that a function asks for: for functions that make inputs, wherever they would make them. kforge puts this file behind
# `torch_imports.py`.


class Generator(torch.Generator):
    """A generator of the processor, whichever device is asked for."""

    def __new__(cls, device=None):
        return super().__new__(cls, device="cpu")


def without_devices():
    """What needs a GPU, and changes no value, does nothing."""
    torch.Generator = Generator
    for name in ("synchronize", "empty_cache", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, lambda *_, **__: None)


class AsProcessor(TorchFunctionMode):
    """Takes the processor for every GPU that is asked for."""

    # What is done to a tensor that is on no GPU.
    IDLE = (torch.Tensor.cuda, torch.Tensor.pin_memory)
    # Words of arguments that make no difference without a GPU.
    DROPPED = ("pin_memory",)
    DEVICE, FROM = "cpu", ("cuda",)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in self.IDLE:
            return args[0]
        kwargs = {name: self.of(value) for name, value in (kwargs or {}).items() if name not in self.DROPPED}
        if type(kwargs.get("device")) is int:
            kwargs["device"] = torch.device(self.DEVICE)
        # Of arguments without names, only `to` takes a device.
        args = tuple(self.of(value) for value in args) if func is torch.Tensor.to else args
        return func(*args, **kwargs)

    def of(self, value):
        name = value.type if isinstance(value, torch.device) else value.split(":")[0] if isinstance(value, str) else None
        return torch.device(self.DEVICE) if name in self.FROM else value


class AsMeta(AsProcessor):
    """Takes torch's `meta` device for all others: shapes and types without values."""

    IDLE = (torch.Tensor.cuda, torch.Tensor.pin_memory, torch.Tensor.cpu)
    DROPPED = ("pin_memory", "generator")
    DEVICE, FROM = "meta", ("cuda", "cpu")
