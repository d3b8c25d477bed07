# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Uses one NVIDIA library through PyTorch, so that the library's calls of the driver can be logged.

    torch_libraries.py fft|conv|matmul|nccl
"""
import os
import sys
import tempfile

import numbers_of

torch = numbers_of.module('torch')
if not torch.cuda.is_available():
    numbers_of.skip('torch.cuda.is_available() is false')


def fft():
    return torch.fft.fft(torch.ones(64, 1000, device='cuda')).abs().sum()


def conv():
    return torch.nn.functional.conv2d(torch.ones(4, 16, 64, 64, device='cuda'), torch.ones(32, 16, 3, 3, device='cuda')).sum()


def matmul():
    return (torch.ones(512, 512, device='cuda', dtype=torch.bfloat16) @ torch.ones(512, 512, device='cuda', dtype=torch.bfloat16)).float().sum()


def nccl():
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group('nccl', init_method='file://' + os.path.join(folder, 'meeting'), rank=0, world_size=1)
        x = torch.ones(1000, device='cuda')
        torch.distributed.all_reduce(x)
        total = x.sum()
        torch.distributed.destroy_process_group()
        return total


print(f'{sys.argv[1]}: {float({"fft": fft, "conv": conv, "matmul": matmul, "nccl": nccl}[sys.argv[1]]())}')
