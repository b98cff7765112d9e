"""The buffers of a run, and what programs do to them: every access is checked before it happens.

Programs run one after another. An access conflicts with an earlier one of another program if one of the two writes and not both are atomic. The two are
ordered if the other program released after its access, by an atomic operation, what this one acquired before.
"""

import ctypes
import sys

import numpy as np

PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2
MAP_SHARED, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS, MAP_NORESERVE = 1, 2, 16, 32, 0x4000

# The most different findings of a run.
MOST_FINDINGS = 32
# The attribute of a pointer that names its buffer.
BUFFER = "kforge.buffer"
# How often a program may operate on one address from one line until it is taken to wait for another program.
MOST_POLLS = 20_000
# The most lanes of an atomic operation whose addresses are told apart as places of synchronisation. Those of a wider one are taken for one place for each
# buffer, which can miss a race and invents none.
APART = 8

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


# Neither is an `Exception`: Triton's interpreter wraps those.
class Ended(BaseException):
    """A finding ended the run."""


class Wrong(BaseException):
    """The kernel does what no device allows."""


class NotEmulated(BaseException):
    """Something that the interpreter does not have, or not correctly."""


def mapped(at, size, protection, flags, fd):
    where = libc.mmap(at, size, protection, flags, fd, 0)
    if where in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "cannot map a buffer")
    return where


def named(program):
    return f"program ({', '.join(map(str, program))})"


class Buffer:
    def __init__(self, asked, start):
        self.name, self.start, self.size = asked["name"], start, asked["bytes"]
        self.end = start + self.size
        self.element, self.axes, self.writable = max(1, asked["element"]), asked["axes"], asked["writable"]
        self.elements = -(-self.size // self.element)
        self.bytes = np.frombuffer((ctypes.c_ubyte * self.size).from_address(start), dtype=np.uint8)
        self.forget()

    def forget(self):
        """Nothing accessed it: the state before a launch. It is made when it is needed."""
        self.writer = self.reader = self.other = self.last = None

    def watch(self):
        if self.writer is None:
            # Program, epoch, place: of the last write, the last read, and the last read by a program other than that.
            self.writer, self.reader, self.other = (np.full((3, self.elements), -1, dtype=np.int32) for _ in range(3))

    def at(self, index):
        """An element for people."""
        rest, coordinates = index, {}
        for axis in sorted(range(len(self.axes)), key=lambda axis: -self.axes[axis][1]):
            extent, stride = self.axes[axis]
            coordinates[axis], rest = divmod(rest, stride) if stride else (0, rest)
            if coordinates[axis] >= extent:
                return f"{self.name}[{index}]"
        if rest or index < 0 or len(self.axes) < 2:
            return f"{self.name}[{index}]"
        return f"{self.name}[{', '.join(str(coordinates[axis]) for axis in range(len(self.axes)))}]"


class Memory:
    """All buffers of a run. `places` are the source's files by path."""

    def __init__(self, buffers, places):
        gap = buffers[0]["gap"] if buffers else 0
        self.size = sum(asked["file"] + gap for asked in buffers) + gap + 1
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        self.base = mapped(None, self.size, PROT_NONE, flags, -1)
        self.buffers, at = [], self.base + gap
        for asked in buffers:
            protection = PROT_READ | (PROT_WRITE if asked["writable"] else 0)
            mapped(at, asked["file"], protection, MAP_SHARED | MAP_FIXED, asked["fd"])
            self.buffers.append(Buffer(asked, at + asked["offset"]))
            at += asked["file"] + gap
        self.by_name = {buffer.name: buffer for buffer in self.buffers}
        self.places = places
        self.findings, self.program = {}, 0
        self.launch((1, 1, 1))

    def close(self):
        self.by_name, self.buffers = {}, []
        libc.munmap(self.base, self.size)

    # Launches and programs.

    def launch(self, grid):
        """A launch begins: it is ordered behind the launches before it."""
        self.grid, self.released, self.clocks, self.epochs = grid, {}, {}, {}
        for buffer in self.buffers:
            buffer.forget()

    def begin(self, program):
        self.program, self.polls = program, {}
        # What is known of the operation that runs: its order, if it is atomic or volatile, and the buffer of its pointers.
        self.atomic, self.meant = False, None

    def index_of(self, program):
        x, y, _ = self.grid
        return [program % x, program // x % y, program // x // y]

    def place(self):
        """The line that runs: the file's number and the line."""
        frame = sys._getframe(2)
        while frame is not None:
            file = self.places.get(frame.f_code.co_filename)
            if file is not None:
                return (file << 20) | frame.f_lineno
            frame = frame.f_back
        return 0

    # Findings.

    def find(self, kind, message, buffer, index, place, other=None):
        key = (kind, buffer.name if buffer else None, place, other)
        if key in self.findings:
            self.findings[key]["count"] += 1
        elif len(self.findings) < MOST_FINDINGS:
            found = {"kind": kind, "message": message, "block": self.index_of(self.program), "count": 1}
            if buffer is not None:
                found.update(buffer=buffer.name, space="global", index=int(index))
            if place:
                found["line"] = ["@pc", place]
            if other:
                found["other_line"] = ["@pc", other]
            self.findings[key] = found

    def stop(self, *finding):
        self.find(*finding)
        raise Ended

    # Accesses.

    def access(self, verb, pointers, mask, size, write, atomic=False, sem=None, value=None):
        """Checks an access of `size` bytes at each of these addresses."""
        at = np.asarray(pointers, dtype=np.uint64)
        mask = None if mask is None else np.asarray(mask)
        kept = None if mask is None or mask.all() else np.broadcast_to(mask, at.shape)
        at = (at if kept is None else at[kept]).reshape(-1)
        if at.size == 0:
            return
        place, (meant, self.meant) = self.place(), (self.meant, None)
        low, high = int(at.min()), int(at.max())
        of = [self.by_name[meant]] if meant in self.by_name else self.buffers
        buffer = next((b for b in of if b.start <= low < b.end), None)
        if buffer is None or high + size > buffer.end:
            # Lanes of one access may be in several buffers.
            groups = self.split(verb, at, size, place, of)
        else:
            groups = [(buffer, at)]
        for buffer, at in groups:
            self.one(verb, buffer, at, size, write, atomic, sem, place)
        if write and not atomic and value is not None and at.size > 1 and len(groups) == 1:
            value = np.broadcast_to(value, np.shape(pointers))
            self.once(buffer, at, size, (value if kept is None else value[kept]).reshape(-1), place)

    def split(self, verb, at, size, place, of):
        groups, left = [], np.ones(at.shape, dtype=bool)
        for buffer in of:
            inside = (at >= np.uint64(buffer.start)) & (at < np.uint64(buffer.end)) & (at <= np.uint64(buffer.end - min(size, buffer.size)))
            if buffer.size >= size and inside.any():
                groups.append((buffer, at[inside]))
                left &= ~inside
        if left.any():
            self.outside(verb, int(at[left][0]), size, place, of if len(of) == 1 else [buffer for buffer, _ in groups])
        return groups

    def outside(self, verb, address, size, place, of):
        if len(of) != 1 and not (self.buffers and self.base <= address < self.base + self.size):
            message = f"{verb} of {size} byte{'s' if size > 1 else ''} at an address outside of all buffers, at {mark(place)}; {self.who()}"
            self.stop("out-of-bounds", message, None, 0, place)
        near = lambda b: b.start - address if address < b.start else address + 1 - b.end
        buffer = of[0] if len(of) == 1 else min(self.buffers, key=near)
        index = (address - buffer.start) // buffer.element
        elements = f"{buffer.elements} element{'s' if buffer.elements != 1 else ''}"
        message = (
            f"{verb} of {size} byte{'s' if size > 1 else ''} at {buffer.name}[{index}], which has {elements}, at {mark(place)}; {self.who()}"
        )
        self.stop("out-of-bounds", message, buffer, index, place)

    def who(self):
        return named(self.index_of(self.program))

    def one(self, verb, buffer, at, size, write, atomic, sem, place):
        offset = (at - np.uint64(buffer.start)).astype(np.int64)
        if size > 1 and (at % np.uint64(size)).any():
            bad = int(offset[np.nonzero(at % np.uint64(size))[0][0]])
            message = f"{verb} of {size} bytes of {buffer.name} at byte {bad}, which is not aligned to its size, at {mark(place)}; {self.who()}"
            self.stop("misaligned", message, buffer, bad // buffer.element, place)
        index = offset // buffer.element
        if write and not buffer.writable:
            message = f"{verb} to {buffer.at(int(index[0]))}, which is read-only, at {mark(place)}; {self.who()}"
            self.stop("input-modified", message, buffer, int(index[0]), place)
        if size > buffer.element:
            index = (index[:, None] + np.arange(size // buffer.element)).reshape(-1)
        if atomic and at.size == 1:
            self.poll((place, int(at[0])))
        places = None
        if sem in ("acquire", "acq_rel", "release"):
            places = [int(address) for address in at] if at.size <= APART else [buffer.name]
            if sem != "release":
                self.acquire(places)
        # With one program there is nobody to race with.
        if self.programs() > 1 and (buffer.writable or write):
            self.race(buffer, index, write, atomic, place)
        if places is not None and sem != "acquire":
            self.release(places)

    def programs(self):
        x, y, z = self.grid
        return x * y * z

    def poll(self, where):
        self.polls[where] = self.polls.get(where, 0) + 1
        if self.polls[where] > MOST_POLLS:
            raise NotEmulated("a program that waits for another one")

    def once(self, buffer, at, size, value, place):
        """Lanes of one program may store to one element only what is equal."""
        index = ((at - np.uint64(buffer.start)) // np.uint64(size)).astype(np.int64)
        low = int(index.min())
        lane = np.empty(int(index.max()) - low + 1, dtype=np.int32)
        lanes = np.arange(index.size, dtype=np.int32)
        lane[index - low] = lanes
        last = lane[index - low]
        twice = np.nonzero(last != lanes)[0]
        if twice.size == 0:
            return
        # Bits are compared, so that NaN equals itself.
        bits = np.ascontiguousarray(value).view(np.dtype(f"u{value.dtype.itemsize}"))
        differs = twice[bits[twice] != bits[last[twice]]]
        if differs.size:
            element = int(index[differs[0]]) * size // buffer.element
            message = f"race on {buffer.at(element)}: {self.who()} stores different values to it in one operation at {mark(place)}"
            self.find("race", message, buffer, element, place)

    # Order.

    def epoch(self, program):
        return self.epochs.get(program, 0)

    def clock(self):
        if self.program not in self.clocks:
            self.clocks[self.program] = np.zeros(self.programs(), dtype=np.int32)
        return self.clocks[self.program]

    def acquire(self, places):
        for place in places:
            if place in self.released:
                np.maximum(self.clock(), self.released[place], out=self.clock())

    def release(self, places):
        clock, epoch = self.clock(), self.epoch(self.program) + 1
        clock[self.program], self.epochs[self.program] = epoch, epoch
        for place in places:
            if place in self.released:
                np.maximum(self.released[place], clock, out=self.released[place])
            else:
                self.released[place] = clock.copy()

    def unordered(self, program, epoch):
        """For which of these accesses of programs in these epochs nothing orders this program behind them."""
        clock = self.clocks.get(self.program)
        return np.ones(program.shape, dtype=bool) if clock is None else clock[program] <= epoch

    def race(self, buffer, index, write, atomic, place):
        buffer.watch()
        for row, does in ((buffer.writer, "wrote"),) + (((buffer.reader, "read"), (buffer.other, "read")) if write else ()):
            program = row[0][index]
            met = (program >= 0) & (program != self.program)
            if not met.any():
                continue
            program, epoch, before, element = program[met], row[1][index][met], row[2][index][met], index[met]
            bad = self.unordered(program, epoch)
            if atomic:
                bad &= (before & 1) == 0
            if bad.any():
                at = int(np.nonzero(bad)[0][0])
                other = int(before[at]) >> 1
                message = (
                    f"race on {buffer.at(int(element[at]))}: {self.who()} {'writes' if write else 'reads'} it at {mark(place)}, and "
                    f"{named(self.index_of(int(program[at])))} {does} it at {mark(other)}, with no synchronisation between them"
                )
                self.find("race", message, buffer, int(element[at]), place, other)
        if write:
            buffer.writer[0][index], buffer.writer[1][index] = self.program, self.epoch(self.program)
            buffer.writer[2][index] = (place << 1) | atomic
            return
        program = buffer.reader[0][index]
        others = index[(program >= 0) & (program != self.program)]
        buffer.other[:, others] = buffer.reader[:, others]
        buffer.reader[0][index], buffer.reader[1][index] = self.program, self.epoch(self.program)
        buffer.reader[2][index] = (place << 1) | atomic


def mark(place):
    return "@{%x}" % place


class Watched:
    """Stands for the part of the interpreter that follows addresses."""

    def __init__(self, real, memory):
        self.real, self.memory = real, memory
        self.semantics = {
            real.MEM_SEMANTIC.ACQUIRE: "acquire",
            real.MEM_SEMANTIC.RELEASE: "release",
            real.MEM_SEMANTIC.ACQUIRE_RELEASE: "acq_rel",
            real.MEM_SEMANTIC.RELAXED: "relaxed",
        }

    def __getattr__(self, name):
        return getattr(self.real, name)

    def load(self, pointers, mask, other, dtype):
        memory = self.memory
        memory.access("read", pointers, mask, np.dtype(dtype).itemsize, False, bool(memory.atomic), memory.atomic or None)
        return self.real.load(pointers, mask, other, dtype)

    def store(self, pointers, value, mask):
        memory = self.memory
        memory.access("write", pointers, mask, value.dtype.itemsize, True, bool(memory.atomic), memory.atomic or None, value)
        return self.real.store(pointers, value, mask)

    def atomic_rmw(self, operation, pointers, value, mask, sem):
        self.memory.access("atomic operation", pointers, mask, value.dtype.itemsize, True, True, self.semantics[sem])
        return self.real.atomic_rmw(operation, pointers, value, mask, sem)

    def atomic_cas(self, pointers, expected, value, sem):
        self.memory.access("atomic operation", pointers, None, value.dtype.itemsize, True, True, self.semantics[sem])
        return self.real.atomic_cas(pointers, expected, value, sem)
