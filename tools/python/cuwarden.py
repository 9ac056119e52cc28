"""Lets cuwarden empty the caches of PyTorch and CuPy where somebody else's request would fail.

    python3 -m cuwarden train.py ...     an unmodified script; `-m module` and `-c text` work as well
    import cuwarden; cuwarden.register()     the same, from inside

Rescues are to be on (CUWARDEN_POOL=rescue). In a process that does not run under cuwarden all of it
does nothing. A framework that is imported later is found when it is needed.
"""

import atexit
import ctypes
import runpy
import sys

# Libraries that may hold a lock, while they call CUDA, that the emptying of their cache takes.
TORCH_MODULES = "libc10_cuda.so,libtorch_cuda.so"
CUPY_MODULES = "/cupy/cuda/memory.,/cupy/cuda/pinned_memory."

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)
_registered = {}  # name -> (number, function): what is called must stay


def _torch(device):
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    if device < 0:
        empty_pinned = getattr(torch._C, "_host_emptyCache", None)
        if empty_pinned is not None:
            empty_pinned()
        return 0  # how much it was is not known
    before = torch.cuda.memory_reserved(device)
    torch.cuda.empty_cache()
    return before - torch.cuda.memory_reserved(device)


def _cupy(device):
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return 0
    if device < 0:
        cupy.get_default_pinned_memory_pool().free_all_blocks()
        return 0
    with cupy.cuda.Device(device):
        pool = cupy.get_default_memory_pool()
        before = pool.total_bytes()
        pool.free_all_blocks()
        return before - pool.total_bytes()


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
    is left out where one of them is on the stack of the request that failed. False: this process
    does not run under cuwarden, or it was not accepted, and a line on stderr says why.
    """
    library = _library()
    if library is None or name in _registered:
        return name in _registered

    def call(device, wanted, _):
        try:
            return max(0, int(give_back(device, wanted) or 0))
        except BaseException as error:  # must not reach the C caller
            print(f"cuwarden: reclaimer {name}: {type(error).__name__}: {error}", file=sys.stderr)
            return 0

    function = _FUNCTION(call)
    number = library.cuwarden_1_register_reclaimer(
        name.encode(), modules.encode() if modules else None, function, None
    )
    if number != 0:
        _registered[name] = (number, function)
    return number != 0


def unregister_reclaimers():
    """All of this module's. Python code cannot be called once the interpreter ends."""
    library = _library()
    for name in list(_registered):
        number, _ = _registered[name]
        if library.cuwarden_1_unregister_reclaimer(number) == 0:
            del _registered[name]


def register():
    """PyTorch's and CuPy's caches. Returns whether this process runs under cuwarden."""
    done = register_reclaimer("PyTorch", TORCH_MODULES, lambda device, _: _torch(device))
    return register_reclaimer("CuPy", CUPY_MODULES, lambda device, _: _cupy(device)) and done


atexit.register(unregister_reclaimers)


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python3 -m cuwarden [-m MODULE | -c TEXT | SCRIPT] [ARGUMENT...]")
        return 0 if arguments else 2
    # As `python3 -m cuwarden` this file is __main__, which the script becomes.
    import cuwarden

    cuwarden.register()
    if arguments[0] in ("-m", "-c") and len(arguments) < 2:
        print(f"cuwarden: {arguments[0]} needs an argument", file=sys.stderr)
        return 2
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        import os

        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
