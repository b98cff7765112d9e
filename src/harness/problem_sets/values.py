"""Values of a task on the processor, in float64 and at a small size. kforge puts this file behind `shapes.py`.

Inputs are normal numbers. If results are then not finite, they are drawn as the task draws them. Weights that the constructor draws are uniform with the same
variance; weights that it fills with one number are drawn like inputs.
"""

# Results beyond this overflow in float32.
LARGEST = 1e18
# The most initial values that are drawn for their variance.
WEIGHTS = 1 << 26
EPSILON = 2.0**-23


def rounded(value):
    """Two digits: a law, not a sample."""
    return float("%.2g" % value)


class Drawing:
    """How each tensor is drawn."""

    def __init__(self, task, run, probe, train):
        self.run, self.train = run, train
        self.names = list(inspect.signature(run["model"].forward).parameters)
        values = {at: value for at, value in enumerate(probe["values"])}
        torch.set_default_dtype(torch.float32)
        torch.manual_seed(0)
        module = task.loaded(values)
        _, self.own = task.given(module, values, OnMetaOff(), "cpu")
        arguments = [as_stated(value) for value in run["init"]]
        # The tensors that a constructor draws are those that are NaN where drawing gives NaN.
        with OnProcessor(), Constructing(), torch.no_grad():
            self.model = module.Model(*arguments)
        self.model.train(train)
        for module_name, part in self.model.named_modules():
            for name, value in vars(part).items():
                if isinstance(value, torch.Tensor) and value.is_floating_point() and bool(value.isnan().any()):
                    whole = ".".join([*filter(None, [module_name]), name])
                    raise Unfit("random", "draws `%s` at random in its constructor, and it is neither a parameter nor a buffer" % whole)
        torch.manual_seed(0)
        with OnProcessor(), torch.no_grad():
            drawn = module.Model(*arguments)
        self.parameters = dict(self.model.named_parameters())
        self.buffers = dict(self.model.named_buffers())
        self.initial = {**dict(drawn.named_parameters()), **dict(drawn.named_buffers())}
        self.laws = {name: self.law(name, value) for name, value in self.initial.items()}

    def law(self, name, value):
        if not value.is_floating_point() or value.numel() == 0:
            return {"kind": "as-is"}
        value = value.detach().double()
        own = (self.parameters.get(name) if name in self.parameters else self.buffers[name]).detach()
        if bool((value == value.reshape(-1)[0]).all()):
            return {"kind": "constant", "value": float(value.reshape(-1)[0])}
        if name in self.buffers and not bool(own.isnan().any()):
            return {"kind": "as-is"}
        # A uniform law with this variance.
        bound = math.sqrt(3.0) * float((value * value).mean().sqrt())
        return {"kind": "uniform", "bound": rounded(bound)} if math.isfinite(bound) and bound > 0 else {"kind": "as-is"}

    def with_laws_of(self, other):
        """Takes the laws of weights from the task at its own size."""
        self.laws.update((name, law) for name, law in other.items() if law["kind"] == "uniform")

    def is_given(self, name):
        """Whether kforge draws this buffer: its values are drawn or are one number, so that a kernel could do without them."""
        return name in self.parameters or self.laws[name]["kind"] in ("uniform", "constant")

    def init(self, name, level, probe):
        """How the manifest draws an input or part of the state."""
        if isinstance(name, int):
            own = self.own[name]
            if own.dtype == torch.bool:
                return {"auto": True}
            if not own.is_floating_point():
                if probe["ranges"][name] is not None:
                    return {"drawn": True}
                return {"range": [int(own.min()), int(own.max())]} if own.numel() else {"auto": True}
            if level == 0 or own.numel() == 0:
                return {"auto": True}
            return {"positive": True} if float(own.double().min()) >= 0 else {"normal": True}
        law, value = self.laws[name], self.initial[name]
        if not value.is_floating_point():
            return {"range": [0, 100]} if value.dtype != torch.bool else {"auto": True}
        if law["kind"] == "uniform":
            return {"range": [-law["bound"], law["bound"]]}
        if law["kind"] == "constant" and name in self.buffers:
            # A variance, for example.
            return {"positive": True} if law["value"] > 0 else {"auto": True}
        if law["kind"] == "constant" and level == 1:
            c = law["value"]
            return {"range": [rounded(min(0.5 * c, 1.5 * c)), rounded(max(0.5 * c, 1.5 * c))] if c else [-0.5, 0.5]}
        return {"auto": True}

    def draw(self, like, how, ranges, generator):
        shape = tuple(like.shape)
        if like.dtype == torch.bool:
            return torch.rand(shape, generator=generator, dtype=torch.float64) < 0.5
        if not like.is_floating_point():
            low, high = ranges if ranges is not None else how.get("range", [-8, 8])
            high = high if ranges is not None else high + 1
            return torch.randint(low, max(high, low + 1), shape, generator=generator, dtype=torch.int64)
        if "range" in how:
            low, high = how["range"]
            return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
        if "positive" in how:
            return 1.0 - torch.rand(shape, generator=generator, dtype=torch.float64)
        value = torch.randn(shape, generator=generator, dtype=torch.float64)
        # kforge's inputs are numbers of the tensor's type.
        return value.to(like.dtype).double()

    def compute(self, level, seed, probe, given):
        """The results with inputs of a seed, the state afterwards and before, and the first operation in low floats."""
        generator = torch.Generator().manual_seed(seed)
        inputs = [
            self.draw(value, self.init(at, level, probe), probe["ranges"][at], generator) if isinstance(value, torch.Tensor) else value
            for at, value in enumerate(self.own)
        ]
        state = {}
        for name, value in {**self.parameters, **self.buffers}.items():
            if name in given:
                state[name] = self.draw(value, self.init(name, level, probe), None, generator)
            else:
                value = self.initial[name].detach().clone()
                state[name] = value.double() if value.is_floating_point() else value
        before = {name: value.clone() for name, value in state.items()}
        kept = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
        watch = Watch()
        torch.set_default_dtype(torch.float64)
        with torch.no_grad(), OnProcessor(), watch:
            result = torch.func.functional_call(self.model, state, tuple(inputs))
        outputs = [value.detach().clone() for _, value in outputs_of(result)]
        for at, value in enumerate(kept):
            if isinstance(value, torch.Tensor) and not same(inputs[at], value):
                raise Unfit("unsupported", "`forward` changes its input `%s`" % self.names[at])
        changed = [name for name in state if not same(state[name], before[name])]
        return outputs, changed, watch.low


class OnMetaOff(TorchDispatchMode):
    """Watches nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def is_usual(outputs):
    """Whether all results are finite and representable in float32."""
    floats = [value for value in outputs if value.is_floating_point() and value.numel()]
    return all(bool(value.isfinite().all()) and float(value.abs().max()) < LARGEST for value in floats)


def examined(task, run, probe, laws):
    """What values show of a task at a size."""
    train, random = True, None
    drawing = Drawing(task, run, probe, train)
    drawing.with_laws_of(laws)
    given = {name for name in drawing.initial if name in drawing.parameters}
    try:
        _, changed, _ = drawing.compute(0, 1, probe, given)
    except Drawn as drawn:
        random = {"operation": drawn.operation, "line": line_of(drawn.place)}
        train = False
        drawing.train = False
        drawing.model.train(False)
        try:
            _, changed, _ = drawing.compute(0, 1, probe, given)
        except Drawn as error:
            raise Unfit("random", "draws random numbers in evaluation mode also: no kernel can reproduce them", random["line"]) from error
    mutable = [name for name in changed if name in drawing.parameters]
    if mutable:
        raise Unfit("unsupported", "`forward` changes the parameter `%s`" % mutable[0])
    given |= {name for name in drawing.buffers if name in changed or drawing.is_given(name)}
    level = 0
    first, changed_again, low = drawing.compute(0, 1, probe, given)
    if not is_usual(first):
        other, changed_other, low_other = drawing.compute(1, 1, probe, given)
        # Of two, the one whose results are finite; the task's own law if neither is.
        level, first, changed_again, low = 1, other, changed_other, low_other
    second, _, _ = drawing.compute(level, 2, probe, given)
    extent = max([n for value in [*drawing.own, *[drawing.initial[name] for name in given]] if isinstance(value, torch.Tensor) for n in value.shape], default=1)
    tolerance = 4 * math.sqrt(extent) * EPSILON
    outputs = [shown(one, two, tolerance) for one, two in zip(first, second)]
    every = [*drawing.parameters, *drawing.buffers]
    return {
        "random": random,
        "state": [
            {"given": name in given, "changes": name in changed or name in changed_again, "init": drawing.init(name, level, probe)} for name in every
        ],
        "inputs": [drawing.init(at, level, probe) if isinstance(value, torch.Tensor) else None for at, value in enumerate(drawing.own)],
        "outputs": outputs,
        "tolerance": tolerance,
        "low": {"floats": low[0], "operation": low[1], "line": line_of(low[2])} if low else None,
    }


def shown(one, two, tolerance):
    """What two results for different inputs show."""
    if not one.is_floating_point():
        return {"constant": bool(torch.equal(one, two)) and one.numel() > 0, "largest": None, "finite": True}
    finite = bool(one.isfinite().all()) and bool(two.isfinite().all())
    if one.numel() == 0 or not finite:
        return {"constant": False, "largest": None, "finite": finite}
    largest = float(torch.maximum(one.abs().max(), two.abs().max()))
    alike = bool(((one - two).abs() <= tolerance + tolerance * two.abs()).all())
    # Below the tolerance, everything is alike.
    constant = bool(torch.equal(one, two)) or alike and largest > tolerance
    return {"constant": constant, "largest": largest, "finite": True}
