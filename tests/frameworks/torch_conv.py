# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Convolutions, normalisation, pooling and recurrent layers through cuDNN: torch_conv.py STEPS"""
import sys

import torch
import torch.nn as nn
from steps import timed

model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).cuda()
x = torch.randn(8, 3, 32, 32, device='cuda')
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for dtype in torch.float32, torch.float16, torch.bfloat16:
    with torch.autocast('cuda', dtype=dtype, enabled=dtype != torch.float32):
        out = model(x)
    out.float().sum().backward()
    print('conv2d', dtype, tuple(out.shape))
print('conv3d', tuple(nn.Conv3d(2, 4, 3).cuda()(torch.randn(2, 2, 8, 8, 8, device='cuda')).shape))
print('transposed', tuple(nn.ConvTranspose2d(4, 4, 3).cuda()(torch.randn(1, 4, 8, 8, device='cuda')).shape))
print('lstm', tuple(nn.LSTM(16, 32, 2).cuda()(torch.randn(5, 3, 16, device='cuda'))[0].shape))
torch.backends.cudnn.benchmark = True
print('benchmark', tuple(model(torch.randn(4, 3, 64, 64, device='cuda')).shape))


def step():
    global loss
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()


timed(step, lambda: loss.item(), int(sys.argv[1]))
