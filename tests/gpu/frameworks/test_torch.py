"""PyTorch with each of its allocators: the report's live bytes equal PyTorch's own figures."""

import socket
import sys

import pytest

from framework_checks import (
    check_planted,
    command,
    made_in,
    needs,
    run_to_figures,
    run_to_natural_end,
)
from preloaded import FRAMEWORKS, Run, check_covered
from report_tables import Report

pytestmark = needs("torch")

ALLOCATOR = r"libc10_cuda\.so"
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def configured(value):
    return {**DETERMINISTIC, **({"PYTORCH_CUDA_ALLOC_CONF": value} if value else {})}


def test_the_default_allocators_segments_are_the_reports_live_allocations(workspace):
    run = run_to_figures(workspace, "torch_training.py", env=configured(None))
    live = run.report.live(["device"], made_in(run.report, ALLOCATOR))
    assert live == (run.figures["segments"], run.figures["reserved_bytes"])
    host = run.figures["host"]
    if "allocated_bytes.current" in host:
        pinned = run.report.live(["pinned"], made_in(run.report, r"lib(torch|c10)"))
        assert pinned[1] == host["allocated_bytes.current"], host


def test_segments_have_the_lines_of_the_script_that_asked_for_them(workspace):
    run = run_to_figures(workspace, "torch_training.py", env=configured(None))
    segments = run.report.groups(["device"], made_in(run.report, ALLOCATOR))
    # Backward passes run in threads of PyTorch's own, without Python frames.
    lines = [frames for frames in map(run.report.python_frames, segments) if frames]
    assert len(lines) >= 2
    assert all(frames[-1] == ("torch_training.py", "<module>") for frames in lines), lines
    assert any(("torch_training.py", "train") in frames for frames in lines), lines


def test_expandable_segments_are_virtual_memory(workspace):
    run = run_to_figures(
        workspace, "torch_training.py", env=configured("expandable_segments:True")
    )
    count, size = run.report.live(["vmm"], made_in(run.report, ALLOCATOR))
    assert count > 0
    assert size == run.figures["reserved_bytes"]
    assert run.report.live(["device"], made_in(run.report, ALLOCATOR)) == (0, 0)


def test_the_async_backends_allocations_are_stream_ordered(workspace):
    run = run_to_figures(
        workspace, "torch_training.py", env=configured("backend:cudaMallocAsync")
    )
    assert run.figures["backend"] == "cudaMallocAsync"
    count, size = run.report.live(["stream_ordered"], made_in(run.report, ALLOCATOR))
    assert count > 0
    assert size == run.figures["allocated_bytes"]


@pytest.mark.parametrize(
    "configuration", [None, "expandable_segments:True", "backend:cudaMallocAsync"]
)
def test_a_training_that_ends_by_itself_has_a_whole_report(workspace, configuration):
    run = run_to_natural_end(workspace, "torch_training.py", env=configured(configuration))
    if configuration == "backend:cudaMallocAsync":
        # The pool keeps idle memory beside the live memory at the end.
        accounts = {row["item"]: row["bytes"] for row in run.report["accounts"]}
        pool = accounts["live_stream_ordered"] + accounts["mempool_idle"]
        reserved = run.figures["reserved_bytes"]
        assert abs(pool - reserved) <= reserved / 100, (accounts, reserved)


@pytest.mark.alone
def test_refusals_without_a_rescue_are_incidents_that_failed(workspace):
    """Prints how long a refusal takes. The first one includes the symbols of all of PyTorch; a repeated one
    writes no report.
    """
    script = command("torch_refused.py")
    bare = workspace.run(script, shim=False, timeout_s=150)
    run = workspace.run(script, timeout_s=150)
    print(f"bare {bare.figures}, shimmed {run.figures}")
    incidents = run.report["incidents"]
    assert {incident["outcome"] for incident in incidents} == {"failed"}


@needs("cupy")
def test_memory_of_pytorch_and_cupy_in_one_process_is_told_apart(workspace):
    run = run_to_figures(workspace, "torch_and_cupy.py")
    torch_live = run.report.live(["device"], made_in(run.report, ALLOCATOR))
    assert torch_live == (run.figures["segments"], run.figures["reserved_bytes"])
    cupy_live = run.report.live(["device"], made_in(run.report, r"cupy/cuda/memory", anywhere=True))
    assert cupy_live[1] == run.figures["total_bytes"]


def test_workers_of_a_dataloader_have_reports_of_their_own_where_they_use_the_gpu(workspace):
    run = run_to_figures(workspace, "torch_workers.py")
    live = run.report.live(["device"], made_in(run.report, ALLOCATOR))
    assert live == (run.figures["segments"], run.figures["reserved_bytes"])
    reports = [Report.read(path) for path in workspace.reports.iterdir()]
    by_pid = {report["process"]["pid"]: report for report in reports}
    # The forked workers made no CUDA call: only the parent and the two spawned workers have
    # reports.
    workers = run.figures["workers"]
    assert set(by_pid) == {run.pid, *(pid for pid, _, _ in workers)}
    assert len(reports) == 3
    for pid, segments, reserved_bytes in workers:
        (total,) = (row for row in by_pid[pid]["totals"] if row["kind"] == "device")
        assert (total["allocations"], total["peak_bytes"]) == (segments, reserved_bytes)
        check_covered(by_pid[pid])


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.gpus(2)
def test_every_rank_of_an_all_reduce_has_a_report_of_its_own(workspace):
    port = free_port()
    outputs = {}
    for shim in (False, True):
        ranks = [
            workspace.start(
                command("torch_all_reduce.py", "--end", "_exit"),
                {
                    "RANK": rank,
                    "LOCAL_RANK": rank,
                    "WORLD_SIZE": 2,
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": port + int(shim),
                },
                shim=shim,
            )
            for rank in range(2)
        ]
        runs = [
            workspace.finish(process, f"rank{rank}-{'shim' if shim else 'bare'}")
            for rank, process in enumerate(ranks)
        ]
        assert [run.returncode for run in runs] == [0, 0], runs[0].stderr[-3000:]
        outputs[shim] = [run.output for run in runs]
    assert outputs[True] == outputs[False]
    check_planted(runs[0])
    for rank, run in enumerate(runs):
        assert run.said == []
        assert run.report["job"]["rank"] == rank
        groups = made_in(run.report, ALLOCATOR)
        live = run.report.live(["device"], lambda g: g["device"] == rank and groups(g))
        assert live == (run.figures["segments"], run.figures["reserved_bytes"])
        by_nccl = run.report.groups(where=made_in(run.report, r"libnccl"))
        assert sum(group["bytes"] for group in by_nccl) > 0, run.report.describe()
        check_covered(run.report)


def torchrun(workspace, into, *, shim):
    """Runs two ranks on one GPU. Returns the launcher's run and the output of each rank."""
    into.mkdir()
    run = workspace.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2",
            "--master_addr=127.0.0.1", f"--master_port={free_port()}",
            FRAMEWORKS / "torch_ranks.py", into, "--end", "_exit",
        ],
        {"CUWARDEN_REPORT": workspace.reports / "rank%r.json"},
        shim=shim,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    return run, [(into / f"rank-{rank}.txt").read_text() for rank in range(2)]


def test_two_ranks_that_torchrun_starts_on_one_gpu_have_a_report_each(workspace):
    _, bare = torchrun(workspace, workspace.folder / "bare", shim=False)
    launcher, said = torchrun(workspace, workspace.folder / "shim", shim=True)
    assert launcher.said == []
    # The launcher has no rank. It asks the driver about the devices, and allocates nothing.
    found = {path.name for path in workspace.reports.iterdir()}
    assert found - {"ranknone.json"} == {"rank0.json", "rank1.json"}
    if "ranknone.json" in found:
        assert Report.read(workspace.reports / "ranknone.json")["totals"] == []
    assert list(workspace.ledger.iterdir()) == []
    planted = []
    for rank in range(2):
        report = Report.read(workspace.reports / f"rank{rank}.json")
        run = Run(report["process"]["pid"], said[rank], launcher.stderr, 0, [report])
        assert run.output == Run(0, bare[rank], "", 0, []).output
        assert run.figures["pid"] == report["process"]["pid"]
        assert report["job"]["rank"] == rank
        # The sizes differ between ranks: no leak of the other rank is among them.
        check_planted(run)
        planted.append(tuple(fact["bytes"] for fact in run.fact_lines))
        live = report.live(["device"], made_in(report, ALLOCATOR))
        assert live == (run.figures["segments"], run.figures["reserved_bytes"])
        check_covered(report)
    assert planted[0] != planted[1]
