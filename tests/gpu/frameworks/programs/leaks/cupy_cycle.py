"""CuPy arrays in reference cycles; the garbage collector is off, as many training loops turn it."""

import gc

import cupy

gc.disable()


class Node:
    def __init__(self, number):
        self.values = cupy.full(1 << 20, number, dtype=cupy.float32)  # planted
        self.children = [self]


def build(nodes):
    total = 0.0
    for number in range(nodes):
        total += float(Node(number).values[0])
    return total


work = cupy.random.rand(2048, 2048)
print(build(50), float((work @ work).sum()) > 0)
