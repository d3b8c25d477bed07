# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""PyTorch on the first GPU: tensors, products, convolutions, transforms, sorting, a training step,
streams, a captured graph."""
import numbers_of

torch = numbers_of.module('torch')
if not torch.cuda.is_available():
    numbers_of.skip('torch.cuda.is_available() is false')
F = torch.nn.functional
torch.manual_seed(7)
torch.use_deterministic_algorithms(True, warn_only=True)
device = torch.device('cuda')
made = torch.Generator().manual_seed(11)


def tensor(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=made, dtype=torch.float32).to(dtype).to(device)


def show(name, t):
    numbers_of.array(name, t.detach().float().cpu().numpy())


@numbers_of.case
def device_name():
    p = torch.cuda.get_device_properties(0)
    print(f'device: {p.name}, {p.major}.{p.minor}, {p.multi_processor_count} processors, {p.total_memory} bytes')


@numbers_of.case
def sums():
    x = tensor(1 << 20)
    show('sum', x.sum())
    show('softmax', torch.softmax(x.view(1024, 1024), 1))
    show('sorted', x.sort().values)
    show('cumsum', (x * 100).int().cumsum(0))  # for floats the result differs from run to run
    show('index', x[torch.arange(0, 1 << 20, 17, device=device)])


@numbers_of.case
def random_numbers():
    show('cuda generator', torch.randn(10000, generator=torch.Generator(device).manual_seed(3), device=device))


@numbers_of.case
def products():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        show(f'matmul {dtype}', tensor(512, 384, dtype=dtype) @ tensor(384, 256, dtype=dtype))
    show('bmm', torch.bmm(tensor(8, 64, 96), tensor(8, 96, 32)))
    show('linear', F.linear(tensor(128, 256), tensor(64, 256), tensor(64)))


@numbers_of.case
def transforms():
    show('fft', torch.view_as_real(torch.fft.fft(tensor(64, 1000))))
    show('rfft2', torch.view_as_real(torch.fft.rfft2(tensor(8, 128, 128))))


@numbers_of.case
def convolutions():
    torch.backends.cudnn.benchmark = False
    show('conv2d', F.conv2d(tensor(4, 16, 64, 64), tensor(32, 16, 3, 3), padding=1))
    show('batch norm', F.batch_norm(tensor(4, 16, 32, 32), None, None, training=True))


@numbers_of.case
def solvers():
    a = tensor(64, 64)
    show('cholesky', torch.linalg.cholesky(a @ a.T + 64 * torch.eye(64, device=device)))
    show('solve', torch.linalg.solve(a, tensor(64, 8)))


@numbers_of.case
def attention():
    show('attention', F.scaled_dot_product_attention(*(tensor(2, 4, 128, 64, dtype=torch.bfloat16) for _ in range(3))))


@numbers_of.case
def training():
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10)).to(device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)
    x, y = tensor(256, 64), torch.randint(0, 10, (256,), generator=made).to(device)
    for _ in range(20):
        optimiser.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimiser.step()
    show('loss after 20 steps', loss)


@numbers_of.case
def streams():
    side = torch.cuda.Stream()
    x = tensor(1 << 20)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2 + 1
    torch.cuda.current_stream().wait_stream(side)
    pinned = torch.empty(1 << 20, pin_memory=True)
    pinned.copy_(y, non_blocking=True)
    torch.cuda.synchronize()
    numbers_of.array('pinned copy', pinned.numpy())


@numbers_of.case
def graph():
    x = tensor(1024)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = (x * 3).sin()
    g.replay()
    torch.cuda.synchronize()
    show('graph', y)


@numbers_of.case
def memory():
    torch.cuda.empty_cache()
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        print('out of memory: is said')


numbers_of.finish()
