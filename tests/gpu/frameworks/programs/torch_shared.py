"""PyTorch: two processes share tensors by CUDA IPC. The child prints the values that it finds and
changes them; the parent reads the changed values."""

import figures
import torch
import torch.multiprocessing as multiprocessing

COUNTS = (1000, 6 << 20)
LIMIT_S = 100


def change(tensors, answers):
    found = tensors.get(timeout=LIMIT_S)
    answers.put([int(tensor.sum()) for tensor in found])
    for tensor in found:
        tensor.mul_(3)
    torch.cuda.synchronize()
    # The other process may free the tensors only when they are closed here.
    del found, tensor


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    other = context.Process(target=change, args=(tensors, answers))
    other.start()
    kept = [torch.arange(count, dtype=torch.int64, device="cuda") for count in COUNTS]
    tensors.put(kept)
    print("the other process finds", answers.get(timeout=LIMIT_S))
    other.join(LIMIT_S)
    print("and ends with", other.exitcode)
    for tensor in kept:
        wanted = 3 * torch.arange(len(tensor), dtype=torch.int64)
        print("sum", int(tensor.sum()), "as it left them:", torch.equal(tensor.cpu(), wanted))
    figures.end({"reserved_bytes": torch.cuda.memory_reserved()})
