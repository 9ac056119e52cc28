"""Block-structured adaptive mesh refinement: a front moves through a square. Patches of several
sizes are made where it is, and dropped where it was."""

import cupy

cupy.cuda.set_allocator(None)
base = 16  # patches a side at level 0


class Patch:
    """A square patch of points with two states and two fluxes, at a level and a position in it."""

    def __init__(self, level, i, j):
        self.key = (level, i, j)
        side = 24 + 8 * level + 2 * ((i * 7 + j * 3) % 9) + 4
        self.now = cupy.zeros((4, side, side), dtype=cupy.float64)
        self.old = cupy.zeros_like(self.now)
        self.flux_x = cupy.zeros((4, side + 1, side), dtype=cupy.float64)
        self.flux_y = cupy.zeros((4, side, side + 1), dtype=cupy.float64)

    def step(self):
        self.old[...] = self.now
        self.flux_x[:, 1:, :] = self.old
        self.now -= 0.1 * (self.flux_x[:, 1:, :] - self.flux_x[:, :-1, :])


def is_near_front(level, i, j, time):
    """True if the front, a circle about the corner, crosses the patch."""
    width = 1.0 / (base << level)
    corners = [((i + a) * width, (j + b) * width) for a in (0, 1) for b in (0, 1)]
    distances = [(x * x + y * y) ** 0.5 for x, y in corners]
    radius = 0.1 + 1.2 * time
    return min(distances) <= radius + 0.5 * width and max(distances) >= radius - 0.5 * width


patches = {}
steps = 60
for step in range(steps):
    time = step / steps
    wanted = {(0, i, j) for i in range(base) for j in range(base)}
    for level in (1, 2):
        wanted |= {
            (level, 2 * i + a, 2 * j + b)
            for (parent, i, j) in wanted
            if parent == level - 1 and is_near_front(parent, i, j, time)
            for a in (0, 1)
            for b in (0, 1)
        }
    for key in [key for key in patches if key not in wanted]:
        del patches[key]
    for key in sorted(wanted - patches.keys()):
        patches[key] = Patch(*key)
    if step % 6 == 0:
        largest = [float(cupy.abs(patch.now).max()) for patch in list(patches.values())[::40]]
    for patch in list(patches.values())[step % 8 :: 8]:
        patch.step()
print("patches", len(patches), max(largest))
