"""Which atoms of a task can have other values, and small and ragged sizes. kforge puts this file behind `meta.py`."""

# The most evaluations of one task. A number, not a time: two imports must give the same.
EVALUATIONS = 240
# Sizes to try by the number of axes of the largest input.
SMALL = {1: (128, 64, 256), 2: (32, 64, 16), 3: (16, 8, 32)}
SMALL_OF_MANY = (8, 4, 16)
RAGGED = {1: (257, 131, 67), 2: (37, 29, 53, 19, 23, 65), 3: (13, 11, 17, 7, 19)}
RAGGED_OF_MANY = (5, 7, 9, 11, 6)
# Sizes that also fit where heads, groups and strides divide them.
DIVISIBLE = (12, 16, 20, 24, 32, 36, 40, 48, 60, 64, 96, 128, 160, 192, 224, 256)


class Varied:
    """The atoms that vary, in groups that have one value, and the runs that show it."""

    def __init__(self, task, base):
        self.task = task
        self.form = task.form(base)
        self.probes = [{"values": self.base_values(), **task.record(base)}]
        self.base = self.probes[0]
        self.groups = []

    def base_values(self):
        return [atom["value"] for atom in self.task.atoms]

    def attempt(self, values, forward=True):
        """The record of a run with other values; none if the task does not run with them or has another form."""
        if self.task.evaluations >= EVALUATIONS:
            return None
        try:
            run = self.task.run(values, forward=forward)
            form = self.task.form(run)
            if form != self.form[: len(form)]:
                return None
            record = self.task.record(run)
        except Exception:
            return None
        every = self.base_values()
        for at, value in values.items():
            every[at] = value
        return {"values": every, **record}

    def others(self, value):
        """Other values to try."""
        tried = []
        for other in (2 * value, value + 1, value // 2, 3 * value, value + 2):
            if other >= min(value, 1) and other != value and other not in tried:
                tried.append(other)
        return tried

    def vary(self, group, enough=2):
        """Whether a group of atoms can have other values."""
        found = []
        for value in self.others(self.task.atoms[group[0]]["value"]):
            probe = self.attempt({at: value for at in group})
            if probe is not None:
                found.append(probe)
            if len(found) == enough:
                break
        self.probes += found
        return found

    def followed(self):
        """The extents of inputs and the arguments of the constructor that follow some constant."""
        extents, arguments = set(), set()
        for at, atom in enumerate(self.task.atoms):
            for value in self.others(atom["value"])[:2]:
                probe = self.attempt({at: value}, forward=False)
                if probe is None:
                    continue
                extents |= {(i, axis) for i, shape in enumerate(probe["inputs"]) for axis, n in enumerate(shape) if n != self.base["inputs"][i][axis]}
                arguments |= {i for i, value in enumerate(probe["init"]) if value != self.base["init"][i]}
        return extents, arguments

    def add_virtual(self, init):
        """Atoms for integers that no constant gives."""
        extents, arguments = self.followed()
        for at, (path, value) in enumerate(integers(init)):
            if at not in arguments and value >= 0:
                self.task.atoms.append({"kind": "init", "path": path, "value": value})
        for i, shape in enumerate(self.base["inputs"]):
            for axis, value in enumerate(shape):
                if (i, axis) not in extents:
                    self.task.atoms.append({"kind": "extent", "input": i, "axis": axis, "value": value})
        self.base["values"] = self.base_values()

    def find_groups(self):
        atoms = self.task.atoms
        alone, stuck = {}, []
        for at, atom in enumerate(atoms):
            if atom["value"] < 0:
                continue
            found = self.vary([at])
            if found:
                alone[at] = found
            else:
                stuck.append(at)
        groups = [[at] for at in alone]
        # What cannot vary alone may have to equal something else.
        while stuck:
            first = stuck.pop(0)
            equal = [at for at in stuck if atoms[at]["value"] == atoms[first]["value"]]
            partners = [[other] for other in equal] + ([equal] if len(equal) > 1 else [])
            partners += [group for group in groups if atoms[group[0]]["value"] == atoms[first]["value"]]
            for partner in partners:
                group = sorted([first, *partner])
                if self.vary(group):
                    groups = [g for g in groups if g != partner] + [group]
                    stuck = [at for at in stuck if at not in partner]
                    break
        self.groups = sorted(g for g in groups if not self.is_idle(g))
        # Each probe is one of these groups: all atoms of a group have one value, and others have their own.
        grouped = {at for group in self.groups for at in group}
        own = self.base["values"]
        is_one = lambda values: all(len({values[at] for at in group}) == 1 for group in self.groups)
        is_own = lambda values: all(at in grouped or value == own[at] for at, value in enumerate(values))
        self.probes = [probe for probe in self.probes if is_one(probe["values"]) and is_own(probe["values"])]

    def is_idle(self, group):
        """Whether a group stands only for arguments of the constructor that no constant names and that change no shape of an input or of the state."""
        if any(self.task.atoms[at]["kind"] != "init" for at in group):
            return False
        return not any(self.changes(group, "inputs")) and not any(self.changes(group, "state"))

    def changes(self, group, what):
        """Whether each probe of only this group changes these shapes."""
        for probe in self.probes[1:]:
            differs = [at for at, value in enumerate(probe["values"]) if value != self.base["values"][at]]
            if differs == group:
                yield probe[what] != self.base[what]

    def shrink(self, ragged):
        """A probe with smaller sizes; none if there is none."""
        atoms = self.task.atoms
        rank = max([len(shape) for shape in self.base["inputs"]], default=0)
        pools = (RAGGED, RAGGED_OF_MANY) if ragged else (SMALL, SMALL_OF_MANY)
        pool = pools[0].get(max(rank, 1), pools[1])
        values, best = {}, None
        by_size = sorted(self.groups, key=lambda g: (-atoms[g[0]]["value"], g))
        for group in by_size:
            value = atoms[group[0]]["value"]
            is_extent = any(self.changes(group, "inputs"))
            if value <= 16 and not is_extent or value <= 2:
                continue
            turn = self.groups.index(group) % len(pool)
            own = [*pool[turn:], *pool[:turn]] if ragged else list(pool)
            few = [3, 2, 5] if ragged else [2, 4]
            candidates = few if value <= 8 else own + few if value <= 16 else own + list(DIVISIBLE) + [value // 8, value // 4, value // 2]
            for candidate in [c for n, c in enumerate(candidates) if 0 < c < value and c not in candidates[:n]]:
                probe = self.attempt({**values, **{at: candidate for at in group}})
                if probe is not None:
                    values.update({at: candidate for at in group})
                    best = probe
                    break
        return best
