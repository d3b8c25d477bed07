# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Training steps of a small network with each optimizer: torch_train.py STEPS"""
import sys

import torch
import torch.nn as nn
from steps import timed

torch.manual_seed(0)
for make in torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad:
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Dropout(), nn.Linear(512, 10)).cuda()
    optimizer = make(model.parameters(), lr=1e-3)
    x, y = torch.randn(64, 256, device='cuda'), torch.randint(0, 10, (64,), device='cuda')

    def step():
        global loss
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    if make is torch.optim.AdamW:
        timed(step, lambda: loss.item(), int(sys.argv[1]))
    else:
        step()
    print(make.__name__, tuple(loss.shape))
