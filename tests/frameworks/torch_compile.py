# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""torch.compile: kernels that Triton makes: torch_compile.py"""
import torch


@torch.compile
def fused(x, y):
    return torch.sin(x) * y + torch.cos(y).sum()


x = torch.randn(1000, device='cuda', requires_grad=True)
out = fused(x, x)
out.sum().backward()
torch.cuda.synchronize()
print('compiled', tuple(out.shape), tuple(x.grad.shape))
