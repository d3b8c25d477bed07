# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Operations of many kinds, each once: products in all types, attention, transforms, linear algebra,
sparse matrices, sorting, random numbers, events, streams, pinned memory, profiler: torch_kinds.py"""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

for dtype in torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64:
    a = torch.ones(256, 256, device='cuda', dtype=dtype)
    print('product', dtype, tuple((a @ a).shape), tuple(torch.bmm(a.view(4, 64, 256), a.view(4, 256, 64)).shape))
a = torch.ones(256, 256, device='cuda', dtype=torch.int8)
print('product int8', tuple(torch._int_mm(a, a.t().contiguous().t()).shape))
one = torch.ones(1, device='cuda')
a = torch.ones(256, 256, device='cuda').to(torch.float8_e4m3fn)
print('product fp8', tuple(torch._scaled_mm(a, a.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16).shape))
for backend in SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH:
    with sdpa_kernel(backend):
        q = torch.randn(2, 8, 128, 64, device='cuda', dtype=torch.bfloat16).requires_grad_()
        F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
        print(backend, tuple(q.grad.shape))
x = torch.randn(16, 1024, device='cuda')
print('fft', tuple(torch.fft.irfft(torch.fft.rfft(x)).shape), tuple(torch.fft.fft2(torch.randn(32, 37, device='cuda')).shape))
a = torch.eye(64, device='cuda')
for name in 'inv', 'det', 'cholesky', 'svd', 'qr', 'eigh':
    getattr(torch.linalg, name)(a)
    print('linalg', name)
print('solve', tuple(torch.linalg.solve(a, a).shape), 'lstsq', tuple(torch.linalg.lstsq(a, a)[0].shape))
print('sparse', tuple((a.to_sparse() @ a).shape))
print('sort', tuple(torch.sort(torch.randn(1000, device='cuda'))[0].shape), tuple(torch.topk(torch.randn(1000, device='cuda'), 5)[0].shape),
      tuple(torch.cumsum(torch.ones(100, device='cuda'), 0).shape))
print('random', tuple(torch.rand(10, device='cuda').shape), torch.cuda.get_rng_state().shape)
start, end, stream = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), torch.cuda.Stream()
start.record()
with torch.cuda.stream(stream):
    a + a
end.record()
end.synchronize()
print('events', start.elapsed_time(end) >= 0)
host = torch.arange(1000.0).pin_memory()
back = host.to('cuda', non_blocking=True).to('cpu', non_blocking=True)
torch.cuda.synchronize()
print('copied', torch.equal(host, back))
print('memory', torch.cuda.memory_allocated() > 0, torch.cuda.mem_get_info()[1] == torch.cuda.get_device_properties(0).total_memory)
try:
    torch.empty(1 << 42, device='cuda')
except torch.OutOfMemoryError:
    print('out of memory is reported')
