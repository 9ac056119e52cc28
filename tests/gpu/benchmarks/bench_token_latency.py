#!/usr/bin/env python3
"""The time that a language model takes for one token, with and without the shim, in processes that
work in turns.

    bench_token_latency.py [--couples N] [--rounds N] [--tokens N] [--limit RATIO]

Each couple is one process bare and one shimmed; there are as many couples with CUWARDEN_POOL=off as
with auto. Prints the 50th, 99th and 99.9th percentile of a token's time. The exit status is 1 if
the ratio of the 99th percentiles passes the limit.
"""

import shlex
import statistics
import sys

import alternating
import preloaded

SHARES = (0.5, 0.99, 0.999)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main():
    parser = alternating.parser_of_turns(__doc__, rounds=30, limit=1.01)
    parser.add_argument("--tokens", type=int, default=100, help="for each turn")
    options = parser.parse_args()
    alternating.need_torch()
    command = [sys.executable, preloaded.FRAMEWORKS / "token_latency.py"]
    print(f"$ {shlex.join(map(str, command))}")
    modes = {
        mode: alternating.InTurns(command, options.couples, options.tokens, {"CUWARDEN_POOL": mode})
        for mode in ("off", "auto")
    }
    # By mode and couple: the times of all tokens of the bare process, and of the shimmed one.
    times = {mode: [([], []) for _ in range(options.couples)] for mode in modes}
    for _ in range(options.rounds):
        for mode, turns in modes.items():
            for couple, answers in zip(times[mode], turns.answers()):
                for all_times, answer in zip(couple, answers):
                    all_times.extend(answer)
    failed = False
    for mode, turns in modes.items():
        for problem in turns.end():
            print(f"problem: {problem}")
            failed = True
        ratios = {share: [] for share in SHARES}
        for number, (bare, shimmed) in enumerate(times[mode], 1):
            line = f"  CUWARDEN_POOL={mode}, couple {number}, {len(bare)} tokens:"
            for share in SHARES:
                pair = [percentile(values, share) / 1e3 for values in (bare, shimmed)]
                ratios[share].append(pair[1] / pair[0])
                line += f"  p{100 * share:g} {pair[0]:.1f} -> {pair[1]:.1f} us"
            print(line)
        middle = {share: statistics.median(all_ratios) for share, all_ratios in ratios.items()}
        print(f"CUWARDEN_POOL={mode}: " + ", ".join(
            f"p{100 * share:g} {ratio:.4f}" for share, ratio in middle.items()
        ) + f" of the time without the shim; at most {options.limit} wanted at p99", flush=True)
        failed = failed or middle[0.99] > options.limit
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
