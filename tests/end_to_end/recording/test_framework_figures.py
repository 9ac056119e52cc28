"""Figures that frameworks give when cuwarden asks them inside an unmodified program."""

import pytest

import shimmed
from asked_frameworks import MIB, PYTHON, PYTHON_MODULES, RUNTIME, figures, report_of, run
from reports import Report

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


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise Late", "Late"),
        ("signal.signal(signal.SIGALRM, signal.SIG_DFL); raise Late", "Late"),
    ],
)
@pytest.mark.parametrize("partial", [False, True])
def test_an_exception_of_a_signal_handler_is_the_programs(workspace, handler, kind, partial):
    """The signal comes while a framework is asked, right after a refused request."""
    done = run(
        workspace,
        f"""
        import cupy, functools, os, signal
        class Late(Exception):
            pass
        def on_alarm(*_):
            {handler}
        signal.signal(signal.SIGALRM, functools.partial(on_alarm) if {partial} else on_alarm)
        def total():
            cupy._pool.total_bytes = lambda: 0
            os.kill(os.getpid(), signal.SIGALRM)
            return 1
        cupy.empty(1 << 20)
        cupy._pool.total_bytes = total
        try:
            cupy.empty(4 << 30)
            for _ in range(1000):
                pass
            print("lost")
        except {kind}:
            print("came")
        """,
        "--pool", "off",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "came\n"), done.stderr


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


def test_threads_are_joined_although_the_program_has_put_back_its_modules(workspace):
    done = run(
        workspace,
        """
        import cupy, threading
        before = dict(sys.modules)
        cupy.empty(1 << 20)
        for _ in range(1000):
            pass
        sys.modules.clear()
        sys.modules.update(before)
        assert cupy.empty(4 << 30) is None
        for _ in range(1000):
            pass
        def late():
            threading.main_thread().join()  # returns once the interpreter joins other threads
            print("joined", flush=True)
        threading.Thread(target=late).start()
        """,
        "--pool", "off",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "joined\n"), done.stderr
    assert "Traceback" not in done.stderr
    (row,) = figures(report_of(workspace), "CuPy")
    assert row["allocated_bytes"] == 1 * MIB


# A further request for figures, without an incident, must not make the incident's time later.
@pytest.mark.parametrize("then", ["", "; ctypes.CDLL(None).cuwarden_1_ask_frameworks()"])
def test_figures_that_come_late_are_not_those_of_the_refused_request(workspace, then):
    done = run(
        workspace,
        f"""
        import ctypes, cupy, threading
        cupy.empty(8 << 20)
        os.mkfifo("told")
        def work():
            with open("told", "w"):  # comes once the main thread waits for the shell
                assert cupy.empty(4 << 30) is None
                ctypes.CDLL(None).pass_driven_time(ctypes.c_int64(1_500_000_000)){then}
        threading.Thread(target=work).start()
        os.system("read told <told")
        """,
        "--pool", "off", preload=shimmed.DRIVEN_CLOCK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = report_of(workspace)
    (incident,) = report["incidents"]
    assert figures(report, "CuPy", incident["id"]) == []
    assert figures(report, "CuPy")[0]["allocated_bytes"] == 8 * MIB


def test_a_trace_function_sees_none_of_cuwardens_code(workspace):
    done = run(
        workspace,
        """
        import cupy
        files = set()
        def trace(frame, event, argument):
            files.add(frame.f_code.co_filename)
            return trace
        sys.settrace(trace)
        cupy.empty(1 << 20)
        for _ in range(1000):
            pass
        sys.settrace(None)
        print("<cuwarden>" in files, len(files) > 0)
        """,
    )
    assert (done.returncode, done.stdout) == (0, "False True\n"), done.stderr


def test_the_first_import_of_signal_is_left_to_the_program(workspace):
    """A first import of signal sets a handler for SIGINT in a program that embeds Python."""
    text = (shimmed.SOURCE / "tools/python/cuwarden.py").read_text()
    imported = {line.split()[1] for line in text.splitlines() if line.startswith("import ")}
    assert imported and "signal" not in imported


def test_a_forked_child_without_cuda_is_not_asked(workspace):
    done = run(
        workspace,
        """
        import os, cupy
        cupy.empty(1 << 20)
        for _ in range(1000):
            pass
        child = os.fork()
        if child == 0:
            cupy._pool.total_bytes = lambda: print("asked", flush=True)
            sys.exit(0)
        print(os.waitpid(child, 0)[1])
        """,
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_a_reclaimer_of_the_programs_own_stays(workspace):
    """The program has registered one of CuPy's name before cuwarden asks."""
    done = run(
        workspace,
        """
        import cupy, cuwarden
        cuwarden.register_reclaimer("CuPy", "", lambda device, wanted: 0)
        mine = dict(cuwarden._registered)
        cupy.empty(1 << 20)
        assert cupy.empty(4 << 30) is None
        for _ in range(1000):
            pass
        print(cuwarden._registered["CuPy"] == mine["CuPy"])
        """,
        path=PYTHON_MODULES,
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_pages_that_pytorch_locks_are_told_by_the_names_of_each_version(workspace):
    for stats, told in (
        ("{'allocated_bytes.current': 9 << 20, 'active_bytes.current': 4 << 20}", (9 * MIB, 4 * MIB)),
        ("{'reserved_bytes.current': 9 << 20, 'allocated_bytes.current': 4 << 20}", (9 * MIB, 4 * MIB)),
    ):
        (workspace.work / "torch.py").write_text(
            RUNTIME + "class cuda:\n"
            "    is_initialized = staticmethod(lambda: True)\n"
            f"    host_memory_stats = staticmethod(lambda: {stats})\n"
        )
        report = f"{told[0] + len(stats)}.json"
        done = run(workspace, "import torch\ntorch.malloc(1 << 20)\nfor _ in range(1000): pass", report=report)
        assert done.returncode == 0, done.stderr
        (row,) = figures(Report.read(workspace.reports / report), "PyTorch")
        assert (row["pool"], row["device"]) == ("pinned", None)
        assert (row["reserved_bytes"], row["allocated_bytes"]) == told


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
