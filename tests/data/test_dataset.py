"""Batches: every sample once an epoch, true labels on both splits, streams that differ."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ib_bench.data import (
    DISTRIBUTIONS,
    FORMATS,
    MAX_LENGTH,
    VALIDATION_LENGTHS,
    make_arrays,
    make_operands,
    make_sampler,
    make_split,
    training_batches,
    validation_batch,
)
from ib_bench.data.bijection import make_digit_key
from ib_bench.data.dataset import DATA, INIT, ORDER, make_sequences, track_states
from ib_bench.tasks import Automaton, make_task

SIXTEEN_MILLION = 16_000_000

# Tests compile far longer than they run: machine code need not be fast, only soon.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


# Two programs serve almost every test here: (index rows, padded length, table shape).
SMALL = (1024, 8, (6, 6))
LARGE = (4096, MAX_LENGTH, (1000, 1000))


@quick_jit
def sequences_of(sampler, index, table):
    symbols, lengths = make_sequences(sampler, index, table)
    return symbols, lengths, track_states(symbols, sampler.operands)


def sequences(task, cell, which, index, seed=10, program=SMALL):
    """Lists members of a split as two lists of tuples, cut to their lengths: words, states."""
    num_rows, padded_length, shape = program
    split = make_split(task.num_symbols, *cell, padded_length=padded_length)
    operands = make_operands(task, "acot", split, *shape)
    filled = np.resize(index, num_rows).astype(np.int32)
    sampler = make_sampler(seed, operands)
    parts = sequences_of(sampler, filled, getattr(operands, which))
    symbols, lengths, states = (np.asarray(part)[: len(index)] for part in parts)
    assert not (symbols * (np.arange(padded_length) >= lengths[:, None])).any()
    words = [tuple(row[:n]) for row, n in zip(symbols.tolist(), lengths.tolist(), strict=True)]
    chains = [tuple(row[:n]) for row, n in zip(states.tolist(), lengths.tolist(), strict=True)]
    return words, chains


def slow_states(task, word):
    state, states = task.initial_state, []
    for symbol in word:
        state = int(task.transition[state, symbol])
        states.append(state)
    return tuple(states)


# --- both splits of whole universes -------------------------------------------------------------

UNIVERSE_TASKS = {
    "modular_addition(2)": 8,
    "modular_addition(3)": 5,
    "modular_addition(5)": 4,
    "cycle_navigation(4)": 5,
    "permutation_composition(3)": 3,
    "random_machine(5,4,1)": 4,
}


@pytest.mark.parametrize("validation_lengths", VALIDATION_LENGTHS)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("text", UNIVERSE_TASKS)
def test_train_and_validation_are_disjoint_and_together_the_universe(
    text, distribution, validation_lengths
):
    task, max_length = make_task(text), UNIVERSE_TASKS[text]
    cell = (max_length, distribution, validation_lengths)
    split = make_split(task.num_symbols, *cell)
    parts = {}
    for which, size in (("train", split.num_train), ("validation", split.num_validation)):
        words, chains = sequences(task, cell, which, np.arange(size))
        assert len(set(words)) == size, "a sequence occurs twice"
        assert chains == [slow_states(task, word) for word in words], "a label is wrong"
        parts[which] = set(words)
    lengths = [max_length] if distribution == "fixed" else range(2, max_length + 1)
    universe = {
        word for n in lengths for word in itertools.product(range(task.num_symbols), repeat=n)
    }
    assert not parts["train"] & parts["validation"]
    assert parts["train"] | parts["validation"] == universe


def test_labels_start_where_the_task_does():
    late = Automaton("late", np.array([[1, 0, 2], [2, 1, 0], [2, 0, 1]]), initial_state=2)
    for which in ("train", "validation"):
        words, chains = sequences(late, (4, "uniform"), which, np.arange(22))
        assert chains == [slow_states(late, word) for word in words]
        assert {chain[0] for chain in chains} == {2, 0, 1}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(
    ("text", "max_length"),
    [
        ("modular_addition(2)", MAX_LENGTH),
        ("modular_addition(1000)", MAX_LENGTH),
        ("permutation_composition(5)", 20),
        ("modular_addition(2)", 24),  # 33 million sequences: half of them are asked for
    ],
)
def test_sixteen_million_samples_can_be_asked_for(text, max_length, distribution):
    task = make_task(text)
    split = make_split(task.num_symbols, max_length, distribution)
    last = min(SIXTEEN_MILLION, split.num_train) - 1
    assert split.num_train >= SIXTEEN_MILLION or (max_length, distribution) == (24, "fixed")
    spread = np.random.RandomState(0).choice(last, 3900, replace=False)
    index = np.unique(np.concatenate([spread, [0, 1, last - 1, last]]))
    cell = (max_length, distribution)
    words, chains = sequences(task, cell, "train", index, program=LARGE)
    assert len(set(words)) == len(index)
    assert max(map(max, words)) < task.num_symbols
    assert chains[:300] == [slow_states(task, word) for word in words[:300]]
    index = np.arange(split.num_validation)
    held_out, _ = sequences(task, cell, "validation", index, program=LARGE)
    assert not set(held_out) & set(words)


@pytest.mark.parametrize(
    "program", [(1024, 5, (6, 6)), (1024, 8, (5, 4)), LARGE], ids=["length", "table", "both"]
)
def test_samples_do_not_depend_on_padding(program):
    task, cell = make_task("random_machine(5,4,1)"), (5, "uniform")
    for which in ("train", "validation"):
        index = np.arange(200)
        padded = sequences(task, cell, which, index, program=program)
        assert padded == sequences(task, cell, which, index)


def test_symbols_and_states_of_a_data_set_are_uniform():
    task = make_task("modular_addition(10)")
    words, chains = sequences(task, (10, "fixed"), "train", np.arange(4096), program=LARGE)
    for column in [*np.array(words).T, *np.array(chains).T]:
        counts = np.bincount(column, minlength=10)
        assert ((counts - 409.6) ** 2 / 409.6).sum() < 33.7  # 9 degrees: 1 in 10,000


# --- batches ------------------------------------------------------------------------------------

BATCH_SIZE = 4
TASK = make_task("modular_addition(3)")
CELL = (4, "uniform")  # 95 sequences to train on, 22 to validate on


def operands_of(task, format_name):
    split = make_split(task.num_symbols, *CELL)
    return make_operands(task, format_name, split, 6, 6)  # one shape, one program a format


@functools.partial(quick_jit, static_argnames=("format_name", "batch_size"))
def _train_rows(sampler, step, num_samples, format_name, batch_size):
    batches = training_batches(sampler, format_name, step, 1, num_samples, batch_size)
    return jax.tree.map(lambda leaf: leaf[0], batches)


def train_rows(seed, operands, step, num_samples, format_name="acot", batch_size=BATCH_SIZE):
    sampler = make_sampler(seed, operands)
    return _train_rows(sampler, step, num_samples, format_name, batch_size)


@functools.partial(quick_jit, static_argnames=("format_name", "batch_size"))
def _validation_rows(sampler, block, format_name, batch_size):
    return validation_batch(sampler, format_name, block, batch_size)


def validation_rows(seed, operands, block, format_name="acot", batch_size=BATCH_SIZE):
    return _validation_rows(make_sampler(seed, operands), block, format_name, batch_size)


def batch_words(batch):
    """The words of an `acot` batch's rows that carry weight."""
    inputs, _, weights = map(np.asarray, batch)
    lengths = weights.sum(axis=1).astype(int)
    return [tuple(row[:n]) for row, n in zip(inputs.tolist(), lengths, strict=True) if n]


def epoch_words(num_samples, epoch, seed=10):
    """The batches of an epoch, as lists of words."""
    operands = operands_of(TASK, "acot")
    steps = -(-num_samples // BATCH_SIZE)
    return [
        batch_words(
            train_rows(
                np.uint32(seed), operands, np.int32(epoch * steps + k), np.int32(num_samples)
            )
        )
        for k in range(steps)
    ]


def first_words(num_samples, seed=10, which="train"):
    return sequences(TASK, CELL, which, np.arange(num_samples), seed)[0]


@pytest.mark.parametrize("num_samples", [1, 2, 3, 4, 5, 7, 8, 37, 95])
def test_an_epoch_visits_each_of_the_first_n_samples_once(num_samples):
    for epoch in (0, 1, 5):
        batches = epoch_words(num_samples, epoch)
        visited = sum(batches, [])
        assert len(visited) == num_samples
        assert set(visited) == set(first_words(num_samples))


@pytest.mark.parametrize("num_samples", [5, 7, 37])
def test_the_last_smaller_batch_of_an_epoch_is_kept(num_samples):
    sizes = [len(words) for words in epoch_words(num_samples, 2)]
    assert sizes[:-1] == [BATCH_SIZE] * (num_samples // BATCH_SIZE)
    assert sizes[-1] == num_samples % BATCH_SIZE


@pytest.mark.parametrize("num_samples", [1, 3, 4])
def test_up_to_a_batch_each_step_is_the_full_data_set(num_samples):
    for epoch in range(6):
        assert [sorted(words) for words in epoch_words(num_samples, epoch)] == [
            sorted(first_words(num_samples))
        ]


@pytest.mark.parametrize("num_samples", [3, 4, 22, 37])
def test_batches_made_together_are_those_made_one_by_one(num_samples):
    """Also where an epoch ends in between."""
    operands = operands_of(TASK, "acot")
    sampler, first, num_steps = make_sampler(10, operands), 4, 30
    make = functools.partial(quick_jit, static_argnums=(1, 3, 5))(training_batches)
    together = make(sampler, "acot", np.int32(first), num_steps, np.int32(num_samples), BATCH_SIZE)
    for k in range(num_steps):
        alone = train_rows(np.uint32(10), operands, np.int32(first + k), np.int32(num_samples))
        for part, other in zip(together, alone, strict=True):
            assert (np.asarray(part[k]) == np.asarray(other)).all()


def test_every_epoch_has_a_fresh_order():
    orders = [tuple(sum(epoch_words(37, epoch), [])) for epoch in range(12)]
    assert len(set(orders)) == 12
    places = np.argsort([[sorted(order).index(word) for word in order] for order in orders], axis=1)
    correlation = np.corrcoef(places)[np.triu_indices(12, 1)]
    assert np.abs(correlation).max() < 4.5 / np.sqrt(37)
    assert abs(correlation.mean()) < 0.06


def test_the_set_of_size_n_is_a_prefix_of_the_set_of_size_2n():
    for num_samples in (1, 2, 11, 47):
        small, large = epoch_words(num_samples, 0), epoch_words(2 * num_samples, 0)
        assert set(sum(small, [])) < set(sum(large, []))
        assert first_words(2 * num_samples)[:num_samples] == first_words(num_samples)


@pytest.mark.parametrize("format_name", FORMATS)
def test_training_batches_carry_the_labels_of_the_oracle(format_name):
    task = make_task("cycle_navigation(4)")
    operands = operands_of(task, format_name)
    asked = 0
    for step in range(6):
        inputs, targets, weights = map(
            np.asarray,
            train_rows(np.uint32(10), operands, np.int32(step), np.int32(22), format_name),
        )
        for row_inputs, row_targets, row_weights in zip(inputs, targets, weights, strict=True):
            if not row_weights.any():
                continue
            places = np.flatnonzero(row_weights)
            size = places[-1] + 1 if format_name != "cot" else len(places)
            states = slow_states(task, row_inputs[:size].tolist())
            expected = states[-1:] if format_name == "outcome" else states
            assert tuple(row_targets[places].tolist()) == expected
            if format_name == "cot":
                assert row_inputs[size] == 7
                assert tuple(row_inputs[size + 1 : 2 * size] - 3) == states[:-1]
            asked += len(places)
    assert asked > 20


@pytest.mark.parametrize("batch_size", [4, 64])
def test_validation_blocks_list_the_validation_set_once_and_in_order(batch_size):
    operands = operands_of(TASK, "acot")
    assert operands.num_validation == 22
    words = []
    for block in range(-(-22 // batch_size)):
        batch = validation_rows(np.uint32(10), operands, np.int32(block), batch_size=batch_size)
        rows = batch_words(batch)
        for row, word in enumerate(rows):
            assert tuple(np.asarray(batch.targets_BT[row, : len(word)])) == slow_states(TASK, word)
        words += rows
    assert words == first_words(22, which="validation")


def test_an_epoch_over_all_that_is_left_never_shows_a_validation_sequence():
    assert not set(sum(epoch_words(95, 0), [])) & set(first_words(22, which="validation"))


# --- written down once --------------------------------------------------------------------------

GOLDEN_CHANGED = (
    "Seed 10 draws other data, or visits it in another order, than it used to: a bijection, a "
    "stream, a length table or the random number generator changed. Results from before and after "
    "cannot be mixed. If this is intended, raise PROTOCOL_VERSION, add a [Protocol] entry to "
    "CHANGELOG.md, and write the new words down here."
)


def spelled(words):
    return " ".join("".join(map(str, word)) for word in words)


def test_a_fixed_seed_draws_the_words_written_down():
    assert spelled(first_words(12)) == "11 010 0020 12 201 0010 01 021 1102 20 111 0000", (
        GOLDEN_CHANGED
    )
    assert spelled(first_words(8, which="validation")) == "00 001 2122 012 1122 212 1020 102", (
        GOLDEN_CHANGED
    )


def test_a_fixed_seed_visits_its_words_in_the_order_written_down():
    for epoch, expected in enumerate(
        [
            "0020 021 010 0010 11 1102 111 20 01 0000 201 12",
            "0020 12 111 1102 11 0000 021 010 201 01 0010 20",
        ]
    ):
        assert spelled(sum(epoch_words(12, epoch), [])) == expected, GOLDEN_CHANGED


# --- streams ------------------------------------------------------------------------------------


def test_other_seeds_draw_other_training_and_validation_sets():
    for which, size in (("train", 40), ("validation", 22)):
        sets = [frozenset(first_words(size, seed, which)) for seed in (10, 20, 30, 40, 50)]
        assert len(set(sets)) == 5
        for a, b in itertools.combinations(sets, 2):
            assert len(a & b) < 0.8 * size


def test_the_same_seed_draws_the_same_sets():
    assert first_words(40, seed=20) == first_words(40, seed=20)
    assert epoch_words(37, 3, seed=20) == epoch_words(37, 3, seed=20)


def test_the_named_streams_of_a_seed_differ():
    assert len({INIT, DATA, ORDER}) == 3
    root = jax.random.key(10)
    bits = [
        tuple(jax.random.bits(jax.random.fold_in(root, stream), (8,)).tolist())
        for stream in (INIT, DATA, ORDER)
    ]
    assert len(set(bits)) == 3
    assert len(set(itertools.chain(*bits))) == 24


def test_a_sampler_draws_its_words_from_data_and_its_order_from_order():
    sampler = make_sampler(10, operands_of(TASK, "acot"))
    root = jax.random.key(10)
    expected = make_digit_key(jax.random.fold_in(root, DATA))
    for words, other in zip(sampler.digit_key, expected, strict=True):
        np.testing.assert_array_equal(words, other)
    expected = jax.random.bits(jax.random.fold_in(root, ORDER), (8,), jnp.uint32)
    np.testing.assert_array_equal(sampler.order_words, expected)


def test_another_seed_visits_its_samples_in_another_order():
    """The order is compared as positions in the data set, so the sets themselves cancel out."""
    places = []
    for seed in (10, 20):
        ranks = {word: place for place, word in enumerate(first_words(37, seed))}
        places.append([ranks[word] for word in sum(epoch_words(37, 0, seed), [])])
    assert sorted(places[0]) == sorted(places[1])
    assert sum(a == b for a, b in zip(*places, strict=True)) < 8


# --- as a plain library -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "format_name"),
    [("train", "acot"), ("train", "cot"), ("train", "outcome"), ("validation", "acot")],
)
def test_make_arrays_gives_the_very_samples_a_run_would_see(split, format_name):
    arrays = make_arrays(TASK, 4, 22, format_name=format_name, split=split)
    operands = operands_of(TASK, format_name)
    assert all(isinstance(part, np.ndarray) for part in arrays)
    words = [tuple(row[:n]) for row, n in zip(arrays.symbols.tolist(), arrays.lengths, strict=True)]
    assert words == first_words(22, which=split)
    for word, states in zip(words, arrays.states.tolist(), strict=True):
        assert tuple(states[: len(word)]) == slow_states(TASK, word)
    formatted = zip(
        arrays.inputs.tolist(), arrays.targets.tolist(), arrays.weights.tolist(), strict=True
    )
    if split == "train":
        batches = [
            train_rows(np.uint32(10), operands, np.int32(k), np.int32(22), format_name)
            for k in range(6)
        ]
    else:
        batches = [
            validation_rows(np.uint32(10), operands, np.int32(k), format_name) for k in range(6)
        ]
    seen = [
        row
        for batch in batches
        for row in zip(*(np.asarray(part).tolist() for part in batch), strict=True)
    ]
    seen = [row for row in seen if any(row[2])]
    assert sorted(formatted) == sorted(seen)


def test_make_arrays_delivers_as_many_samples_as_were_asked_for():
    for num_samples in (1, 95):
        arrays = make_arrays(TASK, 4, num_samples)
        assert {len(part) for part in arrays} == {num_samples}
        rows = {tuple(row) for row in np.column_stack([arrays.lengths, arrays.symbols]).tolist()}
        assert len(rows) == num_samples


def test_make_arrays_gives_the_whole_split_unless_told_otherwise():
    assert len(make_arrays(TASK, 4).symbols) == 95
    assert len(make_arrays(TASK, 4, split="validation").symbols) == 22


def test_make_arrays_follows_the_length_distribution():
    lengths = {
        name: make_arrays(TASK, 4, 22, length_distribution=name).lengths.tolist()
        for name in DISTRIBUTIONS
    }
    assert set(lengths["fixed"]) == {4}
    assert lengths["short_to_long"] == [2] * 8 + [3] * 14
    assert lengths["uniform"] == [2, 3, 4] * 7 + [2]


def test_make_arrays_follows_the_validation_lengths():
    lengths = {
        name: make_arrays(
            TASK,
            4,
            22,
            split="validation",
            length_distribution="short_to_long",
            validation_lengths=name,
        ).lengths.tolist()
        for name in VALIDATION_LENGTHS
    }
    assert lengths["as_training"] == [2] + [3] * 5 + [4] * 16
    assert lengths["uniform"] == [2, 3, 4] + [3, 4] * 4 + [4] * 11


def test_make_arrays_has_the_documented_shapes_and_types():
    arrays = make_arrays(make_task("cycle_navigation(4)"), 4, 22, format_name="cot")
    assert arrays.symbols.shape == arrays.states.shape == (22, 4)
    assert arrays.lengths.shape == (22,)
    assert arrays.inputs.shape == arrays.targets.shape == arrays.weights.shape == (22, 8)
    types = {name: part.dtype.name for name, part in arrays._asdict().items()}
    assert types.pop("weights") == "float32"
    assert set(types.values()) == {"int32"}


def test_make_arrays_draws_by_seed():
    first, second = (make_arrays(TASK, 4, 22, seed=seed).symbols for seed in (10, 20))
    assert (first != second).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 1}, "max_length: 1 is out of range; use 2 to 64"),
        ({"max_length": 65}, "max_length: 65 is out of range; use 2 to 64"),
        (
            {"num_samples": 96},
            r"num_samples: 96 is out of range; the train split of modular_addition\(3\) at "
            "L=4, uniform, holds 1 to 95",
        ),
        ({"num_samples": 0}, "num_samples: 0 is out of range"),
        (
            {"num_samples": 23, "split": "validation"},
            "num_samples: 23 is out of range; the validation split .* holds 1 to 22",
        ),
        ({"split": "valid"}, "split: 'valid' is unknown; did you mean 'validation'"),
        ({"format_name": "cott"}, "format_name: 'cott' is unknown; did you mean 'cot'"),
        (
            {"length_distribution": "unifrom"},
            "data.length_distribution: 'unifrom' is unknown; did you mean 'uniform'",
        ),
        (
            {"validation_lengths": "training"},
            "data.validation_lengths: 'training' is unknown; did you mean 'as_training'",
        ),
    ],
)
def test_make_arrays_refuses_what_it_cannot_deliver(settings, message):
    with pytest.raises(ValueError, match=message):
        make_arrays(TASK, **{"max_length": 4} | settings)


def test_an_alphabet_past_what_the_hash_can_reduce_is_refused():
    task = Automaton("wide", np.zeros((2, 1001), int))
    with pytest.raises(ValueError, match="num_symbols: 1001 is out of range; use 2 to 1000"):
        make_arrays(task, 4)


def test_a_step_late_in_a_long_run_still_draws_its_epoch():
    """250,000 steps of N = 1: the epoch is the step, and nothing overflows."""
    operands = operands_of(TASK, "acot")
    batch = train_rows(np.uint32(10), operands, np.int32(2**31 - 1), np.int32(1))
    assert batch_words(batch) == first_words(1)
    assert jnp.isfinite(batch.weights_BT).all()
