"""Steps that a program marks: a leak in each step is told by steps, from C and from Python."""

import textwrap

import pytest

import shimmed

PYTHON = shimmed.SOURCE / "tools" / "python"

# A training loop: the first step makes what the later ones use, and from step 3 on each keeps 2 MiB.
LOOP = """
{marking}
{take}
def let_pass(milliseconds):
    ctypes.CDLL(None).pass_driven_time(ctypes.c_int64(milliseconds * 1_000_000))

def keep_loss():
    return take(2 << 20)

def warm_up():
    return [take(1 << 20) for _ in range(8)]

for number in range(1, {steps} + 1):
    {mark}
    if number == 1:
        warm_up()
    if number >= 3:
        keep_loss()
    cudart.cudaFree(take(3 << 20))
    let_pass(20)
"""


def run_loop(workspace, *, marking="import cuwarden", mark="cuwarden.step()", steps=20, env=None, **how):
    path = workspace.work / "loop.py"
    path.write_text(textwrap.dedent(LOOP).format(marking=marking, take=shimmed.TAKE, mark=mark, steps=steps))
    env = {"PYTHONPATH": str(PYTHON), **(env or {})}
    run = workspace.run(["/usr/bin/python3", path], env, preload=shimmed.DRIVEN, **how)
    assert run.returncode == 0, run.stderr
    return run


def leak_of(report, function):
    """Returns the leak group whose call stack has a frame of the function; fails unless it is the only one."""
    names = {id: frame["function"] for id, frame in report.frames.items()}
    (group,) = [
        group
        for group in report["leak_groups"]
        if function in [names[frame] for frame in report.stacks[group["stack"]]["frames"]]
    ]
    return group


def test_a_leak_in_each_step_is_told_by_steps(workspace):
    run = run_loop(workspace)
    assert run.report["process"]["steps"] == 20
    loss = leak_of(run.report, "keep_loss")
    assert (loss["growth"], loss["first_step"], loss["growth_bytes_per_step"]) == ("growing", 3, 2 << 20)
    warm_up = leak_of(run.report, "warm_up")
    assert (warm_up["growth"], warm_up["first_step"]) == ("one_time", 1)
    assert warm_up["growth_bytes_per_step"] is None
    (path,) = workspace.reports.iterdir()
    text = shimmed.cuwarden(workspace, "report", path).stdout
    assert "growing by 2.0 MiB a step since step 3" in text
    (forecast,) = run.report["forecasts"]
    (device,) = run.report["devices"]
    assert forecast["growth_bytes_per_step"] == 2 << 20
    assert forecast["free_bytes"] == device["free_bytes"]
    assert forecast["steps_left"] == device["free_bytes"] // (2 << 20)
    assert forecast["minutes_left"] is None
    assert (forecast["stack"], forecast["where"]) == (loss["stack"], loss["where"])
    assert "GPU 0 WAS FILLING UP: 2.0 MiB more with each step" in text
    assert f"would have lasted for about {forecast['steps_left']:,} steps" in text


def test_the_report_has_the_times_of_steps_and_the_bytes_that_each_stack_ever_allocated(workspace):
    run = run_loop(workspace, mark="cuwarden.step('warm up' if number == 1 else None)")
    steps = run.report["steps"]
    assert [step["number"] for step in steps] == list(range(1, 21))
    assert [step["name"] for step in steps] == ["warm up"] + [None] * 19
    # The loop lets 20 ms pass in each step.
    times = [step["time_ns"] for step in steps] + [run.report["process"]["end_ns"]]
    assert all(next - time >= 20_000_000 for time, next in zip(times, times[1:])), times
    sites = run.report["allocation_sites"]
    # Most bytes first: the freed 3 MiB of each step, the lost 2 MiB of steps 3 to 20, warm_up()'s blocks.
    assert [(site["allocations"], site["allocated_bytes"]) for site in sites] == [
        (20, 20 * 3 << 20),
        (18, 18 * 2 << 20),
        (8, 8 << 20),
    ]
    assert {(site["kind"], site["device"]) for site in sites} == {("device", 0)}
    (total,) = [row for row in run.report["totals"] if row["kind"] == "device"]
    assert total["allocated_bytes"] == sum(site["allocated_bytes"] for site in sites)


def test_a_queue_of_constant_length_does_not_fill_the_device(workspace):
    """The live allocations of a young queue are of all ages, as those of a leak are."""
    queue = "import collections, ctypes, cuwarden\nqueue = collections.deque()"
    mark = (
        "let_pass(10); cuwarden.step(); queue.append(take(4 << 20)); "
        "len(queue) > 12 and cudart.cudaFree(queue.popleft()); continue"
    )
    run = run_loop(workspace, marking=queue, mark=mark, steps=60)
    (group,) = [group for group in run.report["leak_groups"] if group["bytes"] == 12 * (4 << 20)]
    assert group["count"] == 12
    assert run.report["forecasts"] == []


def test_a_leak_beside_a_young_queue_is_told_from_it(workspace):
    """The queue has filled up in the first half of the run, and takes more in each step than the leak."""
    both = "import collections, ctypes, cuwarden\nqueue, kept = collections.deque(), []"
    mark = (
        "let_pass(10); cuwarden.step(); queue.append(take(8 << 20)); kept.append(take(2 << 20)); "
        "len(queue) > 35 and cudart.cudaFree(queue.popleft()); continue"
    )
    run = run_loop(workspace, marking=both, mark=mark, steps=60)
    (forecast,) = run.report["forecasts"]
    assert forecast["growth_bytes_per_step"] == 2 << 20
    (leak,) = [group for group in run.report["leak_groups"] if group["bytes"] == 60 * (2 << 20)]
    assert forecast["stack"] == leak["stack"]


def test_without_marks_growth_is_told_by_times(workspace):
    run = run_loop(workspace, mark="pass")
    assert run.report["process"]["steps"] is None
    loss = leak_of(run.report, "keep_loss")
    assert loss["growth"] == "growing" and loss["growth_bytes_per_minute"] > 0
    assert loss["first_step"] is None and loss["growth_bytes_per_step"] is None
    assert run.report["forecasts"] == [], "after less than a minute"


def test_the_header_of_c_marks_steps(workspace):
    run = workspace.run([shimmed.program("marked_steps")], preload=shimmed.DRIVEN)
    assert run.returncode == 0 and run.report["process"]["steps"] == 20
    kept = run.report["leak_groups"][0]
    assert (kept["growth"], kept["first_step"], kept["growth_bytes_per_step"]) == ("growing", 1, 2 << 20)
    bare = workspace.run([shimmed.program("marked_steps")], shim=False, preload=shimmed.DRIVEN)
    assert (bare.returncode, bare.stderr) == (0, "")


def test_no_step_is_lost_that_a_thread_marks_while_recording_begins(workspace):
    for _ in range(5):
        run = workspace.run([shimmed.program("steps_beside_the_first_call")])
        assert run.returncode == 0 and run.report["process"]["steps"] == run.last_line["steps"]


NVTX = shimmed.PROGRAMS / "nvtx_steps"
needs_nvtx = pytest.mark.skipif(not NVTX.exists(), reason="the toolkit here has no header of NVTX")


@needs_nvtx
@pytest.mark.parametrize("how", ["push", "start", "attributes", "domain", "registered"])
def test_nvtx_ranges_of_the_chosen_name_mark_steps(workspace, how):
    env = {"CUWARDEN_STEP_RANGE": "step *", "NVTX_INJECTION64_PATH": str(shimmed.SHIM)}
    run = workspace.run([NVTX, how], env, preload=shimmed.DRIVEN)
    bare = workspace.run([NVTX, how], shim=False, preload=shimmed.DRIVEN)
    assert (run.returncode, run.stdout, run.stderr) == (0, bare.stdout, "")
    assert run.report["process"]["steps"] == 20
    assert run.report["leak_groups"][0]["growth_bytes_per_step"] == 2 << 20


@needs_nvtx
@pytest.mark.parametrize(("name", "steps"), [("step 7", 1), ("forward", 20), ("back", None)])
def test_run_has_nvtx_load_the_shim(workspace, name, steps):
    report = workspace.reports / "r.json"
    options = ["--simulate", "2GiB", "--report", report, "--step-range", name]
    done = shimmed.cuwarden(
        workspace, "run", *options, "--", NVTX, env={"LD_PRELOAD": shimmed.DRIVEN_CLOCK}
    )
    assert done.returncode == 0, done.stderr
    assert shimmed.only_report(workspace)["process"]["steps"] == steps


@needs_nvtx
def test_ranges_mark_nothing_if_no_name_is_chosen(workspace):
    env = {"NVTX_INJECTION64_PATH": str(shimmed.SHIM)}
    run = workspace.run([NVTX], env, preload=shimmed.DRIVEN)
    assert (run.returncode, run.report["process"]["steps"]) == (0, None)


def test_a_process_that_does_not_run_under_cuwarden_marks_nothing(workspace):
    run = run_loop(workspace, shim=False)
    assert run.stderr == "" and run.reports == []


def test_a_process_that_is_turned_off_or_calls_no_cuda_has_no_report(workspace):
    run = run_loop(workspace, env={"CUWARDEN_ENABLED": "0"})
    assert (run.stderr, run.reports) == ("", [])
    path = workspace.work / "without_cuda.py"
    path.write_text("import cuwarden\nfor _ in range(5): cuwarden.step()\n")
    run = workspace.run(["/usr/bin/python3", path], {"PYTHONPATH": str(PYTHON)})
    assert (run.returncode, run.stderr, run.reports) == (0, "", [])


def test_a_forked_child_counts_its_own_steps(workspace):
    path = workspace.work / "forks.py"
    path.write_text(
        "import cuwarden, ctypes, os\n"
        "for _ in range(7): cuwarden.step()\n"
        "child = os.fork()\n"
        "if child: os._exit(os.waitpid(child, 0)[1])\n"
        "cudart, out = ctypes.CDLL('libcudart.so.13'), ctypes.c_void_p()\n"
        "for _ in range(5):\n"
        "    cuwarden.step()\n"
        "    cudart.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(4096))\n"
    )
    run = workspace.run(["/usr/bin/python3", path], {"PYTHONPATH": str(PYTHON)})
    assert run.returncode == 0 and run.report["process"]["steps"] == 5, run.stderr


@pytest.mark.parametrize("steps", [3, 4])
def test_growth_is_judged_by_steps_from_four_of_them_on(workspace, steps):
    run = run_loop(workspace, steps=steps)
    assert (leak_of(run.report, "warm_up")["first_step"] is None) == (steps < 4)
