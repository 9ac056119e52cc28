"""cuSPARSE: sets up algebraic multigrid hierarchies of several meshes by products of sparse
matrices, solves with each, and keeps some of them."""

import random

import cupy
import cupyx.scipy.sparse as sparse

cupy.cuda.set_allocator(None)
random.seed(3)


def laplacian(side):
    line = sparse.diags([-1, 2, -1], [-1, 0, 1], shape=(side, side), format="csr")
    one = sparse.identity(side, format="csr")
    return (sparse.kron(line, one) + sparse.kron(one, line)).tocsr()


def aggregate(rows, size):
    columns = cupy.arange(rows) // size
    ones = cupy.ones(rows)
    return sparse.csr_matrix((ones, (cupy.arange(rows), columns)), shape=(rows, -(-rows // size)))


def hierarchy(side):
    levels = []
    a = laplacian(side)
    while a.shape[0] > 50:
        p = aggregate(a.shape[0], random.choice([3, 4, 6]))
        smooth = p - 0.3 * (sparse.diags(1 / a.diagonal()) @ a @ p)
        levels.append((a, smooth.tocsr(), smooth.T.tocsr()))
        a = (levels[-1][2] @ a @ levels[-1][1]).tocsr()
    return levels, a.toarray()


def cycle(levels, coarsest, b, at=0):
    if at == len(levels):
        return cupy.linalg.solve(coarsest, b)
    a, p, r = levels[at]
    x = 0.5 * b / a.diagonal()
    x = x + p @ cycle(levels, coarsest, r @ (b - a @ x), at + 1)
    return x + 0.5 * (b - a @ x) / a.diagonal()


kept = []
for mesh in range(40):
    side = random.choice([40, 70, 110, 180])
    levels, coarsest = hierarchy(side)
    b = cupy.ones(levels[0][0].shape[0])
    x = cycle(levels, coarsest, b)
    for _ in range(2):
        x = x + cycle(levels, coarsest, b - levels[0][0] @ x)
    kept.append((levels, coarsest, x))
    if len(kept) > 12:
        for _ in range(random.randint(1, 6)):
            del kept[random.randrange(len(kept))]
print("kept", len(kept), float(kept[-1][2].sum()))
