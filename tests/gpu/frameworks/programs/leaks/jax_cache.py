"""JAX arrays in a dictionary that is never emptied."""

import jax
import jax.numpy as jnp

CACHE = {}


@jax.jit
def advance(state):
    return state * 0.5 + jnp.sin(state)


def encode(key):
    if key not in CACHE:
        CACHE[key] = jnp.full((2048, 1024), key, dtype=jnp.float32)  # planted
    return CACHE[key]


state = jnp.ones((2048, 1024))
for number in range(100):
    state = advance(state + encode(float(number)))
state.block_until_ready()
print(len(CACHE))
