"""Lets cuwarden empty the caches of PyTorch and CuPy where somebody else's request would fail.

    python3 -m cuwarden train.py ...     an unmodified script; `-m module` and `-c text` work as well
    import cuwarden; cuwarden.register()     the same, from inside

Rescues are on unless CUWARDEN_POOL=off. In a process that does not run under cuwarden all of it
does nothing.
"""

import atexit
import ctypes
import io
import os
import runpy
import sys
import types

# Who calls Python needs the interpreter's lock: where the thread whose request failed has it, none of
# these is called. The rest are libraries that may hold their allocator's lock while they call CUDA.
GIL = "python:gil"
RECLAIMERS = {
    "torch": [("PyTorch", "libc10_cuda.so"), ("PyTorch, pinned", "libc10_cuda.so,libtorch_cuda.so")],
    "cupy": [("CuPy", "/cupy/cuda/memory."), ("CuPy, pinned", "/cupy/cuda/pinned_memory.")],
}

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)
_registered = {}  # name -> (number, function): what is called must stay


def _torch(device):
    cuda = getattr(sys.modules["torch"], "cuda", None)  # it may be being imported
    if cuda is None or not cuda.is_initialized():
        return 0
    # What the allocator itself says of its bytes takes its lock, and some versions hold Python's
    # meanwhile.
    before = cuda.mem_get_info(device)[0]
    cuda.empty_cache()
    return cuda.mem_get_info(device)[0] - before


def _torch_pinned():
    empty = getattr(getattr(sys.modules["torch"], "_C", None), "_host_emptyCache", None)
    if empty is None:
        return 0
    empty()
    return 1  # how much it was nobody says


def _cupy(device):
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(device):
        pool = cupy.get_default_memory_pool()
        before = pool.total_bytes()
        pool.free_all_blocks()
        return before - pool.total_bytes()


def _cupy_pinned():
    pool = sys.modules["cupy"].get_default_pinned_memory_pool()
    had_blocks = pool.n_free_blocks() > 0
    pool.free_all_blocks()
    return 1 if had_blocks else 0


# The device's, and page-locked memory's.
_EMPTY = {"torch": (_torch, _torch_pinned), "cupy": (_cupy, _cupy_pinned)}


def _library():
    """The shim, where this process runs under it."""
    library = ctypes.CDLL(None)
    try:
        register, unregister = (
            library.cuwarden_1_register_reclaimer,
            library.cuwarden_1_unregister_reclaimer,
        )
    except AttributeError:
        return None
    register.argtypes = [ctypes.c_char_p, ctypes.c_char_p, _FUNCTION, ctypes.c_void_p]
    register.restype = unregister.restype = ctypes.c_int
    unregister.argtypes = [ctypes.c_int]
    return library


def register_reclaimer(name, modules, give_back):
    """`give_back(device, bytes)` returns how many bytes it gave back; device -1 is page-locked memory.

    It is called in a thread of its own. `modules`: parts of paths of libraries, comma-separated; it
    is left out where one of them is on the stack of the request that failed. One that was registered
    by the same name before is not called any more. False: this process does not run under cuwarden,
    or it was not accepted, and a line on stderr says why.
    """
    library = _library()
    if library is None:
        return False
    unregister_reclaimer(name)
    told = set()

    def call(device, wanted, _):
        try:
            return max(0, int(give_back(device, wanted) or 0))
        except BaseException as error:  # must not reach the C caller
            line = f"cuwarden: reclaimer {name}: {type(error).__name__}: {error}"
            if line not in told:
                print(line, file=sys.stderr)
            told.add(line)
            return 0

    function = _FUNCTION(call)
    number = library.cuwarden_1_register_reclaimer(
        name.encode(), ",".join(filter(None, [GIL, modules])).encode(), function, None
    )
    if number != 0:
        _registered[name] = (number, function)
    return number != 0


def unregister_reclaimer(name):
    """False: there is none of that name, or a call of it has not returned within two seconds."""
    library = _library()
    if library is None or name not in _registered:
        return False
    if library.cuwarden_1_unregister_reclaimer(_registered[name][0]) != 0:
        return False
    del _registered[name]
    return True


def _register_framework(framework):
    device, pinned = _EMPTY[framework]
    (name, modules), (pinned_name, pinned_modules) = RECLAIMERS[framework]
    register_reclaimer(name, modules, lambda ordinal, _: device(ordinal) if ordinal >= 0 else 0)
    register_reclaimer(pinned_name, pinned_modules, lambda ordinal, _: pinned() if ordinal < 0 else 0)


class _Imports:
    """Sees the first import of a framework, and leaves it to those who do it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in RECLAIMERS and RECLAIMERS[name][0][0] not in _registered:
            _register_framework(name)
        return None


def register():
    """PyTorch's and CuPy's caches, as soon as they are imported. False: not under cuwarden."""
    if _library() is None:
        return False
    for framework in RECLAIMERS:
        if framework in sys.modules:
            _register_framework(framework)
    if _Imports not in sys.meta_path:
        sys.meta_path.insert(0, _Imports)
    return True


# Python code cannot be called once the interpreter ends.
atexit.register(lambda: [unregister_reclaimer(name) for name in list(_registered)])


USAGE = "usage: python3 [OPTION...] -m cuwarden (SCRIPT | -m MODULE | -c TEXT) [ARGUMENT...]"


def _run_text(code, name, first_path):
    """As the interpreter itself would: the text is the module __main__, and stays it."""
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if name is not None:
        main.__file__ = name
    sys.modules["__main__"] = main
    # `-m` has put the current folder there.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = first_path
    exec(code, main.__dict__)


def _main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    # This file is __main__ now, and is not to be it any more.
    import cuwarden

    cuwarden.register()
    first, rest = arguments[0], arguments[1:]
    if first in ("-m", "-c") and not rest:
        print(f"cuwarden: {first} needs an argument\n{USAGE}", file=sys.stderr)
        return 2
    if first == "-m":
        sys.argv = rest
        sys.modules["__main__"] = types.ModuleType("__main__")
        runpy._run_module_as_main(rest[0])
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        _run_text(compile(rest[0], "<string>", "exec"), None, "")
    elif first.startswith("-"):
        print(f"cuwarden: {first}: options of Python come before -m\n{USAGE}", file=sys.stderr)
        return 2
    else:
        sys.argv = arguments
        try:
            with io.open_code(os.path.abspath(first)) as file:
                text = file.read()
        except OSError as error:
            print(f"cuwarden: can't open {first}: {error.strerror}", file=sys.stderr)
            return 2
        _run_text(compile(text, first, "exec"), first, os.path.dirname(os.path.abspath(first)))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
