"""Imports libraries once, and makes a copy of itself for each call. kforge puts `known.py` before this file and runs both as `python -c PROGRAM START`. START
is JSON. Each line of standard input is a request; each line of standard output says how a copy ended. Copies write to standard error.

A copy confines itself before it reads the program of its call, so that it can do no more than a process that was confined when it started. This process runs
no code of a package.
"""

import gc
import json
import os
import select
import signal
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

# Numbers of system calls and of `prctl`, which are the same on every architecture; the library of C on this machine may be older than some of them.
PIDFD_OPEN, CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 434, 444, 445, 446
PATH_BENEATH = 1
SET_DEATH_SIGNAL, SET_SECCOMP, SET_NO_NEW_PRIVILEGES = 1, 22, 38
SECCOMP_FILTER = 2
# The exit status of a copy that could not be confined.
REFUSED = 70

c = ctypes.CDLL(None, use_errno=True)
c.syscall.restype = ctypes.c_long


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


def become(request, server):
    """Turns this copy into a process that runs a program. Returns its exit status."""
    try:
        # Processes that it leaves behind are found by its group, which they cannot leave.
        os.setpgid(0, 0)
        prctl(SET_DEATH_SIGNAL, int(signal.SIGKILL))
        if os.getppid() != server:
            return REFUSED
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.chdir(request["folder"])
        confine(request["keep"])
    except OSError as error:
        print("cannot start the program: %s" % error, file=sys.stderr)
        return REFUSED
    if "numpy.random" in sys.modules:
        # Copies would all draw the same numbers. Python does this for its own.
        sys.modules["numpy.random"].seed()
    main = types.ModuleType("__main__")
    main.__file__ = request["program"]
    sys.modules["__main__"] = main
    sys.argv = [request["program"]] + request["arguments"]
    try:
        with open(request["program"]) as file:
            program = compile(file.read(), request["program"], "exec")
        exec(program, main.__dict__)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        sys.stdout.flush()
        print(error.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.stdout.flush()
        traceback.print_exc()
        return 1
    return 0


def answer(line):
    """Makes a copy for one request, and waits until it has ended."""
    request = json.loads(line)
    server = os.getpid()
    copy = os.fork()
    if copy == 0:
        status = REFUSED
        try:
            status = become(request, server)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    ended = system(PIDFD_OPEN, copy, 0)
    ready, _, _ = select.select([0, ended], [], [])
    if ended not in ready:
        # Nobody waits for the answer any more.
        stop(copy)
        sys.exit(0)
    # Before the copy is reaped, its number belongs to its group alone.
    stop(copy)
    os.close(ended)
    status = os.waitpid(copy, 0)[1]
    if os.WIFSIGNALED(status):
        return {"signalled": os.WTERMSIG(status)}
    return {"exited": os.WEXITSTATUS(status)}


def stop(copy):
    """Kills a copy and everything that it started."""
    for kill in (os.kill, os.killpg):
        try:
            kill(copy, signal.SIGKILL)
        except ProcessLookupError:
            # It ended before it had a group.
            pass


def start_over(start):
    """Begins again without importing anything: every copy then imports what it needs."""
    with open("/proc/self/cmdline", "rb") as file:
        command = file.read().split(b"\0")[:-1]
    command[-1] = json.dumps(dict(start, imports="")).encode()
    os.execv(sys.executable, command)


def imported(start):
    """Imports what copies will use. Returns whether that was possible. What the libraries print is not shown: a copy that has to import them shows it."""
    streams = [os.dup(1), os.dup(2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        exec(compile(start["imports"], "imports", "exec"), {"call": start["call"], "Known": Known, "os": os, "sys": sys})
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
    # A copy looks for modules as if it had imported these itself.
    paths, finders = list(sys.path), list(sys.meta_path)
    if start["imports"] and not imported(start):
        start_over(start)
    sys.path[:], sys.meta_path[:] = paths, finders
    # Objects that the collector passes over are not written to, so that copies share their memory.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(answer(line)), flush=True)


serve()
