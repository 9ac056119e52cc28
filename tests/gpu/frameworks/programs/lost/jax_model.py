"""JAX: a jitted model whose states are kept in a dictionary. An early return keeps a staging buffer."""

import jax
import jax.numpy as jnp
from raw_memory import give_back, take

STATES = {}


@jax.jit
def advance(state):
    return jnp.tanh(state @ state.T) @ state


def step(number, state):
    staging = take(1 << 20)  # planted
    state = advance(state)
    if number % 4 == 3:
        return state
    STATES[number] = state
    give_back(staging)
    return state


state = jax.random.normal(jax.random.PRNGKey(0), (512, 512))
for number in range(100):
    state = step(number, state)
state.block_until_ready()
print(len(STATES))
