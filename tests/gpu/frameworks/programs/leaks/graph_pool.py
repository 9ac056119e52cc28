"""CUDA graphs for each input length; each keeps a memory pool of its own."""

import torch


class Decoder:
    def __init__(self):
        self.weights = torch.randn(1024, 1024, device="cuda")
        self.graphs = {}

    def capture(self, length):
        graph = torch.cuda.CUDAGraph()
        rows = torch.zeros(length, 1024, device="cuda")
        with torch.cuda.graph(graph):
            hidden = torch.relu(rows @ self.weights).repeat(8, 8)  # planted
            out = hidden.sum()
        self.graphs[length] = (graph, rows, hidden, out)

    def run(self, length):
        if length not in self.graphs:
            self.capture(length)
        self.graphs[length][0].replay()


decoder = Decoder()
torch.relu(torch.randn(8, 1024, device="cuda") @ decoder.weights)
for length in range(64, 96):
    decoder.run(length)
torch.cuda.synchronize()
print(len(decoder.graphs))
