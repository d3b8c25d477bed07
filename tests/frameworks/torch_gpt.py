# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Training steps of a small GPT (6 layers of 256, batch of 16 x 128 tokens, bf16 autocast, AdamW,
clipped gradients): torch_gpt.py STEPS eager|compile|graph"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from steps import timed

STEPS, MODE = int(sys.argv[1]), sys.argv[2]
WORDS, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 512, 256, 8, 6, 128, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.position = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks, self.norm, self.head = nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.embedding(tokens) + self.position)))


torch.manual_seed(0)
model = GPT().cuda()
called = torch.compile(model) if MODE == 'compile' else model
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, capturable=MODE == 'graph')
data = torch.randint(0, WORDS, (100000,))


def batch():
    at = torch.randint(0, len(data) - LENGTH - 1, (BATCH,))
    return torch.stack([data[i:i + LENGTH + 1] for i in at]).pin_memory().to('cuda', non_blocking=True)


def train(tokens):
    with torch.autocast('cuda', dtype=torch.bfloat16):
        loss = F.cross_entropy(called(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=MODE != 'graph')
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


loss = None
if MODE == 'graph':
    tokens = batch()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train(tokens)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train(tokens)

    def step():
        tokens.copy_(batch(), non_blocking=True)
        graph.replay()
else:
    def step():
        global loss
        loss = train(batch())

timed(step, lambda: loss.item(), STEPS)
print('gpt', MODE, tuple(loss.shape), loss.dtype)
