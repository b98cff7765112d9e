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

    def is_of_package(self, place):
        return (os.path.realpath(place) + os.sep).startswith(self.package + os.sep)

    def lets_in(self, place):
        place = os.path.realpath(place)
        if self.is_of_package(place):
            # Only sources enter keys.
            return place.endswith(".py") or os.path.isdir(place)
        below = [place[len(folder) :] for folder in self.folders if (place + os.sep).startswith(folder + os.sep)]
        return any(all(step not in self.left_out for step in rest.split(os.sep)) for rest in below)

    def others(self):
        return [finder for finder in sys.meta_path if finder is not self]

    def find_spec(self, name, path=None, target=None):
        for finder in self.others():
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is None:
                continue
            if spec.origin in ("built-in", "frozen"):
                return spec
            places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])
            if places and all(self.lets_in(place) for place in places):
                return spec
            if spec.origin and self.is_of_package(spec.origin):
                raise ImportError("`%s` is compiled code of this package (%s), and kforge reads only its `.py` files" % (name, os.path.basename(spec.origin)))
            raise ImportError(
                "`%s` is neither of this package nor of %s nor of Python's own library, and kforge would not know that it changed: "
                "put what is needed of it into a file beside the reference" % (name, self.libraries)
            )
        return None


class OnlyKnown(Known):
    """Finds modules for all others. What enters no key is refused to files of the package, and does not exist for libraries: PyTorch asks whether Triton and
    other packages are installed, and does without them.
    """

    def stand_in(self):
        self.replaced = list(sys.meta_path)
        sys.meta_path[:] = [self]

    def others(self):
        return super().others() + self.replaced

    def find_spec(self, name, path=None, target=None):
        try:
            return super().find_spec(name, path, target)
        except ImportError:
            by_library, imports = self.asked()
            if not by_library:
                raise
        if imports:
            raise ModuleNotFoundError("No module named %r" % name, name=name)
        return None

    def asked(self):
        """Whether a library asks, and whether it imports the module, and does not only look for it."""
        frame, imports = sys._getframe(2), False
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith("<frozen") and "%simportlib%s" % (os.sep, os.sep) not in file:
                return self.is_of_library(file), imports
            imports = imports or frame.f_code.co_name == "_find_and_load"
            frame = frame.f_back
        return False, imports

    def is_of_library(self, file):
        file = os.path.realpath(file)
        return not file.startswith(self.package + os.sep) and any(file.startswith(folder + os.sep) for folder in self.folders)

    def find_distributions(self, *context):
        """No key holds which packages are installed, so there are none."""
        return iter(())

    def invalidate_caches(self):
        for finder in self.replaced:
            if hasattr(finder, "invalidate_caches"):
                finder.invalidate_caches()
