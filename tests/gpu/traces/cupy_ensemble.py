"""CuPy without its pool: an ensemble of one-dimensional fields of several sizes, of which the best
are kept, the worst dropped, and all are observed from time to time."""

import random

import cupy

cupy.cuda.set_allocator(None)
random.seed(2)
cupy.random.seed(2)


class Member:
    def __init__(self, points):
        self.field = cupy.random.random(points, dtype=cupy.float32)
        self.flux = cupy.zeros_like(self.field)
        self.history = []

    def step(self):
        self.flux[...] = cupy.roll(self.field, 1) - self.field
        self.field += 0.4 * self.flux

    def observe(self):
        spectrum = cupy.abs(cupy.fft.rfft(self.field))
        self.history.append(spectrum[:: random.choice([1, 2, 4])].copy())


members = []
for generation in range(40):
    while len(members) < 30:
        members.append(Member(random.choice([3_000, 10_000, 40_000, 90_000])))
    for _ in range(4):
        for member in members:
            member.step()
    for member in members:
        member.observe()
    members.sort(key=lambda member: float(member.field.std()))
    del members[random.randint(10, 25) :]
print("kept", len(members), float(members[0].field.sum()))
