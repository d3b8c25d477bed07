# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""CUDA graphs: a captured region, replayed with changed inputs: torch_graph.py STEPS"""
import sys

import torch
from steps import timed

x, w = torch.zeros(64, 64, device='cuda'), torch.randn(64, 64, device='cuda')
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        y = torch.relu(x @ w)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x
    for _ in range(20):
        y = torch.relu(y @ w) + 1


def step():
    x.fill_(1.0)
    graph.replay()


timed(step, torch.cuda.synchronize, int(sys.argv[1]))
print('graph', tuple(y.shape))
