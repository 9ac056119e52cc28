"""Compares the Python frames that are read without the interpreter's lock with those that Python sees.

    python_reading_test python_reading.py [end]

Reads them in random trees of calls, in functions that are compiled, run and freed, and in threads that
start and end. Meanwhile, garbage is collected. With `end`, the script only lets the interpreter end under
threads that still read their frames. LARGE_COUNTS in the environment makes it many times as long.
"""

import ctypes
import gc
import os
import random
import sys
import threading

sys.dont_write_bytecode = True
import call_ways

LARGE = "LARGE_COUNTS" in os.environ
WORKERS = 8
TREES = 8000 if LARGE else 60
READINGS = 160 if LARGE else 20  # readings of one stack, one after the other
ROUNDS = 1_000_000 if LARGE else 3000  # rounds in which code is made, runs and is freed

compare_frames = ctypes.CDLL(None).compare_frames
compare_frames.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int]


def compare(times=READINGS, native=1):
    compare_frames(call_ways.text_of_frames().encode(), native, times)


def walk_trees(seed):
    chance = random.Random(seed)
    for _ in range(TREES):
        call_ways.tree(chance, chance.randrange(1, 12), compare)()


def make_and_free_code(rounds):
    for number in range(rounds):
        space = {"compare": compare}
        lines = "\n" * (number % 5)
        exec(f"{lines}def made{number}(): compare(2)\nmade{number}()", space)


def start_threads(stopped):
    while not stopped.is_set():
        thread = threading.Thread(target=compare)
        thread.start()
        thread.join()


def collect_garbage(stopped):
    while not stopped.wait(0.001):
        cycle = []
        cycle.append(cycle)
        del cycle
        gc.collect()


def compare_for_ever():
    while True:
        compare(3)


def main():
    stopped = threading.Event()
    work = [threading.Thread(target=walk_trees, args=[seed]) for seed in range(WORKERS)]
    work += [threading.Thread(target=make_and_free_code, args=[ROUNDS // 2]) for _ in range(2)]
    beside = [threading.Thread(target=one, args=[stopped]) for one in (start_threads, collect_garbage)]
    for thread in [*work, *beside]:
        thread.start()
    for thread in work:
        thread.join()
    stopped.set()
    for thread in beside:
        thread.join()


def end_under_threads():
    for _ in range(3):
        threading.Thread(target=compare_for_ever, daemon=True).start()
    compare()


end_under_threads() if "end" in sys.argv else main()
