# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""JAX: jit, grad, FFT, linear algebra, training steps of a small network: jax_train.py STEPS"""
import os
import sys

os.environ['JAX_PLATFORMS'] = 'cuda'  # fails where JAX would use the CPU
import jax
import jax.numpy as jnp
from steps import timed

print([device.platform for device in jax.devices()])
x = jnp.ones((512, 512))
print('grad', jax.grad(lambda a: jnp.sum(jnp.sin(a @ a)))(x).shape)
print('fft', jnp.fft.fft(jnp.ones(1024)).shape, 'svd', jnp.linalg.svd(x[:64, :64])[1].shape, 'sort', jnp.sort(jnp.ones(1000)).shape)
key = jax.random.PRNGKey(0)
weights = [jax.random.normal(key, (256, 512)), jax.random.normal(key, (512, 10))]
data, labels = jax.random.normal(key, (64, 256)), jnp.zeros(64, dtype=jnp.int32)


@jax.jit
def train(weights):
    def loss(weights):
        out = jnp.tanh(data @ weights[0]) @ weights[1]
        return -jnp.mean(jax.nn.log_softmax(out)[jnp.arange(64), labels])
    value, grads = jax.value_and_grad(loss)(weights)
    return value, [w - 0.1 * g for w, g in zip(weights, grads)]


def step():
    global loss, weights
    loss, weights = train(weights)


timed(step, lambda: float(loss), int(sys.argv[1]))
print('loss', loss.shape)
