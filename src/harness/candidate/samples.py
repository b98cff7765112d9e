# Samples of device time, and the versions of what runs there. kforge puts this file before the drivers of baselines, and before that of kernels in PyTorch, which
# takes such samples of baselines only.

import time

# The gate's share beside the time that queueing takes, and its most, in nanoseconds.
GATE_NS, MOST_GATE_NS = 50_000, 100_000_000
# How often a sample is taken again with a longer gate.
TRIES = 4
# Cycles of a device's clock in a nanosecond: at least as many as any device has, so that a gate is never shorter than asked.
CYCLES = 2.2


class DeviceSamples:
    """Samples on a GPU: a gate holds the stream until everything is queued, and events lie around the call, as for kernels."""

    def __init__(self):
        l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0) or 64 << 20
        self.area = torch.zeros(2 * l2 // 4, dtype=torch.int32, device="cuda")
        self.start, self.end, self.opened = (torch.cuda.Event(enable_timing=timed) for timed in (True, True, False))
        # How long the gate is, and whether no gate is long enough, because the call itself waits for the device.
        self.gate, self.waits = GATE_NS, False

    def sample(self, cold, restore, run):
        """Nanoseconds of device time, and whether the device waited for the host."""
        if not cold:
            restore()
            run()
        for _ in range(1 if self.waits else TRIES):
            torch.cuda.synchronize()
            began = time.perf_counter_ns()
            torch.cuda._sleep(int(self.gate * CYCLES))
            self.opened.record()
            restore()
            if cold:
                # Twice the L2 cache, read and written.
                self.area.add_(1)
            self.start.record()
            result = run()
            self.end.record()
            is_held = not self.opened.query()
            took = time.perf_counter_ns() - began
            torch.cuda.synchronize()
            del result
            if is_held:
                break
            self.gate = min(max(2 * self.gate, 2 * took + GATE_NS), MOST_GATE_NS)
        if not is_held:
            self.gate, self.waits = GATE_NS, True
        return self.start.elapsed_time(self.end) * 1e6, not is_held


class HostSamples:
    """The same without a GPU, for tests of kforge: the host's clock, and no gate."""

    def sample(self, cold, restore, run):
        restore()
        began = time.perf_counter_ns()
        run()
        return float(time.perf_counter_ns() - began), False


def versions_of(how):
    """The versions of what runs, without those of a device."""
    versions = {"torch": torch.__version__, "python": "%d.%d.%d" % sys.version_info[:3]}
    if how == "compile":
        versions["triton"] = getattr(sys.modules.get("triton"), "__version__", "none")
    return versions


def versions_on_cuda():
    found = {"cuda": str(torch.version.cuda), "gpu": torch.cuda.get_device_name(0)}
    if torch.backends.cudnn.is_available():
        found["cudnn"] = str(torch.backends.cudnn.version())
    cublas = cublas_version()
    if cublas:
        found["cublas"] = cublas
    return found


def cublas_version():
    import ctypes

    with open("/proc/self/maps") as maps:
        paths = sorted({line.split(None, 5)[5].strip() for line in maps if "/libcublas.so" in line})
    try:
        library, parts = ctypes.CDLL(paths[0]), []
        for part in range(3):
            value = ctypes.c_int()
            library.cublasGetProperty(part, ctypes.byref(value))
            parts.append(str(value.value))
        return ".".join(parts)
    except (IndexError, OSError, AttributeError):
        return None
