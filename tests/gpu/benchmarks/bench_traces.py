#!/usr/bin/env python3
"""Recorded requests of real programs, bare and with cuwarden's pool: the memory in use by
cudaMemGetInfo, the least memory that serves all requests, and the time of a call.

    bench_traces.py [--pool MODE]... [TRACE]...
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import alternating
import preloaded

TRACES = Path(__file__).resolve().parents[2] / "traces"
MIB = 1 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pool", action="append", metavar="MODE", help="auto, on")
    parser.add_argument("traces", nargs="*", type=Path)
    options = parser.parse_args()
    alternating.need_gpu()
    modes = ["bare", *(options.pool or ["auto", "on"])]
    print(f"{'':20}{'mode':6}{'mean MiB':>10}{'most MiB':>10}{'least MiB':>11}{'us a call':>11}")
    failed = False
    for trace in options.traces or sorted(TRACES.glob("*.txt")):
        trace = trace.resolve()
        for mode in modes:
            with tempfile.TemporaryDirectory() as folder:
                run = preloaded.Workspace(Path(folder)).run(
                    [preloaded.BUILD / "tests/end_to_end/programs/replay", trace],
                    {} if mode == "bare" else {"CUWARDEN_POOL": mode},
                    shim=mode != "bare",
                    timeout_s=300,
                )
            if run.returncode != 0:
                print(f"{trace.stem}, {mode}: status {run.returncode}: {run.stderr[-500:]}")
                failed = True
                continue
            facts = json.loads(run.stdout.splitlines()[-1])
            print(
                f"{trace.stem if mode == 'bare' else '':20}{mode:6}"
                f"{facts['mean_used_bytes'] / MIB:10.1f}{facts['most_used_bytes'] / MIB:10.1f}"
                f"{facts['least_room_bytes'] / MIB:11.1f}{facts['ns_a_call'] / 1e3:11.2f}",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
