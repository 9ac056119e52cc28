#!/usr/bin/env python3
"""The part of its freed memory that a program can have again, and the cost of meshing: bare and with
CUWARDEN_POOL=on.

    bench_meshing.py [--window GIB] [--request MIB] [--mesh MODE] [--size KIB]... [--live PERCENT]...

Two lines come first, the floor: what the driver takes, on this machine, to map a page of memory,
to allow access, to unmap it and to give it back. A call takes as long for four neighbours that are
mapped in one piece as for one page, so that they cost less a page.

Each further line has a size of blocks and a share of live ones. It tells which part of the freed bytes can be
allocated again, and what a meshed page takes in the pause and in all. Then come the time of the
pauses and of the longest request. The exit status is 1 if a surviving block has lost its contents.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import alternating
import preloaded


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--window", type=int, default=8, help="GiB of the device that are filled")
    parser.add_argument("--request", type=int, default=32, help="MiB that are asked for each time")
    parser.add_argument("--mesh", default="on:kernel", help="CUWARDEN_MESH of the shimmed programs")
    parser.add_argument("--size", type=int, action="append", help="KiB of a block")
    parser.add_argument("--live", type=int, action="append", help="percent of the blocks that stay")
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
                # Blocks of 4 KiB are many.
                window = (options.window << 30) // (4 if size < 16 else 1)
                command = [program, size << 10, size << 10, live, window, options.request << 20]
                line = f"{size:5} KiB, {live:2} % live:"
                for shim in (False, True):
                    env = {"CUWARDEN_POOL": "on", "CUWARDEN_MESH": options.mesh}
                    run = workspace.run(command, env, shim=shim, timeout_s=300)
                    if run.returncode != 0:
                        print(f"{line} status {run.returncode}: {run.stderr[-300:]}")
                        return 1
                    facts = run.last_line
                    share = facts["had_again_bytes"] / facts["freed_bytes"]
                    line += f"  {'on' if shim else 'bare'} {100 * share:5.1f} %"
                    damaged += facts["damaged"]
                pool = run.report["pool"]
                pages, longest_ms = pool["meshed_pages"], facts["longest_request_ns"] / 1e6
                if pages:
                    pause_us, all_us = pool["mesh_pause_ns"] / 1e3, facts["had_again_ns"] / 1e3
                    line += (
                        f"  {pause_us / pages:6.1f} us a page in the pause, "
                        f"{all_us / pages:6.1f} in all, {pages} pages, "
                        f"pauses {pause_us / 1e3:.0f} ms, longest request {longest_ms:.0f} ms"
                    )
                print(line, flush=True)
    print(f"meshing: {damaged} blocks have lost their contents")
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
