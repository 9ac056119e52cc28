"""Lets cuwarden empty the caches of PyTorch and CuPy when another library's request would fail, asks
frameworks for figures of their memory, and marks steps of a program.

    python3 -m cuwarden train.py ARGUMENT...     runs an unmodified script; also `-m MODULE` and `-c TEXT`
    import cuwarden; cuwarden.register()     does the same from inside a program
    cuwarden.step()     marks the start of a step, such as an iteration of a training loop

cuwarden empties caches only if rescues are on: they are, unless CUWARDEN_POOL=off. In a process that
does not run under cuwarden, the functions of this module do nothing. `cuwarden run` brings the module
into Python programs by itself.
"""

import atexit
import ctypes
import io
import os
import runpy
import sys
import types

try:
    # Kept, since a program may put back an older sys.modules.
    import cuwarden_figures as _figures
except ImportError:  # this file alone was copied
    _figures = None

# The name by which a reclaimer says that it needs the interpreter's lock. cuwarden does not call such a
# reclaimer while the thread of the refused request holds that lock.
GIL = "python:gil"
# For each framework, the name and the modules of two reclaimers: one for device memory, one for
# page-locked memory. The modules are libraries that may call CUDA while holding their allocator's lock.
# PyTorch's allocator of page-locked memory (libtorch_cuda.so) holds none while it asks CUDA for memory,
# and does not empty its own cache when it is refused. So a request of its own is served, too.
RECLAIMERS = {
    "torch": [("PyTorch", "libc10_cuda.so"), ("PyTorch, pinned", "libc10_cuda.so")],
    "cupy": [("CuPy", "/cupy/cuda/memory."), ("CuPy, pinned", "/cupy/cuda/pinned_memory.")],
}

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)
_registered = {}  # name -> (number, function); keeps the function alive while it may be called
_replaced = []  # functions whose reclaimer was replaced during a call; kept, since the call may still run


def _torch(device):
    # Missing while torch is being imported, or if the import failed.
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return 0
    # The bytes are read from the driver. torch.cuda.memory_reserved() would take the allocator's lock,
    # and some versions hold the interpreter's lock meanwhile.
    before = cuda.mem_get_info(device)[0]
    cuda.empty_cache()
    return cuda.mem_get_info(device)[0] - before


def _torch_pinned_bytes():
    """Returns the bytes of page-locked memory that PyTorch holds; None if its version does not say."""
    read = getattr(getattr(sys.modules.get("torch"), "cuda", None), "host_memory_stats", None)
    stats = read() if read is not None else {}
    return stats.get("reserved_bytes.current", stats.get("allocated_bytes.current"))


def _torch_pinned():
    torch = sys.modules.get("torch")
    # The private function is older than the public one (PyTorch 2.5).
    empty = getattr(getattr(torch, "_C", None), "_host_emptyCache", None)
    if empty is None:
        memory = getattr(getattr(torch, "accelerator", None), "memory", None)
        empty = getattr(memory, "empty_host_cache", None)
    if empty is None:
        return 0
    before = _torch_pinned_bytes()
    empty()
    return 1 if before is None else before - _torch_pinned_bytes()  # 1 stands for "some"


def _cupy(device):
    cupy = sys.modules.get("cupy")
    if cupy is None:  # the import failed
        return 0
    with cupy.cuda.Device(device):
        pool = cupy.get_default_memory_pool()
        before = pool.total_bytes()
        pool.free_all_blocks()
        return before - pool.total_bytes()


def _cupy_pinned():
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return 0
    pool = cupy.get_default_pinned_memory_pool()
    had_blocks = pool.n_free_blocks() > 0
    pool.free_all_blocks()
    return 1 if had_blocks else 0


# Functions that empty a framework's caches: the one of device memory, the one of page-locked memory.
_EMPTY = {"torch": (_torch, _torch_pinned), "cupy": (_cupy, _cupy_pinned)}


def _library():
    """Returns the ctypes library with cuwarden's functions; None if the process does not run under cuwarden."""
    library = ctypes.CDLL(None)
    try:
        register, unregister = library.cuwarden_1_register_reclaimer, library.cuwarden_1_unregister_reclaimer
    except AttributeError:
        return None
    register.argtypes = [ctypes.c_char_p, ctypes.c_char_p, _FUNCTION, ctypes.c_void_p]
    register.restype = unregister.restype = ctypes.c_int
    unregister.argtypes = [ctypes.c_int]
    return library


_mark_step = getattr(ctypes.CDLL(None), "cuwarden_1_step", None)
_mark_named_step = getattr(ctypes.CDLL(None), "cuwarden_1_named_step", None)


def step(name=None):
    """Marks the start of a step, such as an iteration of a training loop. It lasts until the next call.

    With four or more steps, a report judges leaks by steps: it says how many bytes each step adds, and from
    which step on. For leaked memory, it also lists the named steps in which it was allocated.

    `name` is a str, such as the name of a test, of which 255 bytes are kept. None: the step has
    no name of its own, and the name of an earlier step still holds. step("") ends that name, and starts no
    step.
    """
    if name is None:
        if _mark_step is not None:
            _mark_step()
    elif _mark_named_step is not None:
        _mark_named_step(name.encode(errors="replace"))


def register_reclaimer(name, modules, give_back):
    """Registers a function that cuwarden calls when a request for memory would fail.

    name       str, 1 to 63 bytes in UTF-8. Replaces a reclaimer of this name, whose running call gets two
               seconds to return. If it takes longer, the old function is kept until the process ends.
    modules    str of comma-separated parts of library paths; may be empty. If one of these libraries is
               on the call stack of the refused request, the function is not called for that request.
    give_back  give_back(device, bytes) frees memory and returns the number of bytes it freed. `device`
               is a CUDA ordinal, or -1 for page-locked host memory; `bytes` is the size of the refused
               request. cuwarden calls it in a thread of its own. An exception is reported on stderr.

    Returns False if the process does not run under cuwarden, or the interpreter ends. Returns False, too, if an
    argument is not accepted or 16 reclaimers are registered; a line in cuwarden's log names the reason then.
    """
    library = _library()
    if library is None or _asked_in == [None]:
        return False
    unregister_reclaimer(name)
    told = set()

    def call(device, wanted, _):
        try:
            return max(0, int(give_back(device, wanted) or 0))
        except BaseException as error:  # the C caller cannot handle a Python exception
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
        _replaced.extend(_registered.get(name, ())[1:])
        _registered[name] = (number, function)
    return number != 0


def unregister_reclaimer(name):
    """Unregisters the reclaimer of this name: no new call of it begins.

    Returns False if there is no such reclaimer, or if a running call did not return within two seconds.
    """
    library = _library()
    if library is None or name not in _registered:
        return False
    if library.cuwarden_1_unregister_reclaimer(_registered[name][0]) != 0:
        return False
    del _registered[name]
    return True


# --- figures and reclaimers of frameworks

# The pid of the process in which cuwarden asks for figures; empty: none yet; None: the interpreter ends.
_asked_in = []


def _handlers_code():
    """Returns the code objects of the Python functions that the program has set as signal handlers."""
    signal = sys.modules.get("signal")  # importing it for the first time would set a handler
    codes = set()
    for number in signal.valid_signals() if signal is not None else ():
        handler = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # functools.partial
        for function in (handler, getattr(handler, "__call__", None)):
            codes.add(getattr(getattr(function, "__func__", function), "__code__", None))
    return codes - {None}


def _is_of_the_program(error, handlers):
    """True if a signal handler or a debugger raised the exception `error`, or one that led to it.

    `handlers` are the code objects of the program's signal handlers.
    """
    while error is not None:
        if type(error).__name__ == "BdbQuit":
            return True
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code in handlers:
                return True
            trace = trace.tb_next
        error = error.__cause__ or error.__context__
    return False


def _read_figures(incident, with_sites=False):
    """Stores the figures of the imported frameworks in the ledger; see cuwarden_figures.read().

    `incident`: number of the refused request; 0: none. `with_sites`: True: also stores blocks by call stack.
    Does nothing in a process in which cuwarden has not called _cuwarden_observe(), such as a forked child.
    """
    if _figures is None or _asked_in != [os.getpid()]:
        return
    handlers = _handlers_code()
    _figures.read(incident, with_sites, lambda error: _is_of_the_program(error, handlers))


def _read_last_figures():
    _read_figures(0, with_sites=True)


def _read_last_figures_early():
    """Stores the last figures before the interpreter joins threads, which an exception would prevent."""
    try:
        _read_last_figures()
    except BaseException:
        pass


def _stop_asking():
    _asked_in[:] = [None]
    if _Imports in sys.meta_path:
        sys.meta_path.remove(_Imports)


def _cuwarden_observe(incident):
    """cuwarden calls this in the main thread: after the first CUDA call, and after a refused request.

    `incident` is the number of the refused request; 0: there is none. Raises only exceptions that a signal
    handler or a debugger of the program has raised.
    """
    handlers = _handlers_code()
    try:
        _answer(incident)
    except Exception as error:
        if _is_of_the_program(error, handlers):
            raise


def _answer(incident):
    """Registers the reclaimers at the first call in a process, and stores the frameworks' figures at a refusal.

    `incident` is the number of the refused request; 0: there is none.
    """
    if _asked_in == [None]:
        return
    if _asked_in != [os.getpid()]:
        is_first = not _asked_in
        _asked_in[:] = [os.getpid()]
        if is_first:
            _expect_the_end()
        if os.environ.get("CUWARDEN_POOL") != "off":
            register()
    if incident:
        _read_figures(incident)


def _expect_the_end():
    # Functions that a framework registers at a later import run before these. JAX frees its memory in one.
    # Functions of the module threading run before all of those.
    atexit.register(_stop_asking)
    atexit.register(_read_last_figures)
    early = getattr(sys.modules.get("threading"), "_register_atexit", None)
    if early is not None:
        try:
            early(_read_last_figures_early)
        except RuntimeError:  # the interpreter ends already
            pass


def _register_framework(framework):
    device, pinned = _EMPTY[framework]
    (name, modules), (pinned_name, pinned_modules) = RECLAIMERS[framework]
    register_reclaimer(name, modules, lambda ordinal, _: device(ordinal) if ordinal >= 0 else 0)
    register_reclaimer(pinned_name, pinned_modules, lambda ordinal, _: pinned() if ordinal < 0 else 0)


class _Imports:
    """Registers a framework's reclaimers at its first import: a finder (sys.meta_path) that finds nothing."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in RECLAIMERS and RECLAIMERS[name][0][0] not in _registered:
            _register_framework(name)
        return None


def register():
    """Registers reclaimers for PyTorch and CuPy, at once or as soon as they are imported.

    Returns False if the process does not run under cuwarden.
    """
    if _library() is None:
        return False
    for framework in RECLAIMERS:
        if framework in sys.modules and RECLAIMERS[framework][0][0] not in _registered:
            _register_framework(framework)
    if _Imports not in sys.meta_path:
        sys.meta_path.insert(0, _Imports)
    return True


def _ask_frameworks():
    """Makes cuwarden call _cuwarden_observe(): once CUDA is used, and after each refused request."""
    ask = getattr(ctypes.CDLL(None), "cuwarden_1_ask_frameworks", None)
    if ask is not None:
        ask()


# Once the interpreter has ended, a reclaimer written in Python can no longer be called.
atexit.register(lambda: [unregister_reclaimer(name) for name in list(_registered)])


USAGE = "usage: python3 [OPTION...] -m cuwarden (SCRIPT | -m MODULE | -c TEXT) [ARGUMENT...]"


def _run_text(code, name, first_path):
    """Runs a code object as the interpreter runs a script: in a new module __main__, which is kept.

    `name` is the script's file name; None for -c. `first_path` becomes the first entry of sys.path, unless
    Python runs with -P.
    """
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if name is not None:
        main.__file__ = name
    sys.modules["__main__"] = main
    # Python's own `-m` has put the current folder at the head of sys.path.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = first_path
    exec(code, main.__dict__)


def _main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    # This file runs as __main__, which the script is about to become; so import it by its own name.
    import cuwarden

    cuwarden.register()
    cuwarden._ask_frameworks()
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
        line = f"cuwarden: {first}: Python's own options come before -m cuwarden"
        print(f"{line}\n{USAGE}", file=sys.stderr)
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
