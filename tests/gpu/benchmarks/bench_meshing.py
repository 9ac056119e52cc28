#!/usr/bin/env python3
"""The part of its freed memory that a program can have again, and the cost of meshing: bare and with
CUWARDEN_POOL=on.

    bench_meshing.py [--window-gib GIB] [--request MIB] [--requests N] [--mesh MODE]
                     [--size KIB,KIB...] [--live PERCENT,PERCENT...]

Two lines come first, the floor: what the driver takes, on this machine, to map a page of memory,
to allow access, to unmap it and to give it back. A call takes as long for four neighbours that are
mapped in one piece as for one page, so that they cost less a page.

A paragraph follows for each size of blocks and each share of live ones. Its first line has the part of
the freed bytes that can be allocated again. It also has the time of a meshed page in the pause and in
all, the time of the pauses, and that of the longest request. The lines below it are:

- The time of a block when the memory is filled. The part of the freed bytes that cudaMemGetInfo shows
  as free right after the frees.
- The time of all requests, divided, in us a meshed page: pauses, plans, preparations (second addresses
  of memory, and new memory), memory that is given back, others. Others are the program's time between
  two pauses, other rungs, and the driver's calls that allocate.
- The number of pauses. The longest stall of a thread that fills four bytes all the time.
- With --requests: the time for which the program stood still during N requests, one after the other.
  There are fewer if one is refused.
- The time that the paragraph took.

The exit status is 1 if a surviving block has lost its contents.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import alternating
import preloaded


def numbers(text):
    return [int(part) for part in text.split(",")]


def print_floor(workspace, programs):
    """Prints what the driver's calls take a page, alone and with three neighbours."""
    for pages in (1, 4):
        run = workspace.run([programs / "mapping_costs", str(pages)], shim=False)
        if run.returncode != 0:
            sys.exit(f"mapping_costs: status {run.returncode}: {run.stderr[-300:]}")
        page_us = {name: ns / 1e3 / pages for name, ns in run.last_line.items()}
        calls = ("map_ns", "access_ns", "unmap_ns", "release_ns")
        parts = " + ".join(f"{name.removesuffix('_ns')} {page_us[name]:.1f}" for name in calls)
        print(
            f"floor, {pages} page{'s' if pages > 1 else ''} in one piece: {parts} = "
            f"{sum(page_us[name] for name in calls):.1f} us a page "
            f"(create {page_us['create_ns']:.1f})",
            flush=True,
        )


def of_freed(facts, name):
    """Returns the figure as percents of the bytes that the program has freed, as text."""
    return f"{100 * facts[name] / max(facts['freed_bytes'], 1):5.1f} %"


def stood_still(facts):
    return f"{facts['stalled_ns'] / 1e6:.0f} ms in {facts['stalls']} stalls of over 1 ms"


def first_line(size, live, bare, on, pool):
    line = (
        f"{size:5} KiB, {live:2} % live:  bare {of_freed(bare, 'had_again_bytes')}"
        f"  on {of_freed(on, 'had_again_bytes')}"
    )
    pages, pause_us = pool["meshed_pages"], pool["mesh_pause_ns"] / 1e3
    if pages:
        line += (
            f"  {pause_us / pages:6.1f} us a page in the pause, "
            f"{on['had_again_ns'] / 1e3 / pages:6.1f} in all, {pages} pages, "
            f"pauses {pause_us / 1e3:.0f} ms, longest request {on['longest_request_ns'] / 1e6:.0f} ms"
        )
    return line


def parts_of_time(on, pool):
    """Yields the parts of the time of all requests, in us a meshed page, and their names."""
    pages, left_ns = pool["meshed_pages"], on["had_again_ns"]
    for name in ("pause", "plan", "prepare", "release"):
        ns = pool[f"mesh_{name}_ns"]
        left_ns -= ns
        yield f"{name} {ns / 1e3 / pages:.1f}"
    yield f"others {left_ns / 1e3 / pages:.1f}"


def further_lines(options, bare, on, pool):
    yield (
        f"a block of the fill: bare {bare['fill_ns_a_block']} ns, on {on['fill_ns_a_block']} ns; "
        f"shown as free after the frees: bare {of_freed(bare, 'shown_free_bytes').strip()}, "
        f"on {of_freed(on, 'shown_free_bytes').strip()}"
    )
    if pool["meshed_pages"]:
        yield f"us a page: {' + '.join(parts_of_time(on, pool))}"
    pauses, rescued = pool["mesh_pauses"], pool["rescued_count"]
    served = on["had_again_bytes"] // (options.request << 20)
    yield (
        f"{pauses} pauses; {served} requests were served, {rescued} of them after a refusal "
        f"({pauses / max(rescued, 1):.2f} pauses for each of these); "
        f"longest stall that a thread saw: bare {bare['longest_fill_ns'] / 1e6:.1f} ms, "
        f"on {on['longest_fill_ns'] / 1e6:.1f} ms of {on['fills']} fills"
    )
    if options.requests is not None:
        yield (
            f"{options.requests} requests of {options.request} MiB one after the other: {served} served; "
            f"standstill {pool['mesh_pause_ns'] / 1e6:.0f} ms in {pauses} pauses; "
            f"a thread saw {stood_still(on)} (bare {stood_still(bare)}); "
            f"all requests took {on['had_again_ns'] / 1e6:.0f} ms"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--window-gib", "--window", dest="window", type=float, default=8,
                        help="GiB of the device that are filled; for blocks below 16 KiB a quarter of it")
    parser.add_argument("--request", type=int, default=32, help="MiB that are asked for each time")
    parser.add_argument("--requests", type=int, help="number of requests at most (default: until one is refused)")
    parser.add_argument("--mesh", default="on:kernel", help="CUWARDEN_MESH of the shimmed programs")
    parser.add_argument("--size", type=numbers, action="extend", help="KiB of a block, such as 4,64,256")
    parser.add_argument("--live", type=numbers, action="extend", help="percent of the blocks that stay, such as 5,10")
    options = parser.parse_args()
    alternating.need_gpu()
    programs = preloaded.BUILD / "tests" / "end_to_end" / "programs"
    program = programs / "recovery"
    if not program.exists():
        alternating.skip(f"{program} was not built")
    damaged = 0
    with tempfile.TemporaryDirectory() as folder:
        workspace = preloaded.Workspace(Path(folder))
        print_floor(workspace, programs)
        for size in options.size or (4, 64, 256, 1024):
            for live in options.live or (10, 25, 50):
                begun = time.monotonic()
                # Blocks of 4 KiB are many.
                window = int(options.window * (1 << 30)) // (4 if size < 16 else 1)
                command = [program, size << 10, size << 10, live, window, options.request << 20, "watches=1"]
                if options.requests is not None:
                    command.append(f"requests={options.requests}")
                facts = {}
                for shim in (False, True):
                    env = {"CUWARDEN_POOL": "on", "CUWARDEN_MESH": options.mesh}
                    run = workspace.run(command, env, shim=shim, timeout_s=300)
                    if run.returncode != 0:
                        print(f"{size} KiB, {live} % live: status {run.returncode}: {run.stderr[-300:]}")
                        return 1
                    facts[shim] = run.last_line
                    damaged += facts[shim]["damaged"]
                bare, on, pool = facts[False], facts[True], run.report["pool"]
                print(first_line(size, live, bare, on, pool))
                for line in further_lines(options, bare, on, pool):
                    print(f"    {line}")
                print(f"    took {time.monotonic() - begun:.1f} s", flush=True)
    print(f"meshing: {damaged} blocks have lost their contents")
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
