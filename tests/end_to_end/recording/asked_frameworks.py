"""Stand-ins for CuPy and JAX, which take their memory by ctypes, and programs that use them, run by
`cuwarden run`."""

import textwrap

import shimmed
from reports import Report

PYTHON = "/usr/bin/python3"
MIB = 1 << 20

RUNTIME = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
cudart.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def malloc(size):
    out = ctypes.c_void_p()
    return cudart.cudaMalloc(ctypes.byref(out), size) == 0
"""
CUPY = RUNTIME + """
class cuda:
    class Device:
        def __init__(self, ordinal):
            assert ordinal == 0
        def __enter__(self):
            return self
        def __exit__(self, *_):
            pass

class _Pool:
    total = used = 0
    def total_bytes(self):
        return self.total
    def used_bytes(self):
        return self.used
    def free_all_blocks(self):
        pass
_pool = _Pool()
get_default_memory_pool = lambda: _pool

def empty(size):
    if not malloc(size):
        return None
    _pool.total += size
    _pool.used += size
    return size
def release(size):
    _pool.used -= size
"""
JAX = RUNTIME + """
import atexit, gzip, sys, types

class Device:
    platform, local_hardware_id, stats = "gpu", 0, {}
    def memory_stats(self):
        return self.stats
    @property
    def client(self):
        return "the client"
device = Device()
atexit.register(device.stats.clear)  # JAX frees its memory so
class Backend:
    def local_devices(self):
        return [device]
sys.modules["jax._src.xla_bridge"] = types.SimpleNamespace(_backends={})
def start():
    malloc(64 << 20)
    sys.modules["jax._src.xla_bridge"]._backends["cuda"] = Backend()
class profiler:
    text = b""
    @staticmethod
    def device_memory_profile(client):
        assert client == "the client"
        return gzip.compress(profiler.text)
"""
# The program sees what it would see without cuwarden.
WATCH = """
import os, sys
before = (list(sys.path), sys.flags, sys.argv, "sitecustomize" in sys.modules)
seen = lambda: [
    before == (list(sys.path), sys.flags, sys.argv, "sitecustomize" in sys.modules),
    sorted(name for name in os.environ if not name.startswith(("CUWARDEN_", "LD_"))),
    "torch" in sys.modules,
]
"""


PYTHON_MODULES = shimmed.SOURCE / "tools" / "python"


def run(workspace, text, *options, report="%e.json", path="", preload=None):
    """Runs the text of a script by `cuwarden run`, with the stand-ins for CuPy and JAX importable.

    `preload`: a library that the program has, too. Returns the finished process.
    """
    (workspace.work / "cupy.py").write_text(CUPY)
    (workspace.work / "jax.py").write_text(JAX)
    script = workspace.work / "train.py"
    script.write_text(WATCH + textwrap.dedent(text))
    options = ["--simulate", "2GiB", "--report", workspace.reports / report, *options]
    env = {"PYTHONPATH": str(path) or None, "LD_PRELOAD": preload}
    return shimmed.cuwarden(workspace, "run", *options, "--", PYTHON, script, env=env)


def report_of(workspace):
    (path,) = workspace.reports.glob("python*.json")
    return Report.read(path)


def figures(report, framework, incident=None):
    return [
        row
        for row in report["frameworks"]
        if row["framework"] == framework and row["incident"] == incident
    ]
