"""ONE training run as pure functions: (operands) -> state -> state. Knows no lanes, no devices.

Everything that differs between two runs of a program is an operand, so a learning rate, a seed,
another N, another length distribution or another task of the same size never compiles again.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ib_bench import data
from ib_bench.data.dataset import EXTRAPOLATION, INIT
from ib_bench.models import Model, make_model
from ib_bench.specs import ProgramSpec


class RunOperands(NamedTuple):
    """What tells one run of a program from another."""

    seed: np.ndarray  # uint32, of the weights
    learning_rate: np.ndarray  # float32
    num_samples: np.ndarray  # int32, N
    sampler: data.Sampler  # the cell's data under the same seed


def make_run_operands(
    cell_data: data.DataOperands, size: int, learning_rate: float, seed: int
) -> RunOperands:
    """Makes the operands of one run on a cell's data, `CellSpec.make_data`."""
    return RunOperands(
        seed=np.uint32(seed),
        learning_rate=np.float32(learning_rate),
        num_samples=np.int32(size),
        sampler=data.make_sampler(seed, cell_data),
    )


class RunState(NamedTuple):
    """Where a run stands, always at the end of an evaluation."""

    params: Any
    adam: optax.ScaleByAdamState
    step: jax.Array  # int32: training steps done
    train_loss: jax.Array  # float32: mean over the last chunk
    loss: jax.Array  # float32: validation loss now
    accuracy: jax.Array  # float32: validation accuracy now, over all positions that are asked for
    best_loss: jax.Array  # float32: lowest validation loss at any evaluation
    best_step: jax.Array  # int32: where it was reached
    best_accuracy: jax.Array  # float32: accuracy there


class Run(NamedTuple):
    """The functions of a program."""

    init: Callable[[RunOperands], RunState]
    advance: Callable[[RunState, RunOperands], RunState]  # `eval_every` steps, then an evaluation
    # Accuracy of the last state at each of `evaluation_lengths`, float32[num_lengths].
    accuracy_at: Callable[[RunState, RunOperands], jax.Array]


_MAX_BLOCK = 64  # steps whose batches are made together: few large operations, little memory

Carry = tuple[Any, optax.ScaleByAdamState, jax.Array]  # params, Adam's state, sum of the losses


def make_program_model(program: ProgramSpec) -> Model:
    """Builds the model of a program, at its padded sizes."""
    return make_model(
        program.model.name,
        num_inputs=program.num_inputs,
        num_outputs=program.num_outputs,
        max_positions=program.max_positions,
        trained_positions=program.num_positions,
        **dict(program.model.settings),
    )


def make_run(
    program: ProgramSpec,
    whole_sizes: tuple[int, ...] = (),
    num_validation_blocks: int | None = None,
) -> Run:
    """Builds the functions of a program; both are pure and traceable under any transformation.

    Args:
      program: what to build.
      whole_sizes: rows, ascending, of steps of their own for small N. A data set that fits is made
        once per chunk and trained on whole, in as few rows as it fits in; most interesting N are
        small, and on a CPU a step of 16 rows takes well under half the time of one of 64.
        The branch is real only outside `jax.vmap`: leave it empty there.
      num_validation_blocks: batches of an evaluation, those past the validation set without weight;
        None for as many as the cell has. A fixed number lets an accelerator run the loop without
        asking the host, and costs nothing where lanes are batched and wait for the largest anyway.
    """
    spec = program
    model = make_program_model(program)
    block_steps = max(k for k in range(1, _MAX_BLOCK + 1) if spec.eval_every % k == 0)
    adam = optax.scale_by_adam(b1=spec.beta1, b2=spec.beta2, eps=spec.epsilon)

    def logits_of(params, batch, operands):
        logits_BTV = model.apply(params, batch.inputs_BT)
        real_V = jnp.arange(spec.num_outputs) < operands.sampler.operands.num_states
        return jnp.where(real_V, logits_BTV, -jnp.inf)

    def loss_fn(params, batch, operands):
        logits_BTV = logits_of(params, batch, operands)
        loss_BT = cross_entropy(logits_BTV, batch.targets_BT)
        return jnp.sum(loss_BT * batch.weights_BT) / jnp.sum(batch.weights_BT)

    def init(operands: RunOperands) -> RunState:
        key = jax.random.fold_in(jax.random.key(operands.seed), INIT)
        params = model.init(key, jnp.zeros((1, spec.num_positions), jnp.int32))
        nothing, zero = jnp.float32(jnp.inf), jnp.int32(0)
        return RunState(
            params=params,
            adam=adam.init(params),
            step=zero,
            train_loss=nothing,
            loss=nothing,
            accuracy=jnp.float32(0),
            best_loss=nothing,
            best_step=zero,
            best_accuracy=jnp.float32(0),
        )

    def advance(state: RunState, operands: RunOperands) -> RunState:
        sampler, num_samples = operands.sampler, operands.num_samples

        def train(carry: Carry, num_steps: int, batch_of: Callable[[Any], data.Batch]) -> Carry:
            def train_step(k, carry):
                params, adam_state, loss_sum = carry
                loss, grads = jax.value_and_grad(loss_fn)(params, batch_of(k), operands)
                with jax.named_scope("optimizer"):
                    updates, adam_state = adam.update(grads, adam_state)
                    params = jax.tree.map(
                        lambda p, u: p - operands.learning_rate * u, params, updates
                    )
                return params, adam_state, loss_sum + loss

            return jax.lax.fori_loop(0, num_steps, train_step, carry)

        def train_on_batches(carry):
            def train_block(block, carry):
                with jax.named_scope("data"):
                    batches = data.training_batches(
                        sampler,
                        spec.format,
                        state.step + block * block_steps,
                        block_steps,
                        num_samples,
                        spec.batch_size,
                    )
                return train(carry, block_steps, lambda k: jax.tree.map(lambda b: b[k], batches))

            return jax.lax.fori_loop(0, spec.eval_every // block_steps, train_block, carry)

        def train_on_whole(carry, num_rows):
            batch = jax.tree.map(lambda leaf: leaf[:num_rows], whole)
            return train(carry, spec.eval_every, lambda k: batch)

        if whole_sizes:
            with jax.named_scope("data"):
                whole = data.whole_batch(sampler, spec.format, num_samples, max(whole_sizes))

        branches = [functools.partial(train_on_whole, num_rows=rows) for rows in whole_sizes]
        branch = jnp.sum(num_samples > np.array(whole_sizes, np.int32), dtype=jnp.int32)
        params, adam_state, loss_sum = jax.lax.switch(
            branch, [*branches, train_on_batches], (state.params, state.adam, jnp.float32(0))
        )
        with jax.named_scope("evaluation"):
            loss, accuracy = evaluate(params, operands)
        step = state.step + spec.eval_every
        better = loss < state.best_loss
        return RunState(
            params=params,
            adam=adam_state,
            step=step,
            train_loss=loss_sum / spec.eval_every,
            loss=loss,
            accuracy=accuracy,
            best_loss=jnp.where(better, loss, state.best_loss),
            best_step=jnp.where(better, step, state.best_step),
            best_accuracy=jnp.where(better, accuracy, state.best_accuracy),
        )

    def evaluate(params, operands):
        sampler = operands.sampler

        def add_block(block, sums):
            batch = data.validation_batch(sampler, spec.format, block, spec.batch_size)
            logits_BTV = logits_of(params, batch, operands)
            loss_BT = cross_entropy(logits_BTV, batch.targets_BT)
            right_BT = jnp.argmax(logits_BTV, -1) == batch.targets_BT
            terms = jnp.stack([loss_BT, right_BT, jnp.ones_like(loss_BT)])
            return sums + jnp.sum(terms * batch.weights_BT, axis=(1, 2))

        num_blocks = num_validation_blocks
        if num_blocks is None:
            num_blocks = (sampler.operands.num_validation + spec.batch_size - 1) // spec.batch_size
        sums = jax.lax.fori_loop(0, num_blocks, add_block, jnp.zeros(3))
        return sums[0] / sums[2], sums[1] / sums[2]

    def accuracy_at(state: RunState, operands: RunOperands) -> jax.Array:
        key = jax.random.fold_in(jax.random.key(operands.seed), EXTRAPOLATION)
        num_blocks = spec.num_extrapolation // spec.batch_size

        def num_right(length, block):
            batch_key = jax.random.fold_in(jax.random.fold_in(key, length), block)
            cell = operands.sampler.operands
            batch = data.random_batch(batch_key, cell, spec.format, length, spec.batch_size)
            logits_BV = logits_of(state.params, batch, operands)[:, -1]
            return jnp.sum(jnp.argmax(logits_BV, -1) == batch.targets_BT[:, -1])

        def accuracy(length):
            right = jax.lax.map(functools.partial(num_right, length), jnp.arange(num_blocks))
            return jnp.sum(right) / spec.num_extrapolation

        return jnp.stack([accuracy(length) for length in spec.evaluation_lengths])

    return Run(init, advance, accuracy_at)


def cross_entropy(logits_BTV: jax.Array, targets_BT: jax.Array) -> jax.Array:
    """Returns -log softmax(logits)[target] in nats, float32[B, T]."""
    # A comparison instead of a gather: the gather's gradient is a serial scatter on a CPU.
    chosen_BTV = targets_BT[..., None] == jnp.arange(logits_BTV.shape[-1])
    target_logit_BT = jnp.sum(jnp.where(chosen_BTV, logits_BTV, 0), axis=-1)
    return jax.nn.logsumexp(logits_BTV, axis=-1) - target_logit_BT
