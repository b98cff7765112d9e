# Where a kernel in PyTorch computes, as its process sees it: in the judge's memory on the processor, or on a device, to whose memory inputs are copied before a
# call and from which everything is copied back after it. kforge puts this file between `watch.py` and `driver.py`.
#
# | on a device | how |
# |---|---|
# | inputs | change in place on the calling stream, behind a gate that usually outlasts the call: another stream that does not wait for them reads old ones |
# | results | copied on the calling stream when the call returns, and again when all streams of the device have ended: both copies are compared |
# | other streams of PyTorch | have ended when the calling stream has |
# | what is compared with expected values | the judge's memory, after all of this |
#
# While calls are timed, tensors lie in memory of the process that holds the clock, on the device or on the processor. Nothing is copied before a call, and after
# it only results, on the calling stream; a call has ended when all streams have ended.

import ctypes

# The streams that PyTorch has of each priority, and the priorities.
STREAMS, PRIORITIES = 32, (0, -1, -2, -3)
# The gate in cycles of a device's clock: about five milliseconds.
GATE = 10_000_000


class OnProcessor:
    """The processor: a call has ended when it returns."""

    def begin(self):
        pass

    def gate(self):
        pass

    def left(self):
        return []

    def wait(self):
        pass


class OnCuda:
    """A GPU."""

    def __init__(self):
        try:
            torch.cuda.init()
            torch.cuda.get_device_properties(0)
        except (RuntimeError, AssertionError) as error:
            raise Missing("PyTorch %s finds no GPU: %s" % (torch.__version__, str(error).strip().split("\n")[0]))
        self.all, self.sleep, base = torch._C._cuda_synchronize, torch._C._cuda_sleep, torch._C._CudaStreamBase
        self.query, self.end, self.current, self.set = base.query, base.synchronize, torch.cuda.current_stream, torch.cuda.set_stream
        self.calling = torch.cuda.current_stream()
        self.streams = [torch.cuda.Stream(priority=priority) for priority in PRIORITIES for _ in range(STREAMS)]
        self.libraries()
        self.warm()
        if call["compiles"]:
            self.compile()

    @staticmethod
    def libraries():
        """Tells Triton where the driver's library is, which it would ask a program for that a confined process cannot run."""
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if "/libcuda.so" in line}
        for path in sorted(paths):
            os.environ.setdefault("TRITON_LIBCUDA_PATH", os.path.dirname(path))

    def warm(self):
        """Uses what starts threads at its first use, so that threads of a kernel can be told from them."""
        with torch.no_grad():
            x = torch.ones(64, 64, device="cuda")
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                x.to(dtype) @ x.to(dtype)
            if torch.backends.cudnn.is_available():
                torch.nn.functional.conv2d(x.view(1, 1, 64, 64), x[:3, :3].contiguous().view(1, 1, 3, 3))
            done = torch.cuda.Event(blocking=True)
            done.record()
            done.synchronize()
            x.cpu().pin_memory().to("cuda", non_blocking=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                x + 1
            graph.replay()
        with torch.enable_grad():
            x.requires_grad_().sum().backward()
        self.all()

    def compile(self):
        """The same for `torch.compile`."""

        def add(x):
            return x + 1

        with torch.no_grad():
            torch.compile(add)(torch.ones(64, device="cuda"))
        self.all()

    def begin(self):
        """What an earlier call left does not concern the next one."""
        self.set(self.calling)
        self.all()

    def gate(self):
        """Holds the calling stream for a while."""
        self.sleep(GATE)

    def left(self):
        """What is wrong with the streams when the calling one has ended."""
        found = []
        if self.current() != self.calling:
            found.append("leaves another stream as the current one")
            self.set(self.calling)
        self.end(self.calling)
        busy = sum(not self.query(stream) for stream in self.streams)
        if busy:
            found.append("leaves work on another stream that the calling stream does not wait for")
        return found

    def wait(self):
        """Until all streams of the device have ended, whoever made them."""
        self.all()


class Recorder:
    """Records the kernels of the device that a call launches: the driver's own records (CUPTI), which PyTorch's profiler collects."""

    def __init__(self, device):
        from torch.autograd.profiler import profile

        self.make, self.found, self.running = profile, [], None
        x = torch.ones(64, device="cuda")
        # The first time starts what stays.
        self.begin()
        x + 1
        device.wait()
        self.end()
        if not any(not one["copies"] for one in self.taken()["launched"]):
            raise Missing("PyTorch %s records no kernels of the device here" % torch.__version__)

    def begin(self):
        self.found, self.running = [], self.make(use_cpu=False, use_device="cuda", use_kineto=True)
        self.running.__enter__()

    def end(self):
        running, self.running = self.running, None
        # What it makes of the records for people is not needed, and takes long.
        running._parse_kineto_results = lambda _: []
        running.__exit__(None, None, None)
        self.found = [event for event in running.kineto_results.events() if event.device_type() == torch.autograd.DeviceType.CUDA]

    def taken(self):
        """Of each kernel, how often it ran and how long; and how long the device worked."""
        of, spans = {}, []
        for event in self.found:
            name = event.name()
            copies = name.startswith(("Memcpy", "Memset"))
            one = of.setdefault(name, {"name": name, "launches": 0, "ns": 0.0, "copies": copies})
            start = event.start_ns() if hasattr(event, "start_ns") else 1000.0 * event.start_us()
            took = event.duration_ns() if hasattr(event, "duration_ns") else 1000.0 * event.duration_us()
            spans.append((start, start + took))
            one["launches"] += 1
            one["ns"] += took
        self.found = []
        return {"launched": named(of), "busy_ns": float(covered(spans))}


def covered(spans):
    """How much time lies in any of the spans: streams may run at once."""
    total, reached = 0, None
    for start, end in sorted(spans):
        if reached is None or start > reached:
            reached = start
        total += max(end - reached, 0)
        reached = max(end, reached)
    return total


def named(of):
    """The kernels, the longest first. Beyond two hundred names the others are one, whose name no file can define."""
    all = sorted(of.values(), key=lambda one: -one["ns"])
    if len(all) <= 200:
        return all
    others = all[199:]
    return all[:199] + [{"name": "(further kernels)", "launches": sum(one["launches"] for one in others), "ns": sum(one["ns"] for one in others), "copies": False}]


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class Imported:
    """Memory of the device that another process owns."""

    def __init__(self, descriptor, size):
        cuda = ctypes.CDLL("libcuda.so.1")
        handle, address, device = ctypes.c_ulonglong(), ctypes.c_ulonglong(), ctypes.c_int()
        whole, nothing = ctypes.c_size_t(size), ctypes.c_ulonglong(0)
        # 1: a descriptor, and a device; 3: for reading and writing.
        self.done(cuda.cuCtxGetDevice(ctypes.byref(device)), "cuCtxGetDevice")
        self.done(cuda.cuMemImportFromShareableHandle(ctypes.byref(handle), ctypes.c_void_p(descriptor), 1), "cuMemImportFromShareableHandle")
        self.done(cuda.cuMemAddressReserve(ctypes.byref(address), whole, ctypes.c_size_t(0), nothing, nothing), "cuMemAddressReserve")
        self.done(cuda.cuMemMap(address, whole, ctypes.c_size_t(0), handle, nothing), "cuMemMap")
        access = Access(Location(1, device.value), 3)
        self.done(cuda.cuMemSetAccess(address, whole, ctypes.byref(access), ctypes.c_size_t(1)), "cuMemSetAccess")
        self.address = address.value
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address.value, False), "version": 3, "strides": None}

    @staticmethod
    def done(error, what):
        if error:
            raise Missing("the driver does not share memory between processes here: %s gave error %d" % (what, error))


class Page:
    """The words by which calls are handed over. What is written here only ends waits: see `shared.rs`."""

    READY, GO, DONE = 0, 8, 16

    def __init__(self):
        whole = mmap.mmap(call["page"], 4096, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self.words = memoryview(whole).cast("Q")

    def wait(self, number):
        """Waits without sleeping until that call may begin."""
        words, go = self.words, self.GO
        words[self.READY] = number
        while words[go] != number:
            pass

    def end(self, number):
        self.words[self.DONE] = number


class Memory:
    """The operator's tensors, always at the same addresses."""

    def __init__(self):
        self.maps, self.tensors, self.entries = [], {}, {}
        # On a device, each tensor as a whole with what lies around it: in the judge's memory, as it is to be before a call, and where the kernel finds it.
        self.judges, self.before, self.areas = {}, {}, {}
        # The contents that the calling stream found when a call had returned.
        self.returned = {}
        for entry in call["tensors"]:
            dtype, name, start, size = dtype_of(entry), entry["name"], entry["offset"], entry["bytes"]
            on_device = call["page"] is not None and call["device"] != "cpu"
            whole = Imported(entry["fd"], entry["file"]) if on_device else mmap.mmap(entry["fd"], entry["file"], flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
            self.maps.append(whole)
            self.entries[name] = entry
            if call["apart"]:
                self.judges[name] = torch.frombuffer(whole, dtype=torch.uint8)
                self.areas[name] = torch.empty(entry["file"], dtype=torch.uint8, device=call["device"])
                self.before[name] = torch.empty_like(self.areas[name])
                raw = self.areas[name][start : start + size]
            elif on_device:
                raw = torch.as_tensor(whole, device=call["device"])
                if raw.data_ptr() != whole.address:
                    raise Missing("PyTorch %s copies memory that is shared with another process" % torch.__version__)
                raw = raw[start : start + size]
            else:
                raw = torch.frombuffer(whole, dtype=torch.uint8, offset=start, count=size) if size else torch.empty(0, dtype=torch.uint8)
            self.tensors[name] = raw.view(dtype).as_strided(entry["shape"], entry["strides"])

    def lay(self, device, original):
        """Lets a call find what the judge wrote."""
        if not call["apart"]:
            return
        device.begin()
        for name, judges in self.judges.items():
            original.copy(self.before[name], judges)
        device.gate()
        for name, before in self.before.items():
            original.copy(self.areas[name], before)

    def note(self, results, original):
        """Remembers, on the calling stream, what is written when a call has returned."""
        self.returned = {}
        if not call["apart"]:
            return
        for name, value in results.items():
            kept = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
            original.copy(kept, original.detach(value))
            self.returned[name] = kept

    def changed(self, name, value, original):
        """Whether a result is no longer what it was when its call had returned."""
        kept = self.returned.get(name)
        if kept is None or value.numel() == 0:
            return False
        now, then = [original.view(original.reshape(original.contiguous(one), (-1,)), torch.uint8) for one in (original.detach(value), kept)]
        return not bool(original.all(original.eq(now, then)))

    def give(self, device, original):
        """Gives the judge everything."""
        if not call["apart"]:
            return
        device.wait()
        for name, judges in self.judges.items():
            original.copy(judges, self.areas[name])
