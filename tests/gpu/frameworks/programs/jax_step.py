"""JAX: a few steps of gradient descent, compiled by XLA."""

import figures
import jax
import jax.numpy as jnp
import numpy

generator = numpy.random.default_rng(0)
inputs = jnp.asarray(generator.standard_normal((512, 256), dtype=numpy.float32))
targets = jnp.asarray(generator.standard_normal((512, 64), dtype=numpy.float32))
weights = [
    jnp.asarray(generator.standard_normal((256, 512), dtype=numpy.float32) * 0.05),
    jnp.asarray(generator.standard_normal((512, 64), dtype=numpy.float32) * 0.05),
]


def loss_of(weights):
    hidden = jax.nn.relu(inputs @ weights[0])
    return jnp.mean((hidden @ weights[1] - targets) ** 2)


@jax.jit
def step(weights):
    loss, gradients = jax.value_and_grad(loss_of)(weights)
    return loss, [w - 0.1 * g for w, g in zip(weights, gradients)]


for number in range(6):
    loss, weights = step(weights)
    print(f"step {number}: loss {float(loss).hex()}")
kept = jax.device_put(numpy.ones(40 << 20, dtype=numpy.uint8)).block_until_ready()
figures.plant_leaks()
device = jax.devices()[0]
print("platform", device.platform)
figures.end({name: value for name, value in (device.memory_stats() or {}).items()})
