"""PyTorch's and CuPy's caches as reclaimers, and scripts that are run by `python3 -m cuwarden`."""

import shutil
import sys
import textwrap

import pytest

from shimmed import PATIENCE_S, PROGRAMS, SOURCE
from test_reclaimers import RESCUE, reclaims
from test_rescue import rescued

PYTHON = SOURCE / "tools" / "python"

# A fake framework: `empty` frees the memory that `hold` took, by the runtime in this process.
FRAMEWORK = """
import ctypes, threading
cudart = ctypes.CDLL("libcudart.so.13")
lock = threading.Lock()
blocks = []
def malloc(bytes):
    pointer = ctypes.c_void_p()
    return pointer if cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(bytes)) == 0 else None
def hold(bytes):
    blocks.append((malloc(bytes), bytes))
def held():
    return sum(bytes for _, bytes in blocks)
def empty():
    with lock:
        while blocks:
            cudart.cudaFree(blocks.pop()[0])
"""
TORCH = FRAMEWORK + """
def free(device):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cudart.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value
class cuda:
    is_initialized = staticmethod(lambda: True)
    mem_get_info = staticmethod(free)
    empty_cache = staticmethod(empty)
"""
CUPY = FRAMEWORK + """
import contextlib
class cuda:
    Device = contextlib.nullcontext
class pool:
    total_bytes = staticmethod(held)
    free_all_blocks = staticmethod(empty)
get_default_memory_pool = lambda: pool
"""
SCRIPT = """
import sys
assert __name__ == "__main__" and sys.argv[1:] == ["--steps", "3"], sys.argv
import torch, cupy
holder, asks = (torch, cupy) if {torch_holds} else (cupy, torch)
holder.hold(3 << 30)
print(asks.malloc(2 << 30) is not None, holder.held())
"""


@pytest.fixture
def frameworks(tmp_path):
    (tmp_path / "torch.py").write_text(TORCH)
    (tmp_path / "cupy.py").write_text(CUPY)
    return {**RESCUE, "PYTHONPATH": f"{PYTHON}:{tmp_path}"}


@pytest.mark.parametrize("torch_holds", [True, False])
@pytest.mark.parametrize("how", ["script", "module", "text"])
def test_frameworks_caches_are_emptied_for_an_unmodified_script(
    workspace, tmp_path, frameworks, torch_holds, how
):
    script = textwrap.dedent(SCRIPT.replace("{torch_holds}", str(torch_holds)))
    (tmp_path / "train.py").write_text(script)
    what = {"script": [tmp_path / "train.py"], "module": ["-m", "train"], "text": ["-c", script]}[how]
    command = [*what, "--steps", "3"]
    bare = workspace.run([sys.executable, "-m", "cuwarden", *command], frameworks, shim=False)
    assert bare.stdout == f"False {3 << 30}\n", bare.stderr
    run = workspace.run([sys.executable, "-m", "cuwarden", *command], frameworks)
    assert (run.returncode, run.stdout, run.stderr) == (0, "True 0\n", "")
    _, rungs = rescued(run.report, "reclaim")
    assert rungs[-1]["reclaimer"] == ("PyTorch" if torch_holds else "CuPy")


@pytest.mark.parametrize("loader", ["CDLL", "PyDLL"])
def test_no_python_reclaimer_is_called_for_a_thread_with_the_interpreters_lock(workspace, frameworks, loader):
    """ctypes.PyDLL keeps the interpreter's lock during a call, as a careless extension module does."""
    text = f"""
import cuwarden, ctypes, torch
assert cuwarden.register()
torch.hold(3 << 30)
pointer = ctypes.c_void_p()
print(ctypes.{loader}("libcudart.so.13").cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(2 << 30)))
"""
    run = workspace.run([sys.executable, "-c", text], frameworks)
    assert run.stdout == ("0\n" if loader == "CDLL" else "2\n"), run.stderr
    outcomes = {row["outcome"] for row in reclaims(run.report)}
    assert outcomes == ({"served"} if loader == "CDLL" else {"unsafe"}) and run.said == []


def test_missing_frameworks_give_no_message(workspace, frameworks):
    text = """
import cuwarden, ctypes
assert cuwarden.register()
pointer = ctypes.c_void_p()
print(ctypes.CDLL("libcudart.so.13").cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(5 << 30)))
"""
    run = workspace.run([sys.executable, "-c", text], frameworks)
    assert (run.stdout, run.said, reclaims(run.report)) == ("2\n", [], [])


DEEP = """
import cuwarden, torch
def deeper(levels):
    if levels == 0:
        print(torch.malloc(2 << 30) is not None)
    else:
        # Through C: each level has frames of its own.
        list(map(deeper, [levels - 1]))
cuwarden.register_reclaimer("mine", None, lambda device, wanted: torch.empty())
torch.hold(3 << 30)
deeper({levels})
"""


@pytest.mark.parametrize("levels", [10, 60])
def test_a_deep_stack_is_seen_whole(workspace, frameworks, levels):
    run = workspace.run([sys.executable, "-c", DEEP.format(levels=levels)], frameworks)
    assert run.stdout == "True\n", run.stderr


def test_an_exception_of_a_python_reclaimer_gives_one_line(workspace, frameworks):
    text = """
import cuwarden, torch
def broken(device, wanted):
    raise KeyError("no such pool")
assert cuwarden.register_reclaimer("mine", None, broken)
torch.hold(3 << 30)
print(torch.malloc(2 << 30), torch.malloc(2 << 30))
"""
    run = workspace.run([sys.executable, "-c", text], frameworks)
    assert (run.returncode, run.stdout) == (0, "None None\n"), run.stderr
    assert run.said_about("reclaimer mine", "KeyError", "no such pool")
    assert run.said_about("reclaimer mine", "gave nothing back") and len(run.said) == 2


def test_the_function_of_a_replaced_reclaimer_lives_while_its_call_runs(workspace, frameworks):
    text = """
import cuwarden, gc, threading, torch, weakref
goes_on, has_returned = threading.Event(), threading.Event()
def slow(device, wanted):
    goes_on.wait(120)
    has_returned.set()
assert cuwarden.register_reclaimer("mine", None, slow)
old = weakref.ref(cuwarden._registered["mine"][1])
torch.hold(3 << 30)
print(torch.malloc(2 << 30))
assert cuwarden.register_reclaimer("mine", None, lambda device, wanted: torch.empty())
gc.collect()
print(old() is not None)
goes_on.set()
assert has_returned.wait(120)
print(torch.malloc(2 << 30) is not None)
"""
    env = {**frameworks, "CUWARDEN_SYNC_TIMEOUT": "200ms"}
    run = workspace.run([sys.executable, "-c", text], env)
    assert (run.returncode, run.stdout) == (0, "None\nTrue\nTrue\n"), run.stderr


# A program that prints all it can find out about the way in which it was started.
INQUIRING = """
import atexit, pickle, sys, threading, unittest
def function():
    return 1
class Case(unittest.TestCase):
    def test(self):
        self.assertEqual(pickle.loads(pickle.dumps(function))(), 1)
print(__name__, sys.argv, sys.path[0] == {path!r}, "__file__" in globals(), __spec__ is None)
print(sys.modules["__main__"].function is function)
later = threading.Thread(target=lambda: (threading.main_thread().join(), print(pickle.dumps(Case) != b"")))
later.start()
atexit.register(lambda: print("at exit", sys.modules["__main__"].Case is Case))
unittest.main(argv=["x"], exit=False)
"""


@pytest.mark.parametrize("how", ["script", "text"])
def test_a_script_run_by_the_module_finds_itself_as_when_run_by_python(workspace, tmp_path, frameworks, how):
    folder = tmp_path / "sub"
    folder.mkdir()
    path = str(folder) if how == "script" else ""
    (folder / "s.py").write_text(INQUIRING.format(path=path))
    # A module with the name of one of the standard library's, in a folder other than the script's.
    (workspace.work / "queue.py").write_text("raise SystemExit('the wrong queue')\n")
    (folder / "s.py").write_text("import queue\n" * (how == "script") + (folder / "s.py").read_text())
    command = {"script": [folder / "s.py", "a"], "text": ["-c", INQUIRING.format(path=path), "a"]}[how]
    plain = workspace.run([sys.executable, *command], frameworks, shim=False)
    assert plain.returncode == 0 and "Ran 1 test" in plain.stderr, plain.stderr
    assert "False" not in plain.stdout.replace("False True", ""), plain.stdout
    run = workspace.run([sys.executable, "-m", "cuwarden", *command], frameworks)
    assert (run.stdout, run.returncode) == (plain.stdout, 0), run.stderr
    assert "Ran 1 test" in run.stderr


@pytest.mark.parametrize("arguments", [["nosuch.py"], ["-u", "x.py"], ["-m"], ["-c"], []], ids="-".join)
def test_bad_arguments_of_the_module_give_a_line_and_status_2(workspace, frameworks, arguments):
    run = workspace.run([sys.executable, "-m", "cuwarden", *arguments], frameworks)
    assert run.returncode == 2 and "Traceback" not in run.stderr
    assert 1 <= len(run.stderr.splitlines()) <= 2


def test_a_child_that_calls_no_cuda_ends_at_once(workspace, frameworks):
    text = f"""
import cuwarden, os, threading, torch
begun, child_has_ended = threading.Event(), threading.Event()
def slow(device, wanted):
    begun.set()
    child_has_ended.wait({PATIENCE_S})
cuwarden.register_reclaimer("slow", None, slow)
torch.hold(3 << 30)
asks = threading.Thread(target=torch.malloc, args=(2 << 30,))
asks.start()
assert begun.wait({PATIENCE_S})
child = os.fork()
if child == 0:
    raise SystemExit(0)
print(os.waitpid(child, 0)[1])
child_has_ended.set()
asks.join()
"""
    run = workspace.run([sys.executable, "-c", text], {**frameworks, "CUWARDEN_SYNC_TIMEOUT": "100s"})
    assert run.stdout == "0\n", run.stderr
    # A child that waited for the reclaimer would end only when its time is over.
    assert "timed_out" not in {row["outcome"] for row in reclaims(run.report)}


def test_the_scripts_own_exit_status_is_kept(workspace, tmp_path, frameworks):
    run = workspace.run([sys.executable, "-m", "cuwarden", "-c", "raise SystemExit(7)"], frameworks)
    assert run.returncode == 7


# A fake PyTorch with a cache of pinned memory. The last lines of the module are a version's functions.
PINNED_TORCH = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
blocks = []
def malloc(function, bytes):
    pointer = ctypes.c_void_p()
    refused = getattr(cudart, function)(ctypes.byref(pointer), ctypes.c_size_t(bytes))
    return None if refused else pointer
def hold(bytes):
    blocks.append((malloc("cudaMallocHost", bytes), bytes))
def held():
    return sum(bytes for _, bytes in blocks)
def empty():
    while blocks:
        cudart.cudaFreeHost(blocks.pop()[0])
class cuda:
    is_initialized = staticmethod(lambda: False)
"""
VERSIONS = {
    "without_figures": "class _C:\n    _host_emptyCache = staticmethod(empty)",
    "private": "class _C:\n    _host_emptyCache = staticmethod(empty)\n"
    'cuda.host_memory_stats = lambda: {"reserved_bytes.current": held(), "allocated_bytes.current": 0}',
    "public": "class accelerator:\n    class memory:\n        empty_host_cache = staticmethod(empty)\n"
    'cuda.host_memory_stats = lambda: {"allocated_bytes.current": held()}',
}
PINNED = {"CUWARDEN_SIM_PINNED_LIMIT": "64MiB", "CUWARDEN_SIM_MEMORY": "4GiB"}


@pytest.fixture
def pinning(tmp_path):
    """Returns a function that makes the environment of a program with a version of the fake PyTorch."""

    def of(version):
        (tmp_path / "torch.py").write_text(PINNED_TORCH + VERSIONS[version] + "\n")
        return {**RESCUE, **PINNED, "PYTHONPATH": f"{PYTHON}:{tmp_path}"}

    return of


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("function", ["cudaMallocHost", "cudaHostAlloc"])
def test_pytorchs_cache_of_pinned_memory_is_emptied_for_another_librarys_request(
    workspace, pinning, version, function
):
    text = f"""
import torch
torch.hold(48 << 20)
if {function!r} == "cudaHostAlloc":
    torch.cudart.cudaHostAlloc.argtypes = [torch.ctypes.c_void_p, torch.ctypes.c_size_t, torch.ctypes.c_uint]
    pointer = torch.ctypes.c_void_p()
    print(torch.cudart.cudaHostAlloc(torch.ctypes.byref(pointer), 32 << 20, 0) == 0, torch.held())
else:
    print(torch.malloc({function!r}, 32 << 20) is not None, torch.held())
"""
    command = [sys.executable, "-m", "cuwarden", "-c", text]
    bare = workspace.run(command, pinning(version), shim=False)
    assert bare.stdout == f"False {48 << 20}\n", bare.stderr
    run = workspace.run(command, pinning(version))
    assert (run.returncode, run.stdout, run.stderr) == (0, "True 0\n", "")
    _, rungs = rescued(run.report, "reclaim")
    assert rungs[-1]["reclaimer"] == "PyTorch, pinned"


def test_pytorchs_own_request_for_pinned_memory_is_served_from_its_cache(workspace, pinning):
    """PyTorch caches blocks by their sizes, and does not empty its cache when CUDA refuses another size."""
    text = f"""
import ctypes, torch
pytorch = ctypes.CDLL({str(PROGRAMS / "libtorch_cuda.so")!r})
pytorch.keep_on_host.restype, pytorch.keep_on_host.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
torch.hold(48 << 20)
print(pytorch.keep_on_host(32 << 20) is not None, torch.held())
"""
    run = workspace.run([sys.executable, "-m", "cuwarden", "-c", text], pinning("private"))
    assert (run.stdout, run.stderr) == ("True 0\n", "")
    rescued(run.report, "reclaim")


@pytest.mark.parametrize(("version", "outcome"), [("private", "nothing_given_back"), ("without_figures", "no_memory")])
def test_an_empty_cache_of_pinned_memory_gives_nothing_back(workspace, pinning, version, outcome):
    text = """
import torch
pointer = torch.malloc("cudaMallocHost", 48 << 20)
print(torch.malloc("cudaMallocHost", 32 << 20))
"""
    run = workspace.run([sys.executable, "-m", "cuwarden", "-c", text], pinning(version))
    assert run.stdout == "None\n", run.stderr
    outcomes = {row["reclaimer"]: row["outcome"] for row in reclaims(run.report)}
    assert outcomes["PyTorch, pinned"] == outcome


def test_a_request_for_device_memory_leaves_the_cache_of_pinned_memory_alone(workspace, pinning):
    text = """
import torch
torch.hold(48 << 20)
pointer = torch.malloc("cudaMalloc", 3 << 30)
print(torch.malloc("cudaMalloc", 2 << 30), torch.held())
"""
    run = workspace.run([sys.executable, "-m", "cuwarden", "-c", text], pinning("private"))
    assert run.stdout == f"None {48 << 20}\n", run.stderr
    assert {row["outcome"] for row in reclaims(run.report)} == {"nothing_given_back"}


def test_cupys_request_for_pinned_memory_is_served_once_cupy_has_emptied_its_own_pool(
    workspace, tmp_path, pinning
):
    """CuPy's pool empties itself when CUDA refuses memory, and asks again."""
    pool = tmp_path / "cupy" / "cuda" / "pinned_memory.so"
    pool.parent.mkdir(parents=True)
    shutil.copy(PROGRAMS / "libtorch_cuda.so", pool)
    text = f"""
import ctypes, torch
ask = ctypes.CDLL({str(pool)!r}).keep_on_host
ask.restype, ask.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
torch.hold(48 << 20)
for _ in range(2):
    print(ask(32 << 20) is not None, torch.held())
"""
    run = workspace.run([sys.executable, "-m", "cuwarden", "-c", text], pinning("private"))
    assert run.stdout == f"False {48 << 20}\nTrue 0\n", run.stderr
