"""What functions of a package may import. kforge puts this file before each driver, so that both are one program."""

import os
import sys


class Known:
    """Lets in the modules that enter keys, and refuses all others, whether they are installed or not."""

    def __init__(self, package, folders, left_out, libraries="numpy"):
        self.package = os.path.realpath(package)
        self.folders = [os.path.realpath(folder) for folder in folders]
        self.left_out = left_out
        self.libraries = libraries

    def lets_in(self, place):
        place = os.path.realpath(place)
        if (place + os.sep).startswith(self.package + os.sep):
            return True
        below = [place[len(folder) :] for folder in self.folders if (place + os.sep).startswith(folder + os.sep)]
        return any(all(step not in self.left_out for step in rest.split(os.sep)) for rest in below)

    def find_spec(self, name, path=None, target=None):
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is None:
                continue
            if spec.origin in ("built-in", "frozen"):
                return spec
            places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])
            if places and all(self.lets_in(place) for place in places):
                return spec
            raise ImportError(
                "`%s` is neither of this package nor of %s nor of Python's own library, and kforge would not know that it changed: "
                "put what is needed of it into a file beside the reference" % (name, self.libraries)
            )
        return None
