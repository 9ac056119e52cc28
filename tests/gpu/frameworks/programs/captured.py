"""Captures a function of PyTorch as a CUDA graph."""

import torch


def graph_of(step):
    """Calls step() three times on a side stream, as a capture needs, and captures its fourth call.

    Returns the graph and the result of the captured call.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    return graph, result
