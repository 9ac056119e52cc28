#!/usr/bin/env python3
"""Write histories.jsonl: 200 allocation histories of one call stack each, with known truth.

Standard library only.  Deterministic: every history has its own random generator, seeded
with SEED and the history's name, so adding or removing one history changes no other.

    make_histories.py FILE            writes the histories to FILE, then checks it
    make_histories.py --check FILE    only checks FILE

Each history simulates its *program* (a queue, a cache, a training loop, a
handler with a bug), and the end of the process cuts it off.  A block freed at or after the end
gets null, like a block which is never freed at all; so "null" alone is not the truth.

Truths: growing (leaks on and on), burst (many kept from a short time), steady (what is alive at
the end is in use), one_time (a few kept blocks).
Times are integer microseconds since the start of the process.
"""
import json
import math
import os
import random
import sys
from collections import Counter, OrderedDict, deque

SEED = 20240611
PATH = next((word for word in sys.argv[1:] if not word.startswith("-")), "histories.jsonl")

SEC = 1_000_000
MIN = 60 * SEC
HOUR = 60 * MIN

ALL = []          # all the finished histories
_number = Counter()


# ----------------------------------------------------------------------------- one history

class History:
    """Collects (made, freed or None, bytes, leaked) and turns them into the output form."""

    def __init__(self, truth, label, reason, end, size=256):
        _number[truth] += 1
        self.name = "%s_%02d_%s" % (truth, _number[truth], label)
        self.truth, self.reason, self.end, self.size = truth, reason, int(end), size
        self.rng = random.Random("%d/%s" % (SEED, self.name))
        self.blocks, self.steps = [], []

    def add(self, made, life=None, leaked=False, size=None):
        """A block made at `made` which lives for `life` us; None: for ever."""
        made = int(made)
        if not 0 <= made < self.end:      # the process does not live to make this block
            return
        freed = None
        if life is not None:
            freed = made + max(1, int(life))
            if freed >= self.end:
                freed = None
        if size is None:
            size = self.size(self.rng, made) if callable(self.size) else self.size
        self.blocks.append((made, freed, int(size), leaked))

    def done(self):
        self.blocks.sort(key=lambda b: b[0])
        sizes = [b[2] for b in self.blocks]
        one = len(set(sizes)) == 1
        ALL.append({
            "name": self.name, "truth": self.truth, "reason": self.reason, "end_us": self.end,
            "steps_us": sorted(int(s) for s in self.steps if 0 <= s < self.end),
            "made_us": [b[0] for b in self.blocks],
            "freed_us": [b[1] for b in self.blocks],
            "bytes": sizes[0] if one else sizes,
        })
        LEAKED[self.name] = sum(b[3] for b in self.blocks)   # only for the report


LEAKED = {}


# ----------------------------------------------------------------------------- arrival times

def regular(rng, t0, t1, n, jitter=0.1):
    """n times at equal distances, each moved by a share of the distance."""
    d = (t1 - t0) / n
    return sorted(t0 + (i + 0.5 + rng.uniform(-jitter, jitter)) * d for i in range(n))


def poisson(rng, t0, t1, n):
    """n times at random (a Poisson stream, given its count)."""
    return sorted(rng.uniform(t0, t1) for _ in range(n))


def heavy(rng, t0, t1, n, sigma=1.5):
    """n times whose gaps are log-normal: very irregular."""
    gaps = [rng.lognormvariate(0, sigma) for _ in range(n + 1)]
    total, t, out = sum(gaps), 0.0, []
    for g in gaps[:-1]:
        t += g
        out.append(t0 + (t1 - t0) * t / total)
    return out


def profile(rng, t0, t1, n, rate):
    """n times with a density proportional to rate(x), x = 0..1, rate <= 1 (rejection)."""
    out = []
    while len(out) < n:
        x = rng.random()
        if rng.random() < rate(x):
            out.append(t0 + (t1 - t0) * x)
    return sorted(out)


def make_steps(rng, t0, t1, n, jitter=0.15):
    """Begins of n steps which fill t0..t1; step lengths vary a little."""
    w = [1 + rng.uniform(-jitter, jitter) for _ in range(n)]
    s, t, out = sum(w), 0.0, []
    for x in w:
        out.append(t0 + (t1 - t0) * t / s)
        t += x
    return out


def in_steps(rng, steps, last_end, k, lo=0.05, hi=0.9):
    """k times in every step, between shares lo and hi of the step."""
    out = []
    for a, b in zip(steps, steps[1:] + [last_end]):
        out += sorted(a + (b - a) * rng.uniform(lo, hi) for _ in range(k))
    return out


# ----------------------------------------------------------------------------- lifetimes

def expo(mean):
    return lambda rng: rng.expovariate(1.0 / mean)


def logn(median, sigma):
    return lambda rng: median * rng.lognormvariate(0, sigma)


def loguni(lo, hi):
    """Equal weight to every order of magnitude from lo to hi."""
    return lambda rng: math.exp(rng.uniform(math.log(lo), math.log(hi)))


def about(mean, part=0.1):
    return lambda rng: mean * rng.uniform(1 - part, 1 + part)


# ----------------------------------------------------------------------------- sizes

def sizes_of(*choices):
    return lambda rng, t: rng.choice(choices)


def sizes_between(lo, hi):
    return lambda rng, t: int(math.exp(rng.uniform(math.log(lo), math.log(hi))))


# ----------------------------------------------------------------------------- leak choosers

def chance(p):
    """Each block is lost with chance p."""
    return lambda rng, i, t: rng.random() < p


def every(n, first=0):
    """Every n-th block is lost."""
    return lambda rng, i, t: i % n == first % n


def leak(label, reason, end, times, life, lost, size=256, steps=None, truth="growing"):
    """The general leaking line: blocks at `times`, the `lost` ones stay, the others live `life`.
    times: function of the random generator.  steps: (t0, t1, n) or None."""
    h = History(truth, label, reason, end, size)
    if steps:
        h.steps = make_steps(h.rng, *steps)
        ts = times(h.rng, h.steps)
    else:
        ts = times(h.rng)
    for i, t in enumerate(ts):
        if lost(h.rng, i, t):
            h.add(t, None, leaked=True)
        else:
            h.add(t, life(h.rng))
    h.done()


# ============================================================================= growing (70)

def growing():
    G = leak
    short = expo(2000)

    # --- every block is lost (7)
    G("all_one_per_step", "Every training step appends its loss tensor to a list which nobody ever clears.",
      20 * MIN, lambda r, s: in_steps(r, s, 20 * MIN, 1), short, every(1), 4096, (15 * SEC, 20 * MIN, 200))
    G("all_timer", "A timer stores a statistics record every 10 s and never drops one.",
      HOUR, lambda r: regular(r, 2 * SEC, HOUR, 360, 0.02), short, every(1), 120)
    G("all_poisson_5s", "Every message of a short program is copied and the copy is forgotten.",
      5 * SEC, lambda r: poisson(r, 0.3 * SEC, 5 * SEC, 3000), short, every(1), sizes_of(32, 64, 128))
    G("all_poisson_10h", "Every client that connects leaves a session object behind, all through ten hours.",
      10 * HOUR, lambda r: poisson(r, MIN, 10 * HOUR, 4000), short, every(1), 1800)
    G("all_slow_10h", "A report is made every 25 minutes and each report's buffer is lost.",
      10 * HOUR, lambda r: regular(r, 0, 10 * HOUR, 24, 0.2), short, every(1), 3_000_000)
    G("all_14_epochs", "Each of 14 epochs opens the data set anew and never closes the old one.",
      90 * SEC, lambda r, s: [t + 20_000 for t in s], short, every(1), 65536, (4 * SEC, 90 * SEC, 14))
    h = History("growing", "all_growing_sizes", "Every epoch keeps a copy of the whole log so far; the copies grow and none is freed.",
                40 * MIN)
    h.steps = make_steps(h.rng, 20 * SEC, 40 * MIN, 60)
    for i, t in enumerate(h.steps):
        h.add(t + 0.8 * 39 * SEC, None, True, 2000 * (i + 1))
    h.done()

    # --- a large share is lost among short-lived siblings (5)
    for label, share, end, n, life, why in [
        ("half", 0.5, 5 * SEC, 800, expo(5000), "The answer buffer is lost whenever the client asked for the long form (half of the calls)."),
        ("three_in_ten", 0.3, 5 * MIN, 1500, logn(20_000, 1), "Three in ten parsed items are put in a registry which never drops them."),
        ("one_in_10", 0.1, HOUR, 3000, logn(300_000, 1), "One in ten requests takes the early return which skips the free."),
        ("one_in_20", 0.05, 90 * SEC, 2000, expo(100_000), "One in twenty events has a handler with a reference cycle; it is never collected."),
        ("one_in_50", 0.02, 10 * HOUR, 4000, expo(20 * SEC), "One in fifty uploads is aborted by the client and its buffer stays."),
    ]:
        G(label, why, end, lambda r, e=end, n=n: poisson(r, 0.02 * e, e, n), life, chance(share), sizes_between(50, 5000))

    # --- one in 100 .. one in 500 (10)
    for label, inv, end, n, life, why in [
        ("one_in_100_short", 100, 5 * SEC, 4000, expo(800), "One call in a hundred returns early and loses its scratch buffer."),
        ("one_in_100_hour", 100, HOUR, 5000, logn(100_000, 1.2), "One request in a hundred has a time-out, whose context is never released."),
        ("one_in_100_tenhours", 100, 10 * HOUR, 6000, logn(2 * SEC, 1.5), "One job in a hundred is cancelled and the cancelled job's state is lost."),
        ("one_in_150", 150, 20 * MIN, 6000, expo(50_000), "One message in 150 has an unknown type; its copy is never freed."),
        ("one_in_200_long_siblings", 200, 20 * MIN, 8000, expo(8 * SEC), "One session in 200 ends without a good-bye and stays in the table for ever."),
        ("one_in_200_short", 200, 90 * SEC, 6000, expo(300), "One in 200 strings needs escaping and its escaped copy is lost."),
        ("one_in_250", 250, 3 * HOUR, 9000, logn(400_000, 1), "One query in 250 misses the plan cache and its plan is never freed."),
        ("one_in_300", 300, 5 * MIN, 9000, about(30_000, 0.5), "One frame in 300 is a key frame whose side table is forgotten."),
        ("one_in_400", 400, 10 * HOUR, 12000, logn(5 * SEC, 1), "One mail in 400 has an attachment of a rare kind; its decoder is lost."),
        ("one_in_500", 500, HOUR, 13000, expo(60_000), "One packet in 500 is a retransmission and its copy is never released."),
    ]:
        G(label, why, end, lambda r, e=end, n=n: poisson(r, 0.01 * e, e, n), life, chance(1 / inv), 512)

    # --- one in a thousand (6)
    G("one_in_1000_regular", "Exactly every thousandth record starts a new segment whose header is never freed.",
      HOUR, lambda r: regular(r, 0, HOUR, 19000, 0.3), expo(20_000), every(1000, 317), 96)
    G("one_in_1000_random", "One request in a thousand hits a race and both threads allocate the entry; one copy is lost.",
      10 * HOUR, lambda r: poisson(r, MIN, 10 * HOUR, 20000), logn(SEC, 1), chance(1 / 1000), 700)
    G("one_in_1000_fast", "One in a thousand temporary strings is lost on a rare branch, in a program of five seconds.",
      5 * SEC, lambda r: poisson(r, 0.2 * SEC, 5 * SEC, 20000), expo(200), chance(1 / 1000), 48)
    G("one_in_1000_loguniform", "One in a thousand handles is never closed, the others live from 1 ms to 2 minutes.",
      20 * MIN, lambda r: poisson(r, 0, 20 * MIN, 18000), loguni(1000, 120 * SEC), chance(1 / 1000), 160)
    G("one_in_1000_loader", "The loader loses one sample in a thousand (a corrupt picture), in every part of the training.",
      HOUR, lambda r, s: in_steps(r, s, HOUR, 32), about(2 * SEC, 0.4), chance(1 / 1000), 150_528, (20 * SEC, HOUR, 600))
    G("one_in_1000_load_waves", "One call in a thousand is lost by a failed retry, under a load that comes in hourly waves.",
      10 * HOUR, lambda r: profile(r, 0, 10 * HOUR, 20000, lambda x: 0.5 + 0.5 * math.sin(20 * math.pi * x)),
      logn(3 * SEC, 1.2), chance(1 / 1000), 900)

    # --- leaks at irregular times (4)
    G("irregular_all", "A user opens a window now and then, at odd times; a closed window is never released.",
      3 * HOUR, lambda r: heavy(r, 30 * SEC, 3 * HOUR, 150, 1.3), short, every(1), 24000)
    G("irregular_few", "A rare network reconnect, at odd times all day, loses its old TLS context each time.",
      10 * HOUR, lambda r: heavy(r, 5 * MIN, 10 * HOUR, 40, 1.0), short, every(1), 52000)
    G("irregular_mix", "Plug-in calls come in a very uneven stream and one in eight keeps its arguments alive.",
      20 * MIN, lambda r: heavy(r, SEC, 20 * MIN, 1600, 2.0), logn(50_000, 1.5), chance(1 / 8), sizes_between(64, 4096))
    G("irregular_minute", "Debug records of a short tool pile up at uneven times; they are appended and never read.",
      MIN, lambda r: heavy(r, 0.5 * SEC, MIN, 400, 1.6), short, every(1), 200)

    # --- only on an error path (5)
    def outages(rng_times, n_out, length):
        """Errors come in outages: blocks are lost only while one lasts."""
        cache = {}

        def lost(rng, i, t):
            if "o" not in cache:   # the outages lie all over the run, one in each part of it
                a, b = rng_times
                d = (b - a) / n_out
                cache["o"] = [a + (k + rng.uniform(0.1, 0.9 - length / d)) * d for k in range(n_out)]
            return any(o <= t < o + length for o in cache["o"])
        return lost
    G("error_random", "One call in 60 fails and the exception keeps its frame and buffer alive in a list of errors.",
      HOUR, lambda r: poisson(r, 10 * SEC, HOUR, 4500), logn(80_000, 1), chance(1 / 60), 2048)
    G("error_outages", "While the data base is away, which happens about every half hour, every request loses its context.",
      10 * HOUR, lambda r: poisson(r, MIN, 10 * HOUR, 9000), expo(2 * SEC), outages((0, 10 * HOUR), 20, 40 * SEC), 1500)
    G("error_short_outages", "In each of the network's short faults a few packets take the error path, which does not free.",
      5 * MIN, lambda r: poisson(r, SEC, 5 * MIN, 6000), expo(10_000), outages((0, 5 * MIN), 15, 0.4 * SEC), 1500)
    G("error_rare", "One line in 180 cannot be parsed and its error object is kept by a handler that never clears.",
      20 * SEC, lambda r: poisson(r, 0.2 * SEC, 20 * SEC, 7000), expo(500), chance(1 / 180), 320)
    G("error_only_line", "The line runs only on errors, and every error report made there is kept for ever.",
      3 * HOUR, lambda r: poisson(r, MIN, 3 * HOUR, 55), short, every(1), 6400)

    # --- every n-th request (5)
    for label, n, end, count, life, why in [
        ("every_3rd", 3, 90 * SEC, 900, expo(30_000), "Requests are handled by three workers in turn and one worker has the bug."),
        ("every_7th", 7, 20 * MIN, 1400, logn(500_000, 1), "Every seventh request flushes a log and the flush's buffer is lost."),
        ("every_16th", 16, 5 * SEC, 2400, expo(1500), "Every 16th call begins a new page, whose descriptor is never freed."),
        ("every_64th", 64, HOUR, 5000, expo(4 * SEC), "Every 64th request makes a sample for the tracer, which never sends it."),
        ("every_128th", 128, 10 * HOUR, 9000, about(8 * SEC, 0.9), "Every 128th request rotates a key and the old key's schedule stays."),
    ]:
        G(label, why, end, lambda r, e=end, c=count: regular(r, 0.01 * e, e, c, 0.45), life, every(n, 2), 640)

    # --- leaks that begin late and go on to the end (7)
    def late(frac, inner):
        start = {}

        def lost(rng, i, t):
            return t >= frac and inner(rng, i, t)
        return lost
    for label, frac, end, n, life, inner, why in [
        ("late_62_half", .62, HOUR, 2500, expo(100_000), chance(.5), "A feature is switched on at 62 % of the run and from then on half of the requests lose a block."),
        ("late_65_tenth", .65, 20 * MIN, 4000, expo(20_000), chance(.1), "A slow client comes at 65 % and each tenth block is then lost."),
        ("late_70_all", .70, 90 * SEC, 1200, expo(9000), every(1), "At 70 % the consumer thread has died; everything queued for it afterwards is never freed."),
        ("late_75_one_in_100", .75, 10 * HOUR, 14000, logn(SEC, 1), chance(.01), "A new kind of message appears at 75 % and one block in a hundred is lost from then on."),
        ("late_80_all", .80, 5 * SEC, 1500, expo(2000), every(1), "At 80 % a callback is registered which keeps every event from then on."),
        ("late_85_fifth", .85, 3 * HOUR, 3500, logn(2 * SEC, 1.2), chance(.2), "The disk fills up at 85 % and every failed write loses its buffer, up to the end."),
    ]:
        G(label, why, end, lambda r, e=end, n=n: poisson(r, 0.01 * e, e, n), life, late(frac * end, inner), 1024)
    G("late_line_first_used", "The line is first called at 68 %, in the second phase of training, and loses a block in each of its steps.",
      30 * MIN, lambda r, s: in_steps(r, [t for t in s if t > 0.68 * 30 * MIN], 30 * MIN, 1), short, every(1), 40_000,
      (10 * SEC, 30 * MIN, 500))

    # --- freed siblings with lifetimes over orders of magnitude (4)
    for label, inv, end, n, lo, hi, why in [
        ("loguni_one_in_5", 5, HOUR, 2000, 1000, 5 * MIN, "Sessions live from a millisecond to minutes; one in five is never closed."),
        ("loguni_one_in_30", 30, 10 * HOUR, 5000, 10_000, HOUR, "Documents stay open from 10 ms to an hour; one in thirty stays open for ever by a lost reference."),
        ("loguni_one_in_100", 100, 5 * MIN, 10000, 100, 30 * SEC, "Tasks last from 0.1 ms to half a minute; one in a hundred is orphaned."),
        ("loguni_one_in_300", 300, 3 * HOUR, 14000, 1000, 10 * MIN, "Locks are held from 1 ms to ten minutes; one in 300 is never given back as its owner dies."),
    ]:
        G(label, why, end, lambda r, e=end, n=n: poisson(r, 0, e, n), loguni(lo, hi), chance(1 / inv), sizes_of(88, 176, 264))

    # --- bursty load: night and day (5)
    day = lambda k, phase: (lambda x: max(0.01, math.sin(2 * math.pi * (k * x + phase))))
    G("day_night_3_days_ends_day", "A web shop over three days loses one request in ten by day, and at night there is hardly a request.",
      72 * HOUR, lambda r: profile(r, 0, 72 * HOUR, 3500, day(3, 0.65)), expo(SEC), chance(.1), 3000)
    G("day_night_4_days_ends_night", "An office server over four days keeps every login; it stops in the fourth night.",
      96 * HOUR, lambda r: profile(r, 0, 96 * HOUR, 700, day(4, 0.0)), short, every(1), 5200)
    G("shifts_10h", "Five shifts of a plant in ten (scaled) hours; in each shift one measurement in 100 is lost, between them none.",
      10 * HOUR, lambda r: profile(r, 0, 10 * HOUR, 10000, lambda x: 1.0 if (x * 5) % 1 < .6 else .005),
      logn(4 * SEC, 1), chance(.01), 440)
    G("bursts_each_2_min", "Every two minutes a short rush of requests comes, and a quarter of them is lost each time.",
      HOUR, lambda r: sorted(b * 2 * MIN + 20 * SEC + r.expovariate(1) * SEC for b in range(30) for _ in range(60)),
      expo(200_000), chance(.25), 800)
    G("bursts_irregular", "Batches arrive at odd times; every batch loses two or three of its 200 blocks.",
      10 * HOUR, lambda r: sorted(b + r.uniform(0, 30 * SEC) for b in heavy(r, 5 * MIN, 10 * HOUR, 35, .8) for _ in range(200)),
      expo(5 * SEC), chance(1 / 80), 1300)

    # --- a program that pauses (4)
    def active(spans, n):
        """n times at random within the spans in which the program runs."""
        def f(r):
            out = []
            total = sum(b - a for a, b in spans)
            for a, b in spans:
                out += poisson(r, a, b, round(n * (b - a) / total))
            return sorted(out)
        return f
    G("pause_middle", "The program is suspended from 30 % to 65 % (a closed laptop) and loses one block in five before and after.",
      HOUR, active([(0, .30 * HOUR), (.65 * HOUR, HOUR)], 1500), expo(50_000), chance(.2), 900)
    G("pause_several", "The program sleeps when its queue is empty, four times; while it works every task leaves a block.",
      10 * MIN, active([(0, MIN), (2 * MIN, 4 * MIN), (5.5 * MIN, 6 * MIN), (7 * MIN, 8.5 * MIN), (9.3 * MIN, 10 * MIN)], 600),
      short, every(1), 350)
    G("pause_before_end", "A worker leaks one block in twelve all the time it works; for the last 12 % it had no jobs.",
      3 * HOUR, active([(MIN, 1.2 * HOUR), (1.5 * HOUR, 2.64 * HOUR)], 3600), logn(900_000, 1), chance(1 / 12), 2200)
    h = History("growing", "pause_steps", "Every step keeps one activation; the run is stopped twice in a debugger and goes on leaking.",
                20 * MIN, 1_000_000)
    for a, b, n in [(5 * SEC, 4 * MIN, 80), (9 * MIN, 11 * MIN, 40), (16 * MIN, 20 * MIN, 80)]:
        s = make_steps(h.rng, a, b, n)
        h.steps += s
        for t in in_steps(h.rng, s, b, 3):
            h.add(t, h.rng.uniform(.2, .8) * SEC)
        for t in in_steps(h.rng, s, b, 1):
            h.add(t, None, True)
    h.done()

    # --- other shapes (8)
    h = History("growing", "train_eval_alternate", "Training steps lose a tensor each, evaluation steps do not; the two phases alternate ten times.",
                HOUR, sizes_of(8192, 16384))
    for ep in range(10):
        a = 20 * SEC + ep * (HOUR - 20 * SEC) / 10
        b = a + (HOUR - 20 * SEC) / 10
        mid = a + .7 * (b - a)
        tr, ev = make_steps(h.rng, a, mid, 40), make_steps(h.rng, mid, b, 20)
        h.steps += tr + ev
        for t in in_steps(h.rng, tr, mid, 4) + in_steps(h.rng, ev, b, 4):
            h.add(t, h.rng.uniform(.5, 3) * SEC)
        for t in in_steps(h.rng, tr, mid, 1):
            h.add(t, None, True)
    h.done()
    G("long_siblings_one_in_20", "Leases live about 10 % of the run, but one in twenty is dropped without being freed.",
      HOUR, lambda r: poisson(r, 0, HOUR, 3000), about(6 * MIN, .3), chance(.05), 720)
    h = History("growing", "lru_forgets_one_in_10", "A cache of 150 entries evicts, but one evicted entry in ten is pinned by mistake and never freed.",
                30 * MIN, 4000)
    q = deque()
    for t in poisson(h.rng, 2 * SEC, 30 * MIN, 2500):
        q.append(t)
        if len(q) > 150:
            m = q.popleft()
            if h.rng.random() < .1:
                h.add(m, None, True)
            else:
                h.add(m, t - m)
    for m in q:
        h.add(m)
    h.done()
    h = History("growing", "unbounded_cache_heaps", "A cache without eviction is keyed by free text; new texts get a little rarer but never stop (n^0.75).",
                10 * HOUR, sizes_between(100, 2000))
    for i in range(1, 2001):
        h.add(30 * SEC + (10 * HOUR - 30 * SEC) * (i / 2001) ** (1 / .75) + h.rng.uniform(0, SEC), None, True)
    h.done()
    h = History("growing", "warmup_then_leak", "600 table entries are made at start-up and kept, and after that every step loses one block more.",
                20 * MIN, sizes_of(256, 512))
    h.steps = make_steps(h.rng, 12 * SEC, 20 * MIN, 300)
    for t in poisson(h.rng, SEC, 8 * SEC, 600):
        h.add(t)
    for t in in_steps(h.rng, h.steps, 20 * MIN, 1):
        h.add(t, None, True)
    h.done()
    G("load_rises", "One request in 15 is lost while the load rises fivefold over the run.",
      3 * HOUR, lambda r: profile(r, 0, 3 * HOUR, 5000, lambda x: .2 + .8 * x), expo(SEC), chance(1 / 15), 600)
    G("load_falls", "One request in 15 is lost while the load falls to a third over the run.",
      3 * HOUR, lambda r: profile(r, 0, 3 * HOUR, 5000, lambda x: 1 - .67 * x), expo(SEC), chance(1 / 15), 600)
    h = History("growing", "sawtooth_loses_2_percent", "Batches are collected for a minute and flushed together, but 2 % of each batch is not in the flush list.",
                20 * MIN + 23 * SEC, 1024)
    for t in poisson(h.rng, 0, h.end, 6000):
        flush = (int(t // MIN) + 1) * MIN
        if h.rng.random() < .02:
            h.add(t, None, True)
        else:
            h.add(t, flush - t + h.rng.uniform(0, 20_000))
    h.done()


# ============================================================================= burst (40)

def burst():
    def B(label, reason, end, spans, size=256, siblings=None, steps=None, shape="poisson"):
        """Kept blocks in spans [(t0, t1, n)], with optional freed siblings (t0, t1, n, life)."""
        h = History("burst", label, reason, end, size)
        if steps:
            h.steps = make_steps(h.rng, *steps)
        for a, b, n in spans:
            for t in (poisson if shape == "poisson" else regular)(h.rng, a, b, n):
                h.add(t)
        for a, b, n, life in siblings or []:
            for t in poisson(h.rng, a, b, n):
                h.add(t, life(h.rng))
        h.done()

    # --- start-up tables (5)
    B("tables_12", "A small table of 12 entries is filled at start-up and used until the end.", 5 * MIN, [(300_000, 340_000, 12)], 900)
    B("tables_60", "60 option objects are made while the command line is read.", 20 * SEC, [(50_000, 120_000, 60)], sizes_of(40, 80, 120))
    B("tables_400", "The import of a module makes 400 class and function objects once.", HOUR, [(1.2 * SEC, 2.5 * SEC, 400)], sizes_between(60, 3000))
    B("tables_5000", "A dictionary of 5000 words is read at start-up.", 10 * HOUR, [(SEC, 9 * SEC, 5000)], sizes_between(32, 128))
    B("tables_15000", "A geographic index of 15000 nodes is built once before the service starts.", 3 * HOUR, [(2 * SEC, 100 * SEC, 15000)], 112)

    # --- model loads (5)
    B("model_5s", "A model of 300 tensors is loaded, which takes 1.2 s of a program of five seconds.", 5 * SEC, [(.5 * SEC, 1.7 * SEC, 300)],
      sizes_of(4096, 16384, 1048576), shape="regular")
    B("model_fifth_of_run", "Loading the 800 weights takes a fifth of a short inference run; nothing is kept afterwards.", 50 * SEC,
      [(SEC, 11 * SEC, 800)], sizes_of(65536, 262144, 1048576), steps=(12 * SEC, 50 * SEC, 120), shape="regular")
    B("model_quarter_of_run", "A large check-point is read for 28 % of a run that only makes a few predictions.", 3 * MIN,
      [(4 * SEC, 55 * SEC, 500)], sizes_of(1 << 20, 1 << 22), steps=(56 * SEC, 3 * MIN, 30), shape="regular")
    B("model_10h", "A model's 160 layers are made before ten hours of training.", 10 * HOUR, [(20 * SEC, 50 * SEC, 160)],
      sizes_of(1 << 16, 1 << 20), steps=(MIN, 10 * HOUR, 1000))
    B("model_two_shards", "The two shards of a model are loaded with a pause for download between them, in the first 15 %.", 20 * MIN,
      [(5 * SEC, 30 * SEC, 200), (120 * SEC, 170 * SEC, 200)], 2_000_000, steps=(180 * SEC, 20 * MIN, 200))

    # --- warm-up caches: new entries die away as a finite set fills up (7)
    for label, end, n, tau, why in [
        ("warm_fast", HOUR, 250, .004, "A cache of the 250 templates of a site fills up in the first minute and is complete."),
        ("warm_medium", 20 * MIN, 600, .02, "A cache of all 600 product pages fills up as they are first asked for, and is then complete."),
        ("warm_5s", 5 * SEC, 90, .03, "The 90 symbols of a plug-in are resolved when first used, all of them early."),
        ("warm_slow", 10 * HOUR, 1500, .045, "A table of all 1500 customers fills up within the first hours; there are no other customers."),
    ]:
        h = History("burst", label, why, end, sizes_between(200, 4000))
        for _ in range(n):
            h.add(.005 * end + h.rng.expovariate(1) * tau * end)
        h.done()
    for label, end, keys, requests, zipf, why in [
        ("coupon_200", HOUR, 200, 6000, 0.0, "A cache without eviction has 200 possible keys, each made at its first use; all are soon there."),
        ("coupon_zipf", 10 * HOUR, 300, 12000, 0.7, "Kernels for 300 possible shapes are compiled at first use; the rare shapes come a little later, then none is left."),
        ("coupon_interned", 90 * SEC, 1000, 30000, 0.2, "Strings of a closed vocabulary of 1000 words are interned at first sight."),
    ]:
        h = History("burst", label, why, end, sizes_of(300, 600))
        w, acc = [], 0
        for k in range(keys):
            acc += (k + 1) ** -zipf
            w.append(acc)
        seen = set()
        for t in poisson(h.rng, .01 * end, end, requests):
            k = h.rng.choices(range(keys), cum_weights=w)[0]
            if k not in seen:
                seen.add(k)
                h.add(t)
        h.done()

    # --- in the middle of the run (5), and near its end (2)
    for label, frac, width, n, end, why in [
        ("middle_30", .30, .01, 350, HOUR, "At 30 % a user loads a project of 350 files, which stays open."),
        ("middle_45", .45, .02, 900, 20 * MIN, "At 45 % the second model of the pipeline is loaded and kept."),
        ("middle_55", .55, .004, 40, 10 * HOUR, "At 55 % a plug-in is activated and fills its 40 tables once."),
        ("middle_66", .66, .03, 2000, 90 * SEC, "At 66 % the index for the search phase is built, once, in three seconds."),
        ("middle_78", .78, .015, 500, 3 * HOUR, "At 78 % the evaluation set is loaded into memory and kept; the loading is then over."),
        ("near_end_88", .88, .02, 700, HOUR, "At 88 % the table of results is put together, in a minute, and is complete."),
        ("near_end_93", .93, .01, 120, 5 * MIN, "At 93 % the export module is imported, which makes 120 objects once."),
    ]:
        B(label, why, end, [(frac * end, (frac + width) * end, n)], sizes_between(100, 10_000))

    # --- phases: one burst at the begin of each of a few phases (4)
    B("train_eval", "The training loads its data index at the start and the evaluation loads its own at 80 %, each once.", HOUR,
      [(10 * SEC, 40 * SEC, 300), (.80 * HOUR, .805 * HOUR, 120)], 5000, steps=(MIN, HOUR, 400))
    B("model_reload", "The service loads a model at start and a second language's model at 40 %, and keeps both.", 10 * HOUR,
      [(30 * SEC, 2 * MIN, 220), (4 * HOUR, 4 * HOUR + 2 * MIN, 220)], 1 << 20)
    B("three_stages", "A pipeline of three stages makes each stage's 100 work objects when that stage begins, and there are just three stages.",
      30 * MIN, [(3 * SEC, 10 * SEC, 100), (8 * MIN, 8 * MIN + 8 * SEC, 100), (19 * MIN, 19 * MIN + 8 * SEC, 100)], 2400)
    B("workers_forked", "Eight worker threads are started, later eight more as the load doubles; each makes its 25 arenas once.", 3 * HOUR,
      [(2 * SEC, 4 * SEC, 200), (.5 * HOUR, .5 * HOUR + 2 * SEC, 200)], 65536)

    # --- among freed siblings (3)
    B("siblings_all_run", "The string constructor keeps the 400 names of the start-up and frees all the temporary ones of the run.", HOUR,
      [(SEC, 20 * SEC, 400)], 64, siblings=[(SEC, HOUR, 4000, expo(20_000))])
    B("siblings_long", "300 blocks belong to the tables of the start-up, the later ones are requests of some seconds, all freed.", 20 * MIN,
      [(SEC, 10 * SEC, 300)], 480, siblings=[(15 * SEC, 20 * MIN, 3000, logn(2 * SEC, 1))])
    B("siblings_middle", "A parser's nodes are temporary all day, save the 250 nodes of the one configuration read at 35 %.", 10 * HOUR,
      [(3.5 * HOUR, 3.5 * HOUR + 20 * SEC, 250)], 144, siblings=[(MIN, 10 * HOUR, 6000, expo(3 * SEC))])

    # --- freed siblings only while loading (2)
    B("load_with_scratch", "While a file is loaded half of the blocks are scratch and freed at once, the other half stays.", 5 * MIN,
      [(2 * SEC, 14 * SEC, 700)], sizes_between(100, 5000), siblings=[(2 * SEC, 14 * SEC, 700, expo(30_000))])
    B("load_then_compact", "Of 1500 blocks of a loaded graph 500 are freed when it is compacted just afterwards; the rest stays.", HOUR,
      [(5 * SEC, 60 * SEC, 1000)], 200, siblings=[(5 * SEC, 60 * SEC, 500, about(70 * SEC, .15))])

    # --- a burst and a few stragglers: "almost none" (2)
    B("stragglers_4", "500 objects at start-up, and four modules imported lazily much later, one object each.", HOUR,
      [(SEC, 12 * SEC, 500), (.2 * HOUR, .9 * HOUR, 4)], 1400)
    B("stragglers_9", "A type cache gets 1200 entries while warming up and nine more, for rare types, in the hours after.", 10 * HOUR,
      [(SEC, 6 * MIN, 1200), (.3 * HOUR, 9 * HOUR, 9)], 320)

    # --- training loops: state made in the first steps (5)
    def first_steps(label, reason, end, nsteps, plan, size, siblings=0):
        """plan: {step number: kept blocks}; siblings: freed blocks in every step."""
        h = History("burst", label, reason, end, size)
        h.steps = make_steps(h.rng, .03 * end, end, nsteps)
        for i, (a, b) in enumerate(zip(h.steps, h.steps[1:] + [end])):
            for _ in range(plan.get(i, 0)):
                h.add(h.rng.uniform(a, a + .8 * (b - a)))
            for _ in range(siblings):
                h.add(h.rng.uniform(a, a + .7 * (b - a)), h.rng.uniform(.02, .25) * (b - a))
        h.done()
    first_steps("adam_state", "The optimizer makes its 320 moments in the first step and keeps them, as it must.", HOUR, 500, {0: 320}, sizes_of(4096, 1 << 20))
    first_steps("adam_state_short", "The optimizer's 48 moments are made in the first of 20 steps of a test.", 5 * SEC, 20, {0: 48}, sizes_of(1024, 65536))
    first_steps("jit_warmup", "Kernels are compiled and kept in the first four steps, and temporary ones are freed in each step.", 20 * MIN, 300,
                {0: 120, 1: 30, 2: 8, 3: 2}, sizes_between(1000, 30_000), siblings=4)
    first_steps("jit_eval_shape", "Kernels are compiled in the first steps, and once more for the last, smaller batch shape at step 210 of 300.", HOUR, 300,
                {0: 90, 1: 12, 210: 40}, sizes_between(1000, 30_000))
    first_steps("graph_capture", "Three warm-up steps are captured into graphs, whose 200 buffers stay for the replay.", 10 * HOUR, 1000,
                {10: 70, 11: 65, 12: 65}, 1 << 20, siblings=1)


# ============================================================================= steady (60)

def steady():
    def S(label, reason, end, times, life, size=256, steps=None):
        leak(label, reason, end, times, life, lambda r, i, t: False, size, steps, truth="steady")

    def fifo(label, reason, end, n, depth, size, times=None, t0=None):
        """A queue of `depth` blocks: a new one pushes the oldest one out."""
        h = History("steady", label, reason, end, size)
        ts = (times or poisson)(h.rng, .01 * end if t0 is None else t0, end, n)
        for i, t in enumerate(ts):
            h.add(t, ts[i + depth] - t if i + depth < len(ts) else None)
        h.done()

    # --- queues (5)
    fifo("queue_10", "A ring keeps the last ten messages.", 5 * SEC, 600, 10, 128)
    fifo("queue_100", "The last 100 log lines are kept for a crash report.", HOUR, 4000, 100, sizes_between(40, 400))
    fifo("queue_half_of_all", "An undo list keeps the last 200 of 420 edits; it was full at half of the run and drops one for each new one.", 3 * HOUR, 420, 200, 1500)
    fifo("queue_irregular", "The last 64 jobs are kept for a status page, the jobs come at odd times.", 10 * HOUR, 1500, 64, 2200, times=heavy)
    S("queue_backlog", "Tasks wait in a queue whose length goes up and down with the load, and all are done in the end.", 20 * MIN,
      lambda r: profile(r, 0, 20 * MIN, 5000, lambda x: .4 + .6 * math.sin(9 * math.pi * x) ** 2), logn(4 * SEC, .7), 340)

    # --- double buffers (4)
    for label, end, nsteps, depth, why in [
        ("double_buffer", HOUR, 700, 2, "Each step makes a buffer and frees the one before the last; two are always in use."),
        ("double_buffer_5s", 5 * SEC, 60, 1, "Each step replaces its one buffer by a new one."),
        ("triple_buffer", 20 * MIN, 1200, 3, "Frames are kept in three buffers in turn."),
        ("snapshot_per_epoch", 10 * HOUR, 25, 2, "The last two of 25 epochs' snapshots are kept, older ones are freed."),
    ]:
        h = History("steady", label, why, end, 1 << 20)
        h.steps = make_steps(h.rng, .01 * end, end, nsteps)
        ts = [t + 500 for t in h.steps]
        for i, t in enumerate(ts):
            h.add(t, ts[i + depth] + 300 - t if i + depth < len(ts) else None)
        h.done()

    # --- caches with LRU eviction, really simulated (8)
    def lru(label, reason, end, requests, keys, capacity, zipf, size, t0=.01, rate=None):
        h = History("steady", label, reason, end, size)
        w, acc = [], 0
        for k in range(keys):
            acc += (k + 1) ** -zipf
            w.append(acc)
        cache = OrderedDict()
        ts = profile(h.rng, t0 * end, end, requests, rate) if rate else poisson(h.rng, t0 * end, end, requests)
        full = None
        for t in ts:
            k = h.rng.choices(range(keys), cum_weights=w)[0]
            if k in cache:
                cache.move_to_end(k)
                continue
            if len(cache) >= capacity:
                full = full or t
                _, m = cache.popitem(last=False)
                h.add(m, t - m)
            cache[k] = t
        for m in cache.values():
            h.add(m)
        assert full and full < .93 * end, (h.name, full)
        h.done()
    lru("lru_early", "A cache of 100 pages was full after a few per cent of the run and evicts one for each new one.", HOUR, 5000, 2000, 100, 0.0, 4096)
    lru("lru_quarter", "A cache of 500 entries was full at a quarter of the run and evicts since then.", 20 * MIN, 2200, 5000, 500, 0.0, 800)
    lru("lru_half", "A cache of 800 entries was full at half of the run and evicts since then.", 3 * HOUR, 1800, 10000, 800, 0.0, 1200)
    lru("lru_late", "A cache with a limit of 900 entries became full at about three quarters of the run; since then each new entry evicts one.",
        10 * HOUR, 1300, 20000, 900, 0.0, 1200)
    lru("lru_small_5s", "A cache of eight plans in a short program.", 5 * SEC, 900, 40, 8, 0.5, 5000)
    lru("lru_zipf_hot", "A full cache of 200 entries with hot keys, which stay from the start on as they are used all the time.", HOUR, 20000, 3000, 200, 1.0, 2000)
    lru("lru_zipf_very_hot", "A full cache of 60 entries, about half of them hot keys that are never evicted.", 10 * HOUR, 15000, 2000, 60, 1.3, 7000)
    lru("lru_day_night", "A full cache of 300 entries under a load with waves.", 10 * HOUR, 9000, 4000, 300, .6, 1500,
        rate=lambda x: .1 + .9 * max(0, math.sin(8 * math.pi * x)))

    # --- sliding windows in time (5)
    S("window_10s", "The samples of the last ten seconds are kept for an average.", 5 * MIN, lambda r: regular(r, 0, 5 * MIN, 3000, .05), about(10 * SEC, .01), 48)
    S("window_5min", "Events of the last five minutes are kept to find repeats.", 3 * HOUR, lambda r: poisson(r, 0, 3 * HOUR, 5000), about(5 * MIN, .005), 160)
    S("window_quarter", "The window for the trend line is a quarter of this run long; points are dropped when they are older.", 20 * MIN,
      lambda r: regular(r, 0, 20 * MIN, 1200, .1), about(5 * MIN, .002), 72)
    S("window_bursty", "Rate limiting keeps a client's stamps for one minute, under a load in rushes.", HOUR,
      lambda r: profile(r, 0, HOUR, 6000, lambda x: 1.0 if (x * 7) % 1 < .25 else .05), about(MIN, .01), 40)
    S("window_steps", "The last 20 steps' gradients are kept, older ones are freed.", HOUR, lambda r, s: [t + 10_000 for t in s],
      about(20 * 7.17 * SEC, .01), 1 << 18, (15 * SEC, HOUR, 500))

    # --- request handlers (7)
    S("handler_fast", "Each request's block is freed when it has been answered.", HOUR, lambda r: poisson(r, SEC, HOUR, 9000), expo(15_000), sizes_between(100, 9000))
    S("handler_5s", "Temporary strings of a short tool.", 5 * SEC, lambda r: poisson(r, 100_000, 5 * SEC, 12000), expo(150), 40)
    S("handler_lognormal", "Requests take from milliseconds to minutes (a long tail), and all of them end.", HOUR, lambda r: poisson(r, SEC, HOUR, 8000), logn(200_000, 2), 500)
    S("handler_loguniform", "Connections live from 1 ms to 5 minutes and each is closed properly.", HOUR, lambda r: poisson(r, SEC, HOUR, 6000), loguni(1000, 5 * MIN), 500)
    S("handler_sessions", "Most blocks are short requests, one in thirty is a session of up to half an hour that ends by log-out.", 10 * HOUR,
      lambda r: poisson(r, SEC, 10 * HOUR, 9000), lambda r: r.uniform(5, 30) * MIN if r.random() < 1 / 30 else r.expovariate(1 / SEC), 640)
    S("handler_day_night", "Requests over three days with quiet nights; the program ends at the busiest hour with many requests open.", 72 * HOUR,
      lambda r: profile(r, 0, 72 * HOUR, 7000, lambda x: max(.01, math.sin(2 * math.pi * (3 * x + .25)))), logn(2 * MIN, 1), 3000)
    S("handler_pauses", "A worker with long pauses, all of whose jobs are freed in seconds.", 3 * HOUR,
      lambda r: sorted(b + r.uniform(0, 4 * MIN) for b in heavy(r, MIN, 2.9 * HOUR, 12, .6) for _ in range(200)), expo(6 * SEC), 1800)

    # --- lifetimes of about a tenth of the run (6)
    S("long_10_percent", "A lease lives six minutes, a tenth of this run, and then it is freed.", HOUR, lambda r: poisson(r, 5 * SEC, HOUR, 2500), about(6 * MIN, .05), 200)
    S("long_10_percent_few", "Log-in tokens live an hour in a run of ten hours, and there are few of them.", 10 * HOUR, lambda r: poisson(r, MIN, 10 * HOUR, 90), about(HOUR, .02), 200)
    S("long_exponential", "Users stay logged in for 8 % of the run on average, some much longer, and all log out.", 10 * HOUR, lambda r: poisson(r, MIN, 10 * HOUR, 3000), expo(48 * MIN), 4000)
    S("long_15_percent", "Loaded map tiles are kept for three minutes of a run of twenty.", 20 * MIN, lambda r: poisson(r, 2 * SEC, 20 * MIN, 1800), about(3 * MIN, .3), 65536)
    S("long_5s", "Animation objects of half a second in a run of five.", 5 * SEC, lambda r: poisson(r, 200_000, 5 * SEC, 400), about(500_000, .2), 1200)
    S("long_mixed", "One block in ten is a subscription for 5 to 15 % of the run, the others are short; subscriptions always run out.", 3 * HOUR,
      lambda r: poisson(r, SEC, 3 * HOUR, 5000), lambda r: r.uniform(.05, .15) * 3 * HOUR if r.random() < .1 else r.expovariate(1 / (300_000)), 360)

    # --- sawtooth: collected, then freed together (8); `phase` is where in the cycle the end lies
    def saw(label, reason, end, cycles, n, size=512, steps_per=0, shape=poisson, t0=0):
        """`cycles` may be broken: 7.9 means the end lies at 90 % of the eighth cycle."""
        h = History("steady", label, reason, end, size)
        p = (end - t0) / cycles
        for t in shape(h.rng, t0, end, n):
            flush = t0 + (math.floor((t - t0) / p) + 1) * p
            h.add(t, flush - t + h.rng.uniform(0, .003) * p)
        if steps_per:
            k = math.ceil(cycles) * steps_per
            h.steps = [t0 + i * p / steps_per for i in range(k)]
        h.done()
    saw("saw_just_before_flush", "Records are collected and written together; the program ends just before a flush.", HOUR, 11.97, 4000)
    saw("saw_just_after_flush", "Records are collected and written together; the program ends just after a flush.", HOUR, 12.02, 4000)
    saw("saw_half", "Gradients of eight steps are collected and freed together; the end lies in the middle of a period.", 20 * MIN, 60.5, 4800, 1 << 16, 8)
    saw("saw_few_periods", "A batch is written when it has reached its size, which happened three times; the fourth is almost full.", 10 * HOUR, 3.9, 2000)
    saw("saw_two_and_a_half", "The hourly archive: two were written and freed, the third is half collected.", 2.5 * HOUR, 2.5, 1500)
    saw("saw_5s", "Draw commands are collected for each frame and freed together.", 5 * SEC, 149.3, 9000, 96)
    saw("saw_gc", "Garbage in reference cycles is freed by each run of the collector; the last run was some time ago.", 5 * MIN, 17.75, 5000, sizes_between(60, 900))
    saw("saw_epoch", "The predictions of an epoch are collected and freed at its end; the last epoch is not finished.", 30 * MIN, 6.85, 2740, 8000, 400 // 7, regular, 8 * SEC)

    # --- periodic work (5)
    def periodic(label, reason, end, cycles, per, duty, life, size):
        """Each cycle begins with a time of work (share `duty`), the blocks of which are freed."""
        h = History("steady", label, reason, end, size)
        p = end / cycles
        for k in range(math.ceil(cycles)):
            for t in poisson(h.rng, k * p, k * p + duty * p, per):
                h.add(t, life(h.rng, p, t - k * p))
        h.done()
    periodic("job_hourly_ends_in_job", "A job about each hour makes 200 blocks and frees them at its end; the program ends within a job.", 10 * HOUR, 9.08, 200, .1,
             lambda r, p, x: .12 * p - x, 3000)
    periodic("job_hourly_ends_idle", "A job about each hour makes 200 blocks and frees them at its end; the program ends between two jobs.", 10 * HOUR, 9.6, 200, .1,
             lambda r, p, x: .12 * p - x, 3000)
    periodic("refresh_table", "A table of 120 entries is made anew every five minutes and the old one is freed.", HOUR, 11.7, 120, .01,
             lambda r, p, x: 1.012 * p - x, 900)
    periodic("evaluation_each_epoch", "An evaluation after each epoch makes 60 blocks and frees each within the evaluation.", 3 * HOUR, 20.2, 60, .15,
             lambda r, p, x: r.uniform(.005, .04) * p, 1 << 18)
    periodic("poll_1s", "A poll each second makes five blocks and keeps them until the next poll.", 90 * SEC, 89.5, 5, .05,
             lambda r, p, x: 1.06 * p - x, 240)

    # --- pools with a maximum, whose members are replaced when they are old (5)
    def pool(label, reason, end, maximum, full_at, age, spread, size):
        """Population rises to the maximum until full_at; each member is replaced at its age."""
        h = History("steady", label, reason, end, size)
        for k in range(maximum):
            t = .01 * end + (full_at - .01) * end * (k + h.rng.random()) / maximum
            while t < end:
                life = age * end * h.rng.uniform(1 - spread, 1 + spread)
                h.add(t, life)
                t += life + h.rng.uniform(0, .0005) * end     # the replacement follows soon
        h.done()
    pool("pool_early", "A pool of 32 connections, full at 5 % of the run; each connection is replaced after its maximal age.", HOUR, 32, .05, .03, .3, 9000)
    pool("pool_early_old", "A pool of 20 connections, each replaced after about 12 % of the run.", 10 * HOUR, 20, .04, .12, .2, 9000)
    pool("pool_half", "A pool with a maximum of 64 that was reached at half of the run, with members replaced all the time.", 3 * HOUR, 64, .5, .05, .5, 5000)
    pool("pool_late", "A pool with a maximum of 100, reached at 78 % of the run; members are replaced all the time.", 20 * MIN, 100, .78, .04, .5, 5000)
    pool("pool_late_old", "A pool with a maximum of 48, reached at 85 %, each member replaced after about 8 % of the run.", 10 * HOUR, 48, .85, .08, .3, 20000)

    # --- phases (3)
    h = History("steady", "train_then_eval_larger", "Training keeps four batches in flight, evaluation (from 75 % on) twenty; all are freed in turn.", HOUR, 1 << 18)
    h.steps = make_steps(h.rng, 20 * SEC, HOUR, 800)
    for i, t in enumerate(h.steps):
        d = 4 if t < .75 * HOUR else 20
        h.add(t + 2000, h.steps[i + d] + 3000 - t if i + d < len(h.steps) else None)
    h.done()
    h = History("steady", "train_buffers_freed_at_eval", "Replay entries are collected in training and freed together at its end (70 %); evaluation keeps ten at a time.", 20 * MIN, 9000)
    for t in poisson(h.rng, 10 * SEC, .7 * 20 * MIN, 1400):
        h.add(t, .7 * 20 * MIN - t + h.rng.uniform(0, 2 * SEC))
    ts = poisson(h.rng, .71 * 20 * MIN, 20 * MIN, 600)
    for i, t in enumerate(ts):
        h.add(t, ts[i + 10] - t if i + 10 < len(ts) else None)
    h.done()
    h = History("steady", "two_phases_short_then_long", "In the second half the same line serves longer requests (20 s rather than 1 s), and frees them all.", HOUR, 700)
    for t in poisson(h.rng, SEC, HOUR, 5000):
        h.add(t, h.rng.expovariate(1 / ((20 if t > HOUR / 2 else 1) * SEC)))
    h.done()

    # --- rising load (2)
    S("load_rises", "The load rises tenfold over the run, so more requests are open at the end; each lives some seconds.", HOUR,
      lambda r: profile(r, 0, HOUR, 8000, lambda x: .1 + .9 * x), logn(10 * SEC, .6), 900)
    S("peak_at_end", "A rush begins 2 % before the end, so that most of what is alive is from the rush; the requests take their usual minute.", 3 * HOUR,
      lambda r: profile(r, 0, 3 * HOUR, 4000, lambda x: 1.0 if x > .98 else .08), logn(40 * SEC, .5), 900)

    # --- few blocks (2)
    h = History("steady", "log_rotation", "The log's buffer is replaced every 2.2 hours; the one alive is in use.", 10 * HOUR, 1 << 20)
    for k in range(5):
        h.add(2 * SEC + k * 2.2 * HOUR, 2.2 * HOUR + 4000)
    h.done()
    h = History("steady", "all_freed_few", "Seven temporary files' buffers, all freed.", 90 * SEC, sizes_of(4096, 8192))
    for t in poisson(h.rng, 5 * SEC, 80 * SEC, 7):
        h.add(t, h.rng.uniform(.05, 4) * SEC)
    h.done()


# ============================================================================= one_time (30)

def one_time():
    def O(label, reason, end, times, size, siblings=None, steps=None):
        """Kept blocks at the given times; optional freed siblings (t0, t1, n, life)."""
        h = History("one_time", label, reason, end, size)
        if steps:
            h.steps = make_steps(h.rng, *steps)
        for t in times:
            h.add(t)
        if siblings:
            a, b, n, life = siblings
            for t in poisson(h.rng, a, b, n):
                h.add(t, life(h.rng))
        h.done()

    # --- one block (11)
    O("start_5s", "The program's one output buffer.", 5 * SEC, [41_230], 65536)
    O("start_minute", "The one logger, made at the start.", MIN, [310_555], 480)
    O("start_hour", "The one table of routes of a server.", HOUR, [2_100_301], 20480)
    O("start_10h", "The one large arena of a service, made at the start.", 10 * HOUR, [900_017], 1 << 30)
    O("start_training", "The embedding matrix of a model, made once before the loop.", 3 * HOUR, [14 * SEC], 1 << 28, steps=(20 * SEC, 3 * HOUR, 600))
    O("first_microseconds", "A static object made before main.", 20 * SEC, [12], 72704)
    O("middle_30", "A printer object, made when the user first prints, and kept.", HOUR, [.31 * HOUR], 3300)
    O("middle_55", "The fall-back decoder, made when first needed, and kept for later use.", 10 * HOUR, [5.5 * HOUR], 90000)
    O("middle_first_eval", "The buffer for metrics, made at the first evaluation and used at all the later ones.", 20 * MIN, [.4 * 20 * MIN], 1 << 20,
      steps=(10 * SEC, 20 * MIN, 250))
    O("near_end_90", "The writer of the final report, made at 90 %.", 5 * MIN, [.9 * 5 * MIN], 8192)
    O("near_end_99", "The exit handler's buffer, made just before the end.", 90 * SEC, [89.6 * SEC], 512)

    # --- a few, made together (4)
    O("two_streams", "The two streams of a device, made together.", HOUR, [3 * SEC, 3 * SEC + 210], 1024)
    O("three_handles", "Three library handles, made by the first call.", 20 * MIN, [7.0 * SEC, 7.02 * SEC, 7.31 * SEC], 4_194_304, steps=(6.9 * SEC, 20 * MIN, 100))
    O("four_threads", "A stack for each of the four threads that run until the end.", 10 * HOUR, [SEC + 130 * k for k in range(4)], 8 << 20)
    O("five_lazy_start", "Five singletons, each made at its first use within the first few per cent.", 5 * MIN,
      [.2 * SEC, .9 * SEC, 1.6 * SEC, 4.4 * SEC, 9.8 * SEC], sizes_of(100, 900, 5000))

    # --- a handful over the run (6)
    O("reconfigured_3", "The operator changed the configuration twice; the three versions are kept for going back.", 10 * HOUR,
      [2 * SEC, 3.3 * HOUR, 3.9 * HOUR], 30000)
    O("reconfigured_4", "Three rare reconfigurations after the first one, each kept on purpose.", 10 * HOUR,
      [2 * SEC, .8 * HOUR, 5.2 * HOUR, 7.7 * HOUR], 30000)
    O("devices_4", "A device was plugged in four times in the run, each a different device with its own permanent entry.", 3 * HOUR,
      [30 * SEC, .2 * HOUR, 1.9 * HOUR, 2.0 * HOUR], 700)
    O("reconfigured_5", "Five administrators' settings, each made by hand once, in the course of a day.", 10 * HOUR,
      [.4 * HOUR, 2.9 * HOUR, 3.1 * HOUR, 6.0 * HOUR, 8.8 * HOUR], 2100)
    O("languages_5", "Five languages' tables, each loaded when first asked for; the product has just these five.", HOUR,
      [4 * SEC, .05 * HOUR, .21 * HOUR, .33 * HOUR, .74 * HOUR], sizes_of(50000, 70000, 80000))
    O("workspace_grown_3", "The workspace was enlarged for a larger shape three times, early and once in the evaluation; older pieces are still used.", HOUR,
      [22 * SEC, 25 * SEC, .8 * HOUR], sizes_of(1 << 24, 1 << 25, 1 << 26), steps=(20 * SEC, HOUR, 400))

    # --- one kept block among freed ones (4)
    O("kept_among_temporary", "Of the buffers made here only the first, the global one, is kept; the others are scratch.", HOUR, [SEC], 4096,
      siblings=(2 * SEC, HOUR, 1500, expo(40_000)))
    O("kept_two_among_temporary", "Strings are temporary here, save the program's name and its working folder.", 10 * HOUR, [200_000, 230_000], sizes_of(48, 96),
      siblings=(SEC, 9.99 * HOUR, 5000, expo(200_000)))
    O("kept_middle_among_temporary", "Tensors are temporary here, save the one that is made the constant mask at 45 %.", 20 * MIN, [9 * MIN], 1 << 16,
      siblings=(10 * SEC, 20 * MIN, 2400, about(100_000, .8)), steps=(10 * SEC, 20 * MIN, 240))
    O("kept_three_few_siblings", "Three of twelve files opened stay open on purpose: log, lock and data base.", 3 * HOUR, [SEC, 1.1 * SEC, 2.4 * SEC], 4096,
      siblings=(3 * SEC, 2.9 * HOUR, 9, expo(20 * SEC)))

    # --- phases (2)
    O("one_per_phase", "One buffer for training and one for evaluation, which begins at 70 %.", HOUR, [20 * SEC, .7 * HOUR], 1 << 22, steps=(20 * SEC, HOUR, 300))
    O("one_per_stage_of_4", "One work object for each of the four stages; there are no more stages.", 40 * MIN,
      [3 * SEC, 6 * MIN, 17 * MIN, 31 * MIN], 60000)

    # --- a buffer that was doubled until it was large enough (1)
    h = History("one_time", "doubled_buffer", "One buffer, doubled (and the smaller one freed) until it was large enough; the last one stays in use.", HOUR)
    ts = [SEC * (1 + .9 * 1.8 ** k) for k in range(9)]
    for k, t in enumerate(ts):
        h.add(t, ts[k + 1] + 80 - t if k + 1 < len(ts) else None, size=1024 << k)
    h.done()

    # --- made at odd times, as features are first used (2)
    O("features_6", "Six menus are built when first opened and kept; the program has just these six.", 20 * MIN,
      [3 * SEC, 14 * SEC, 70 * SEC, 80 * SEC, 6.5 * MIN, 13 * MIN], sizes_of(900, 1300, 2000))
    O("threads_7_over_time", "Seven helper threads, the fixed maximum, each started when first needed and alive until the end.", 3 * HOUR,
      [5 * SEC, 6 * SEC, 60 * SEC, 65 * SEC, 10 * MIN, 11 * MIN, 80 * MIN], 1 << 16)


# ============================================================================= check

def check(path):
    """Reads the file back, asserts its form, prints what is in it."""
    rows = [json.loads(line) for line in open(path)]
    keys = {"name", "truth", "reason", "end_us", "steps_us", "made_us", "freed_us", "bytes"}
    by = {}
    for r in rows:
        assert set(r) == keys, r["name"]
        n, m, f = len(r["made_us"]), r["made_us"], r["freed_us"]
        assert 1 <= n <= 20000 and len(f) == n, r["name"]
        assert all(a <= b for a, b in zip(m, m[1:])), r["name"]
        assert all(type(x) is int and 0 <= x < r["end_us"] for x in m), r["name"]
        assert all(y is None or (type(y) is int and x < y < r["end_us"]) for x, y in zip(m, f)), r["name"]
        assert all(a < b for a, b in zip(r["steps_us"], r["steps_us"][1:])), r["name"]
        assert all(0 <= s < r["end_us"] for s in r["steps_us"]), r["name"]
        b = r["bytes"]
        assert (type(b) is int and b > 0) or (len(b) == n and all(type(x) is int and x > 0 for x in b)), r["name"]
        assert r["reason"].strip().endswith("."), r["name"]
        by.setdefault(r["truth"], []).append(r)
    assert len({r["name"] for r in rows}) == len(rows)
    print("%d histories, %d allocations, %.1f MB" % (len(rows), sum(len(r["made_us"]) for r in rows), os.path.getsize(path) / 1e6))
    for truth, rs in by.items():
        share = sorted(sum(y is None for y in r["freed_us"]) / len(r["freed_us"]) for r in rs)
        counts = sorted(len(r["made_us"]) for r in rs)
        alive = sum(y is None for r in rs for y in r["freed_us"])
        print("%-8s %3d  never-freed share: min %.4f median %.4f max %.4f, pooled %.4f | blocks: min %d median %d max %d | with steps %d"
              % (truth, len(rs), share[0], share[len(share) // 2], share[-1], alive / sum(counts),
                 counts[0], counts[len(counts) // 2], counts[-1], sum(bool(r["steps_us"]) for r in rs)))
    return rows


def main():
    if "--check" not in sys.argv:
        for make in (growing, burst, steady, one_time):
            make()
        with open(PATH, "w") as f:
            for r in ALL:
                f.write(json.dumps(r, separators=(",", ":")) + "\n")
    rows = check(PATH)
    if ALL:   # blocks that are truly lost, which only the generator knows
        n = {r["name"]: len(r["made_us"]) for r in rows}
        g = [k for k in n if k.startswith("growing")]
        print("growing: truly lost share <= 1.15 %%: %d, <= 0.15 %%: %d; fewest lost blocks: %s"
              % (sum(LEAKED[k] / n[k] <= .0115 for k in g), sum(LEAKED[k] / n[k] <= .0015 for k in g),
                 sorted((LEAKED[k], k) for k in g)[:8]))
    if "-v" in sys.argv:
        for r in rows:
            alive = [x for x, y in zip(r["made_us"], r["freed_us"]) if y is None]
            e = r["end_us"]
            dec = Counter(min(9, int(10 * x / e)) for x in alive)
            print("%-52s n %5d alive %5d lost %4d  kept by tenth of run %s" % (
                r["name"], len(r["made_us"]), len(alive), LEAKED.get(r["name"], -1), [dec[i] for i in range(10)]))


if __name__ == "__main__":
    main()
