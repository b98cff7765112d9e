"""Comparisons: one kernel with itself, whose machine code differs by a tag, and with one that does two per cent less. `kforge compare` decides each in pairs.

Bases are machine code in the store, named by digest: the head is built once, and a comparison then measures its pairs and nothing else.
"""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

from .lab import ROOT

ROUNDS = 8000
# Two per cent more.
SLOWED = 8160


def folder_of(lab):
    """The package, with all bases compiled: made once for both parts."""
    folder = lab.folder / "planted"
    return folder if folder.exists() else lab.copy("planted", ROOT / "tests/gpu/planted")


def state(folder, rounds, tags):
    manifest = folder / "kernel.toml"
    text = re.sub(r"tune\.ROUNDS = .*", f"tune.ROUNDS = [{rounds}]", manifest.read_text())
    manifest.write_text(re.sub(r"tune\.TAG = .*", f"tune.TAG = {list(tags)}", text))


def bases(lab, folder, tags):
    """Digests of machine code that differs by the tag."""
    state(folder, ROUNDS, tags)
    done = lab.run(["check", "--target", "gpu"], folder)
    if done.code != 0:
        raise RuntimeError(f"the bases do not compile: {done.last()}")

    def digest(tag):
        said = lab.run(["explain", "--json", f"planted/hold/ROUNDS={ROUNDS},TAG={tag}/gpu/inspect"], folder)
        return dict(field[:2] for field in json.loads(said.out)["fields"])["inputs.binary"]

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(digest, tags))


def decisions(lab, rounds, times):
    """What so many comparisons decide, as words, how far apart the two were found to be, and seconds a comparison."""
    folder = folder_of(lab)
    against = bases(lab, folder, range(1, times + 1))
    state(folder, rounds, [0])
    built = lab.run(["build", "--target", "gpu"], folder)
    if built.code != 0:
        raise RuntimeError(f"the head is not built: exit {built.code}: {built.last()}")
    words, differences, start = [], [], time.monotonic()
    for base in against:
        done = lab.run(["compare", base, "--kernel", "hold", "--target", "gpu", "--message-format", "json"], folder, limit=120)
        word, difference = decision(done)
        words.append(word)
        differences.append(difference)
    return words, differences, (time.monotonic() - start) / times


def decision(done):
    """A word: what is decided in pairs. Anything else is no decision: machine code that is equal, say, is `same` unmeasured."""
    try:
        rows = json.loads(done.out)["rows"]
    except (ValueError, KeyError):
        return f"exit {done.code}: {done.last()}", None
    if len(rows) != 1:
        return f"{len(rows)} rows", None
    found = rows[0]["decision"]
    if not found["because"].startswith("in pairs on"):
        return f"not in pairs: {found['because']}", None
    return found["change"], found["difference"]


def tally(words):
    return {word: words.count(word) for word in sorted(set(words))}


def note(lab, name, words, differences, seconds):
    lab.figures[name] = {
        "comparisons": len(words), "decisions": tally(words), "seconds_each": round(seconds, 3),
        "differences": [None if d is None else [d[0], *(d[1] or [])] for d in differences],
    }


def same(lab, times):
    words, differences, seconds = decisions(lab, ROUNDS, times)
    decided = sum(word in ("slower", "faster") for word in words)
    known = sum(word in ("slower", "faster", "same", "undecided") for word in words)
    note(lab, "same", words, differences, seconds)
    # Two in two hundred.
    held = known == times and decided <= max(times // 100, 0)
    lab.row("same", f"the same work compared {times} times", held, f"{decided} decided differences; {tally(words)}; {seconds:.2f} s each")


def planted(lab, times):
    words, differences, seconds = decisions(lab, SLOWED, times)
    slower = words.count("slower")
    note(lab, "planted", words, differences, seconds)
    lab.row("planted", f"two per cent more work, {times} times", slower >= 0.95 * times, f"{slower} slower; {tally(words)}; {seconds:.2f} s each")
