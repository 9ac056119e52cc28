"""Reads the figures that PyTorch, CuPy and JAX give of their memory, and stores them in cuwarden's report.

A part of the module cuwarden, which calls read().
"""

import ctypes
import gzip
import sys

_UNKNOWN = 2**64 - 1
_Figures = ctypes.c_uint64 * 6
_MOST_SITES = 500  # most call stacks of a framework that are stored: those with the most bytes


def _device_in_use():
    """Returns the CUDA ordinal of the calling thread's current device; None if no context is current.

    Does not make a context.
    """
    driver = ctypes.CDLL("libcuda.so.1")
    context, device = ctypes.c_void_p(), ctypes.c_int()
    if driver.cuCtxGetCurrent(ctypes.byref(context)) != 0 or not context.value:
        return None
    return device.value if driver.cuCtxGetDevice(ctypes.byref(device)) == 0 else None


def _cupy_figures(cupy):
    """Yields (name of the pool, ordinal, figures) for CuPy's pool on the calling thread's current device.

    `figures` is a dict of bytes. Nothing is yielded if no context is current. CuPy's pools on other devices
    are left out: to read them, the current device would have to be changed, which the program would notice.
    """
    device = _device_in_use()
    if device is not None:
        pool = cupy.get_default_memory_pool()
        yield "", device, {"reserved": pool.total_bytes(), "allocated": pool.used_bytes()}


def _jax_devices():
    """Returns the GPUs of the backends that JAX has made already, as JAX's Device objects."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    backends = getattr(bridge, "_backends", {}).values()
    return [
        device
        for backend in backends
        for device in backend.local_devices()
        if device.platform in ("gpu", "cuda")
    ]


def _jax_figures(_):
    """Yields (name of the pool, ordinal, figures) for JAX's memory on each of its GPUs.

    `figures` is a dict of bytes; None stands for a figure that this version of JAX does not give. The
    parameter is the module jax, which is not used.
    """
    for device in _jax_devices():
        stats = device.memory_stats()
        if not stats:
            continue
        yield "", getattr(device, "local_hardware_id", 0) or 0, {
            "reserved": stats.get("pool_bytes", stats.get("bytes_reserved")),
            "allocated": stats.get("bytes_in_use"),
            "peak": stats.get("peak_bytes_in_use"),
            "largest": stats.get("largest_free_block_bytes"),
        }


def _torch_figures(torch):
    """Yields (name of the pool, ordinal, figures) for PyTorch's memory that only Python can ask about.

    This is the pinned memory (ordinal -1) and, if PyTorch allocates by cudaMallocAsync, the memory of the
    current device. `figures` is a dict of bytes; None stands for an unknown one. The figures of PyTorch's
    own allocator of device memory are recorded without Python.
    """
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return
    stats = getattr(cuda, "host_memory_stats", dict)()
    taken, in_use = stats.get("allocated_bytes.current"), stats.get("active_bytes.current")
    if "reserved_bytes.current" in stats:  # in some versions, allocated_bytes are those in use
        taken, in_use = stats["reserved_bytes.current"], stats.get("active_bytes.current", taken)
    if taken is not None:
        yield "pinned", -1, {"reserved": taken, "allocated": in_use}
    device = _device_in_use()
    if device is not None and getattr(cuda, "get_allocator_backend", str)() == "cudaMallocAsync":
        stats = cuda.memory_stats(device)
        yield "", device, {
            "reserved": stats.get("reserved_bytes.all.current"),
            "allocated": stats.get("allocated_bytes.all.current"),
            "peak": stats.get("allocated_bytes.all.peak"),
        }


def _fields(message):
    """Yields (field number, value) for each field of a protocol buffer message, given as bytes.

    A value is an int or bytes. Fields of a fixed size are left out.
    """
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, message[at : at + size]
            at += size
        else:
            at += 8 if key & 7 == 1 else 4


def _numbers(value):
    """Returns the numbers of a repeated field of a protocol buffer.

    `value` is the field's value: an int, or bytes in which several numbers are packed.
    """
    return [value] if isinstance(value, int) else [v for v in _varints(value)]


def _varints(packed):
    value = shift = 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def _sites_of_profile(profile):
    """Yields (count, bytes, lines) for each call stack in a profile of pprof's format, given as bytes.

    `count` and `bytes` are those of the live buffers that were allocated there. `lines` lists the stack,
    innermost first, as (function, line, file). Samples of anything but buffers, such as compiled code, are
    left out.
    """
    strings, functions, locations, samples = [], {}, {}, []
    for number, value in _fields(profile):
        if number == 6:
            strings.append(value.decode(errors="replace"))
        elif number == 5:
            fields = dict(_fields(value))
            functions[fields.get(1, 0)] = (fields.get(2, 0), fields.get(4, 0))
        elif number == 4:
            lines = [dict(_fields(line)) for key, line in _fields(value) if key == 4]
            identity = [v for key, v in _fields(value) if key == 1]
            locations[identity[0] if identity else 0] = lines
        elif number == 2:
            samples.append(value)
    for sample in samples:
        ids, values, labels = [], [], {}
        for number, value in _fields(sample):
            if number == 1:
                ids += _numbers(value)
            elif number == 2:
                values += _numbers(value)
            elif number == 3:
                label = dict(_fields(value))
                labels[strings[label.get(1, 0)]] = strings[label.get(2, 0)]
        if labels.get("kind", "buffer") != "buffer":
            continue
        lines = []
        for identity in ids:
            for line in locations.get(identity, []):
                name, file = functions.get(line.get(1, 0), (0, 0))
                lines.append((strings[name], line.get(2, 0), strings[file]))
        if len(values) >= 2:
            yield values[0], values[1], lines


def _jax_sites(jax):
    """Yields (ordinal, count, bytes, lines) for each call stack that has allocated live arrays of JAX.

    `lines` lists the stack, innermost first, as (function, line, file). With several GPUs nothing is yielded.
    """
    devices = _jax_devices()
    if len(devices) != 1:  # the profile names devices of several in words only
        return
    ordinal = getattr(devices[0], "local_hardware_id", 0) or 0
    profile = gzip.decompress(jax.profiler.device_memory_profile(devices[0].client))
    for count, size, lines in _sites_of_profile(profile):
        yield ordinal, count, size, lines


# By module: the framework's name in reports, and the functions that yield its figures and its call
# stacks with their bytes; None: it does not know the stacks.
_ASKED = {
    "torch": ("PyTorch", _torch_figures, None),
    "cupy": ("CuPy", _cupy_figures, None),
    "jax": ("JAX", _jax_figures, _jax_sites),
}


def _store_figures(library, name, pool, device, incident, figures):
    """Stores the figures of a framework's pool in the ledger.

    library   the ctypes library with cuwarden's functions
    name      name of the framework in reports
    pool      name of the pool; empty: the framework's pool of device memory
    device    CUDA ordinal; -1 for page-locked host memory
    incident  number of the refused request with which the figures are stored; 0: with none
    figures   dict of bytes; a figure that is missing or None is stored as unknown
    """
    numbers = [figures.get(key) for key in ("reserved", "allocated", "peak", None, None, "largest")]
    library.cuwarden_1_framework_figures(
        name.encode(), pool.encode(), device, incident,
        _Figures(*(_UNKNOWN if number is None else number for number in numbers)),
    )  # fmt: skip


def _store_sites(library, name, sites):
    """Stores the call stacks with the most bytes in the ledger, up to _MOST_SITES of them.

    library  the ctypes library with cuwarden's functions
    name     name of the framework in reports
    sites    yields (ordinal, count, bytes, lines); `lines` lists the stack, innermost first, as
             (function, line, file)
    """
    merged = {}
    for device, count, size, lines in sites:
        text = "".join(f"{function}\t{line}\t{file}\n" for function, line, file in lines)
        before = merged.get((device, text), (0, 0))
        merged[device, text] = (before[0] + count, before[1] + size)
    largest = sorted(merged.items(), key=lambda item: -item[1][1])[:_MOST_SITES]
    for (device, text), (count, size) in largest:
        library.cuwarden_1_framework_site(
            name.encode(), device, ctypes.c_uint64(count), ctypes.c_uint64(size), text.encode()
        )


def read(incident, with_sites, is_the_programs):
    """Asks the frameworks that the program has imported for figures of their memory.

    Stores the figures in the ledger. If a framework raises an exception, the rest of its figures is left
    out; an exception for which is_the_programs() is true is raised again.

    incident         number of the refused request with which the figures are stored; 0: with none
    with_sites       True: also stores the blocks by call stack, if the framework knows their stacks
    is_the_programs  is_the_programs(error) returns True if the program is to get the exception
    """
    library = ctypes.CDLL(None)
    for module, (name, figures_of, sites_of) in _ASKED.items():
        framework = sys.modules.get(module)
        if framework is None:
            continue
        try:
            for pool, device, figures in figures_of(framework):
                _store_figures(library, name, pool, device, incident, figures)
            if with_sites and sites_of is not None:
                _store_sites(library, name, sites_of(framework))
        except Exception as error:
            if is_the_programs(error):
                raise
