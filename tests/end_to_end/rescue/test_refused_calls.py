"""Calls that need device memory for themselves (contexts, streams, code, graphs, limits), on a device
that is full: refused without the shim, served by the ladder with it. Each function that may lack memory does what
docs/rescue-calls.md says of it."""

import json
import re
import sys

import pytest
from shimmed import DRIVER, SOURCE, program

GIB = 1 << 30
ASKED = {
    "stream": "stream",
    "context": "context",
    "primary_context": "context",
    "module": "module",
    "module_of_library": "module",
    "function_of_kernel": "module",
    "variable_of_library": "module",
    "first_launch": "launch",
    "deep_launch": "launch",
    "stack_limit": "limit",
    "graph": "graph",
    "graph_launch": "graph",
    "graph_upload": "graph",
}
SETTINGS = {
    "pending": {"CUWARDEN_POOL": "rescue"},
    "scattered": {"CUWARDEN_POOL": "on", "CUWARDEN_MESH_PAUSE": "1m"},
    "none": {"CUWARDEN_POOL": "on"},
}
REFUSED = "CUDA_ERROR_OUT_OF_MEMORY"


def run_both(workspace, call, room):
    """Runs the program without and with the shim; both times all else that it does succeeds."""
    # Local memory of 2 KiB for all threads of the device takes 264 MiB.
    command = [program("needing_memory"), call, room, GIB, 2048]
    size = {"CUWARDEN_SIM_MEMORY": "12GiB"}
    bare = workspace.run(command, size, preload=(DRIVER,), shim=False)
    run = workspace.run(command, {**size, **SETTINGS[room]}, preload=(DRIVER,))
    assert (bare.returncode, run.returncode) == (0, 0), (bare.stderr, run.stderr)
    return bare.last_line, run


@pytest.mark.parametrize("call", ASKED)
@pytest.mark.parametrize("room, rung", [("pending", "synchronise"), ("scattered", "mesh")])
def test_a_call_is_served_once_a_rung_has_made_room(workspace, call, room, rung):
    bare, run = run_both(workspace, call, room)
    assert bare["result"] == REFUSED
    assert run.last_line["result"] == "CUDA_SUCCESS"
    rescued = [row for row in run.report["incidents"] if row["outcome"] == "rescued"]
    assert {(row["asked_for"], row["rescued_by"]) for row in rescued} == {(ASKED[call], rung)}


@pytest.mark.parametrize("call", ASKED)
def test_a_call_gets_the_drivers_error_if_there_is_no_memory(workspace, call):
    bare, run = run_both(workspace, call, "none")
    assert run.last_line == bare
    assert bare["result"] == REFUSED
    (refused,) = [row for row in run.report["incidents"] if row["asked_for"] == ASKED[call]]
    assert refused["outcome"] == "failed"


def functions_of(table):
    """Returns the functions in a table of docs/rescue-calls.md, by the heading above the table."""
    page = (SOURCE / "docs" / "rescue-calls.md").read_text()
    (text,) = re.findall(rf"^## {table}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return [name for row in re.findall(r"^\| (cu[^|]*) \|", text, re.MULTILINE) for name in re.findall(r"\bcu\w+", row)]


@pytest.mark.parametrize("function", functions_of("Served"))
def test_a_function_that_the_page_calls_served_gets_through_one_refusal(workspace, function):
    env = {"CUWARDEN_SIM_FAIL": f"{function}:1:2", "CUWARDEN_POOL": "rescue"}
    bare = workspace.run([program("refusable_calls")], env, preload=(DRIVER,), shim=False)
    if bare.returncode == 0 and not bare.last_line["has_green_contexts"] and "Green" in function:
        pytest.skip("the toolkit has no green contexts")
    assert bare.returncode == 3 and "error 2" in bare.stderr, f"no call of {function}: {bare.stderr}"
    run = workspace.run([program("refusable_calls")], env, preload=(DRIVER,))
    assert run.returncode == 0, run.stderr
    (incident,) = run.report["incidents"]
    assert re.sub(r"_v\d$", "", incident["api"]) == function
    assert (incident["outcome"], incident["rescued_by"]) == ("rescued", "retry")


# Calls each function once, without arguments that the driver could use: the call fails before it reads them.
CALL_EACH = """
import ctypes, json, sys
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
print(json.dumps({name: getattr(driver, name)(*[None] * 9) for name in sys.argv[1:]}))
"""


def test_a_function_that_the_page_does_not_call_served_gives_its_error_at_once(workspace):
    functions = functions_of("Never refused") + functions_of("Not repeated")
    assert len(functions) > 20
    env = {"CUWARDEN_SIM_FAIL": ",".join(f"{name}:1:2" for name in functions), "CUWARDEN_POOL": "rescue"}
    run = workspace.run([sys.executable, "-c", CALL_EACH, *functions], env, preload=(DRIVER,))
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == dict.fromkeys(functions, 2)
    assert run.report["incidents"] == []
