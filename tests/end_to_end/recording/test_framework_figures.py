"""Figures that CuPy and JAX give when cuwarden asks them inside an unmodified program.

The frameworks are stand-ins that take their memory by ctypes.
"""

import re
import textwrap

import pytest

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


def run(workspace, text, *options, report="%e.json"):
    """Runs a script by `cuwarden run`, with the stand-ins beside it; returns the finished process."""
    (workspace.work / "cupy.py").write_text(CUPY)
    (workspace.work / "jax.py").write_text(JAX)
    script = workspace.work / "train.py"
    script.write_text(WATCH + textwrap.dedent(text))
    options = ["--simulate", "2GiB", "--report", workspace.reports / report, *options]
    return shimmed.cuwarden(workspace, "run", *options, "--", PYTHON, script)


def report_of(workspace):
    (path,) = workspace.reports.glob("python*.json")
    return Report.read(path)


def figures(report, framework, incident=None):
    return [
        row
        for row in report["frameworks"]
        if row["framework"] == framework and row["incident"] == incident
    ]


USES_CUPY = """
import cupy
cupy.empty(48 << 20)
cupy.empty(16 << 20)
for _ in range(1000):
    pass  # a program has many instructions, between which cuwarden's module may run
cupy.release(16 << 20)
print(seen())
"""


def test_a_pool_of_cupy_has_its_own_figures_at_the_end(workspace):
    done = run(workspace, USES_CUPY)
    assert done.returncode == 0, done.stderr
    (row,) = figures(report_of(workspace), "CuPy")
    assert row["source"] == "framework"
    assert (row["reserved_bytes"], row["allocated_bytes"]) == (64 * MIB, 48 * MIB)


def test_the_program_sees_no_difference(workspace):
    outputs = []
    for frameworks in ("on", "off"):
        done = run(workspace, USES_CUPY, "--frameworks", frameworks)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].startswith("[True, ")
    assert outputs[0].strip().endswith("False]")


def test_nothing_is_asked_if_the_setting_is_off_or_cuwarden_is_preloaded_alone(workspace):
    run(workspace, USES_CUPY, "--frameworks", "off")
    assert figures(report_of(workspace), "CuPy") == []
    alone = workspace.run([PYTHON, workspace.work / "train.py"], {"CUWARDEN_SIM_MEMORY": "2GiB"})
    assert figures(alone.report, "CuPy") == []


def test_a_refused_request_has_the_figures_that_frameworks_give_right_after_it(workspace):
    done = run(
        workspace,
        """
        import cupy
        cupy.empty(512 << 20)
        cupy.release(256 << 20)
        assert cupy.empty(4 << 30) is None
        for _ in range(1000):
            pass
        cupy.release(256 << 20)
        """,
        "--pool", "off",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = report_of(workspace)
    (incident,) = report["incidents"]
    (row,) = figures(report, "CuPy", incident["id"])
    assert (row["reserved_bytes"], row["allocated_bytes"]) == (512 * MIB, 256 * MIB)
    (row,) = figures(report, "CuPy")
    assert row["allocated_bytes"] == 0


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile(samples):
    """Returns a profile in pprof's format of (count, bytes, [(function, line, file), ...])."""
    strings, functions, parts = [""], {}, []

    def index(text):
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    locations = {}
    for count, size, lines in samples:
        ids = []
        for function, line, file in lines:
            of = functions.setdefault((function, file), len(functions) + 1)
            ids.append(locations.setdefault((of, line), len(locations) + 1))
        parts.append(
            field(2, field(1, b"".join(map(varint, ids))) + field(2, varint(count) + varint(size)))
        )
    for (of, line), identity in locations.items():
        parts.append(field(4, field(1, identity) + field(4, field(1, of) + field(2, line))))
    for (function, file), identity in functions.items():
        names = field(2, index(function)) + field(4, index(file))
        parts.append(field(5, field(1, identity) + names))
    return b"".join(parts + [field(6, text.encode()) for text in strings])


def test_jax_gives_its_figures_and_its_arrays_by_line_before_it_frees_them(workspace):
    text = profile(
        [
            (3, 3 * MIB, [("full", 70, "/v/site-packages/jax/numpy.py"), ("encode", 12, "/u/net.py")]),
            (1, 9 * MIB, [("full", 70, "/v/site-packages/jax/numpy.py"), ("start", 300, "/u/net.py")]),
            (2, 2 * MIB, [("full", 70, "/v/site-packages/jax/numpy.py"), ("encode", 12, "/u/net.py")]),
        ]
    )
    done = run(
        workspace,
        f"""
        import jax
        jax.start()
        jax.device.stats.update(pool_bytes=64 << 20, bytes_in_use=14 << 20, peak_bytes_in_use=20 << 20,
                                largest_free_block_bytes=32 << 20)
        jax.profiler.text = {text!r}
        """,
    )
    assert done.returncode == 0, done.stderr
    report = report_of(workspace)
    (row,) = figures(report, "JAX")
    assert row["reserved_bytes"] == 64 * MIB
    assert row["allocated_bytes"] == 14 * MIB
    assert row["peak_allocated_bytes"] == 20 * MIB
    assert row["largest_free_bytes"] == 32 * MIB
    sites = {row["where"]: (row["count"], row["bytes"]) for row in report["framework_sites"]}
    assert sites == {
        "/u/net.py:12 in encode": (5, 5 * MIB),
        "/u/net.py:300 in start": (1, 9 * MIB),
    }
    text = shimmed.cuwarden(workspace, "report", report.path).stdout
    assert re.search(r"LIVE TENSORS: 14\.0 MiB in 6 blocks", text), text
    assert "at net.py:300 in start" in text


def test_an_error_of_a_framework_leaves_its_figures_out(workspace):
    done = run(
        workspace,
        """
        import cupy
        cupy._pool.total_bytes = lambda: 1 / 0
        cupy.empty(1 << 20)
        for _ in range(1000):
            pass
        print("went on")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "went on\n")
    assert "Error" not in done.stderr
    assert figures(report_of(workspace), "CuPy") == []


def test_an_interrupt_that_comes_while_a_framework_is_asked_is_the_programs(workspace):
    done = run(
        workspace,
        """
        import cupy
        def interrupt():
            cupy._pool.total_bytes = lambda: 0
            raise KeyboardInterrupt
        cupy._pool.total_bytes = interrupt
        try:
            cupy.empty(1 << 20)
            for _ in range(1000):
                pass
            print("no interrupt")
        except KeyboardInterrupt:
            print("interrupted")
        """,
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_a_module_of_the_programs_own_with_the_name_of_cuwardens_stays(workspace):
    (workspace.work / "cuwarden.py").write_text("mine = True\n")
    done = run(
        workspace,
        """
        import cuwarden, cupy
        cupy.empty(1 << 20)
        for _ in range(1000):
            pass
        print(cuwarden.mine)
        """,
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("pool", ["auto", "off"])
def test_reclaimers_are_there_for_unmodified_programs(workspace, pool):
    """The cache is emptied unless rescues are off."""
    done = run(
        workspace,
        """
        import ctypes, cupy
        blocks = []
        def fill():
            out = ctypes.c_void_p()
            while cupy.cudart.cudaMalloc(ctypes.byref(out), 256 << 20) == 0:
                blocks.append(ctypes.c_void_p(out.value))
        def empty():
            while blocks:
                cupy.cudart.cudaFree(blocks.pop())
        cupy._pool.total_bytes = lambda: len(blocks) * (256 << 20)
        cupy._pool.free_all_blocks = empty
        out = ctypes.c_void_p()
        for _ in range(3):
            cupy.cudart.cudaMalloc(ctypes.byref(out), 256 << 20)
            blocks.append(ctypes.c_void_p(out.value))
        for _ in range(1000):
            pass
        print(cupy.malloc(1 << 30))
        """,
        "--pool", pool,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{pool == 'auto'}\n"), done.stderr
    (incident,) = report_of(workspace)["incidents"]
    assert (incident["outcome"] == "rescued") == (pool == "auto")


def test_a_forked_child_asks_for_itself(workspace):
    done = run(
        workspace,
        """
        import os, cupy
        child = os.fork()
        cupy.empty((8 << 20) if child == 0 else (32 << 20))
        for _ in range(1000):
            pass
        if child == 0:
            sys.exit(0)
        print(os.waitpid(child, 0)[1])
        """,
        report="%p.json",
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    reports = [Report.read(path) for path in workspace.reports.iterdir()]
    assert sorted(figures(r, "CuPy")[0]["reserved_bytes"] for r in reports) == [8 * MIB, 32 * MIB]
