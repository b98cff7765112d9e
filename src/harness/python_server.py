"""Imports libraries once, and makes a copy of itself for each call. kforge puts `known.py` before this file and runs both as `python -c PROGRAM START`. START
is JSON. Each line of standard input is a request; each line of standard output says how a copy ended. Copies write to standard error.

A copy confines itself before it reads the program of its call, so that it can do no more than a process that was confined when it started. This process runs
no code of a package, and does not even read requests: each copy is made before its request comes, so that all begin alike.
"""

# The modules that every program in Python has when it begins.
AT_START = set(sys.modules)

import atexit
import gc
import json
import os
import select
import signal
import time
import traceback
import types

# The exit status by which kforge is told that this Python cannot serve.
CANNOT_SERVE = 71

try:
    import ctypes
    import resource
except ImportError:
    # Python is often built without the library that `ctypes` needs.
    sys.exit(CANNOT_SERVE)
if not os.path.isdir("/proc/self/fd"):
    sys.exit(CANNOT_SERVE)

# Numbers of system calls and of `prctl`, which are the same on every architecture; the library of C on this machine may be older than some of them.
PIDFD_OPEN, CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 434, 444, 445, 446
PATH_BENEATH = 1
SET_DEATH_SIGNAL, SET_SECCOMP, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVILEGES = 1, 22, 36, 38
# Of `personality`: what only asks, and the bit that turns address randomisation off.
ASK, NO_RANDOMIZATION = 0xFFFFFFFF, 0x0040000
SECCOMP_FILTER = 2
# The exit status of a copy that could not be confined.
REFUSED = 70
# How long this process waits for the end of processes that it has killed, in seconds.
PATIENCE = 5
# How many copies in a row may end before they have read a request.
IDLE_ENDS = 3
# How many copies are made before the first call.
REHEARSALS = 3

c = ctypes.CDLL(None, use_errno=True)
c.syscall.restype = ctypes.c_long
c.personality.argtypes = [ctypes.c_ulong]


class RulesetAttr(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


class FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def checked(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))
    return result


def system(number, *arguments):
    """A system call. Arguments are numbers, or pointers."""
    numbers = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return checked(c.syscall(ctypes.c_long(number), *numbers), "system call %d" % number)


def prctl(option, *arguments):
    values = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    values += [ctypes.c_ulong(0)] * (4 - len(values))
    checked(c.prctl(option, *values), "prctl %d" % option)


def restrict_files(described):
    attr = RulesetAttr(*described["handled"])
    ruleset = system(CREATE_RULESET, ctypes.byref(attr), ctypes.sizeof(attr), 0)
    for path, rights in described["rules"]:
        try:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        beneath = PathBeneathAttr(rights, folder)
        system(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(beneath), 0)
        os.close(folder)
    system(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def close_descriptors():
    """Closes every descriptor but the three standard ones."""
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:
        if descriptor > 2:
            try:
                os.close(descriptor)
            except OSError:
                # The descriptor by which the folder was listed.
                pass


def confine(keep):
    """Gives up everything that `keep` does not name. kforge describes it in `confine/portable.rs`."""
    close_descriptors()
    for name, value in keep["limits"]:
        kind = getattr(resource, name)
        most = resource.getrlimit(kind)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (value, value))
    prctl(SET_NO_NEW_PRIVILEGES, 1)
    if keep["files"] is not None:
        restrict_files(keep["files"])
    for digits in keep["filters"]:
        instructions = ctypes.create_string_buffer(bytes.fromhex(digits))
        program = FilterProgram(len(digits) // 16, ctypes.addressof(instructions))
        prctl(SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(program))


def become(server, began):
    """Turns this copy into the process of its call. Writes to `began` once it has read the call. Returns the call."""
    # Processes that it leaves behind are found by its group, which they cannot leave.
    os.setpgid(0, 0)
    prctl(SET_DEATH_SIGNAL, int(signal.SIGKILL))
    if os.getppid() != server:
        sys.exit(0)
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 1 << 16)
        if not part:
            # The worker has ended.
            sys.exit(0)
        line += part
    os.write(began, b"\n")
    request = json.loads(line)
    # Opened again, because flags of a description that copies share would outlive this one.
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (2, "/proc/self/fd/2", os.O_WRONLY)):
        opened = os.open(path, flags)
        os.dup2(opened, number)
    os.dup2(2, 1)
    os.chdir(request["folder"])
    confine(request["keep"])
    return request


def run(request):
    """Runs the program of a call as Python runs a script. Returns its exit status."""
    if "numpy.random" in sys.modules:
        # Copies would all draw the same numbers. Python does this for its own.
        sys.modules["numpy.random"].seed()
    path = os.path.join(request["folder"], request["program"])
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    sys.argv = [request["program"]] + request["arguments"]
    status = 0
    try:
        with open(path) as file:
            program = compile(file.read(), path, "exec")
        exec(program, main.__dict__)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            status = (error.code or 0) & 0xFF
        else:
            sys.stdout.flush()
            print(error.code, file=sys.stderr)
            status = 1
    except BaseException as error:
        sys.stdout.flush()
        traceback.print_exception(type(error), error, error.__traceback__.tb_next)
        status = 1
    # As Python does before it ends: threads of the program may still write its results.
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def copied(server, began):
    """What a copy does. Returns its exit status."""
    try:
        request = become(server, began)
    except Exception as error:
        print("cannot start the program: %s" % error, file=sys.stderr, flush=True)
        return REFUSED
    try:
        return run(request)
    except SystemExit:
        return 1


def one(work):
    """Makes a copy that does `work`, and waits until it and everything that it started have ended. Returns how it ended, and whether it began a call; none if
    the worker has ended."""
    server = os.getpid()
    calls, began = os.pipe()
    copy = os.fork()
    if copy == 0:
        status = 1
        try:
            status = work(server, began)
        except SystemExit as error:
            status = error.code
        finally:
            os._exit(status)
    os.close(began)
    ended = system(PIDFD_OPEN, copy, 0)
    watched = select.poll()
    watched.register(ended, select.POLLIN)
    # Only that the worker has closed it: what it holds is the copy's.
    watched.register(0, 0)
    is_over = ended not in [descriptor for descriptor, _ in watched.poll()]
    # Before the copy is reaped, its number belongs to its group alone.
    stop(copy)
    os.close(ended)
    status = os.waitpid(copy, 0)[1]
    # A copy closes its end before it runs the program of its call, and nothing else that could hold it is left.
    has_begun = os.read(calls, 1) != b""
    os.close(calls)
    if is_over or not reaped():
        return None
    if os.WIFSIGNALED(status):
        return {"signalled": os.WTERMSIG(status)}, has_begun
    return {"exited": os.WEXITSTATUS(status)}, has_begun


def rehearsed(server, began):
    """What a copy does that is made before the first call: it ends as one that has begun a call."""
    os.setpgid(0, 0)
    os.write(began, b"\n")
    return 0


def answered(work, output):
    """Makes a copy that does `work`, and reports on `output` how it ended if it began a call. Returns whether it did; none if the worker has ended."""
    ended = one(work)
    if ended is None:
        return None
    how, has_begun = ended
    if has_begun:
        os.write(output, json.dumps(how).encode() + b"\n")
    return has_begun


def stop(copy):
    """Kills a copy and everything that it started."""
    for kill in (os.kill, os.killpg):
        try:
            kill(copy, signal.SIGKILL)
        except ProcessLookupError:
            # It ended before it had a group.
            pass


def reaped():
    """Waits for all children of this process, which were killed. Returns whether none is left."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return True
    return False


def begin_again(start):
    """Starts this program again, with another START."""
    with open("/proc/self/cmdline", "rb") as file:
        command = file.read().split(b"\0")[:-1]
    command[-1] = json.dumps(start).encode()
    os.execv(sys.executable, command)


def lay_out_alike(start):
    """Begins again without address randomisation, unless that is so already or the system does not permit it: code that orders things by their addresses then
    gives the same results more often."""
    now = c.personality(ASK)
    if now != -1 and not now & NO_RANDOMIZATION and c.personality(now | NO_RANDOMIZATION) != -1 and c.personality(ASK) & NO_RANDOMIZATION:
        begin_again(start)


def imported(start):
    """Imports what copies will use. Returns whether that was possible. What the libraries print is not shown: a copy that has to import them shows it."""
    streams = [os.dup(1), os.dup(2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        exec(compile(start["imports"], "imports", "exec"), {"call": start["call"], "Known": Known, "OnlyKnown": OnlyKnown, "os": os, "sys": sys})
        # A copy has only one thread, and what the others have locked would stay locked in it.
        return len(os.listdir("/proc/self/task")) == 1
    except (Exception, SystemExit):
        return False
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, stream in zip((1, 2), streams):
            os.dup2(stream, number)
            os.close(stream)
        os.close(nothing)


def serve():
    start = json.loads(sys.argv[1])
    # This process lives long, and must not hold what its parent had open by chance.
    close_descriptors()
    lay_out_alike(start)
    # What a program lost by its end, however it ended, becomes this process's, so that it is reaped here.
    prctl(SET_CHILD_SUBREAPER, 1)
    # A copy finds the modules that a program of its own would find, and looks for others in the same places.
    for name in set(sys.modules) - AT_START:
        del sys.modules[name]
    paths, finders = list(sys.path), list(sys.meta_path)
    if start["imports"] and not imported(start):
        # Every copy then imports what it needs.
        begin_again(dict(start, imports=""))
    sys.path[:], sys.meta_path[:] = paths, finders
    # Objects that the collector passes over are not written to, so that copies share their memory.
    gc.collect()
    gc.freeze()
    # What a copy and its answer leave in this process is there before the first call, so that no call finds addresses of its own.
    nothing = os.open(os.devnull, os.O_WRONLY)
    for _ in range(REHEARSALS):
        answered(rehearsed, nothing)
    os.close(nothing)
    idle_ends = 0
    while idle_ends < IDLE_ENDS:
        has_begun = answered(copied, 1)
        if has_begun is None:
            break
        # A copy that was killed before its call, for want of memory perhaps, is no answer to it.
        idle_ends = 0 if has_begun else idle_ends + 1


serve()
