# Describes each task in a process of its own, which the system ends when its time is over. kforge puts this file before a driver, which defines `described`: what
# it finds of a task.

import signal


def answer(entry):
    try:
        return {"found": described(entry)}
    except Unfit as error:
        return {"refused": {"kind": error.kind, "message": error.message, "line": error.line}}
    except Refused as error:
        return {"refused": {"kind": "device", "message": str(error), "line": line_in_task(error.__traceback__)}}
    except ImportError as error:
        return {"refused": {"kind": "import", "message": str(error), "line": line_in_task(error.__traceback__)}}
    except BaseException as error:
        text = " ".join(("%s: %s" % (type(error).__name__, error)).split())[:300]
        return {"refused": {"kind": "error", "message": text, "line": line_in_task(error.__traceback__)}}


def apart(number, entry):
    """Describes a task in a process of its own."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    signal.alarm(call["seconds"])
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    call["root"] = os.path.join(call["root"], entry["folder"])
    call["module"] = entry["file"]
    sys.meta_path[0].package = os.path.realpath(call["root"])
    found = json.dumps(answer(entry))
    with open("answer-%d.json" % number, "w") as file:
        file.write(found)
    os._exit(0)
