"""Keyed bijections: one to one for every size, and as good as random for every key."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ib_bench.data.bijection import (
    MAX_LENGTH,
    DigitKey,
    make_digit_key,
    permute_digits,
    permute_index,
)
from ib_bench.tasks import MAX_MODULUS

permute = jax.jit(permute_digits)
make_key = jax.jit(lambda seed: make_digit_key(jax.random.key(seed)))
shuffle = jax.jit(permute_index)


def all_words(modulus, length, padded_length):
    """uint32[modulus^length, padded_length], zeros past `length`; the first digit runs fastest."""
    ranks = np.arange(modulus**length)[:, None]
    digits = ranks // modulus ** np.arange(length) % modulus
    return np.pad(digits, ((0, 0), (0, padded_length - length))).astype(np.uint32)


def rank_of(words, modulus, length):
    return words[:, :length].astype(np.int64) @ modulus ** np.arange(length)


def permuted(words, length, modulus, key):
    lengths = np.full(len(words), length, np.int32)
    return np.asarray(permute(words, lengths, np.uint32(modulus), key))


def small_universes():
    """Every (m, n) with at most 4,096 words, by the padded length that it is computed at."""
    for padded_length, lengths in {1: [1], 2: [2], 4: [3, 4], 12: range(5, 13)}.items():
        for length in lengths:
            for modulus in range(2, MAX_MODULUS + 1):
                if modulus**length <= 4096:
                    yield padded_length, modulus, length


def test_digits_are_permuted_one_to_one_for_every_modulus_and_length():
    num_universes = 0
    for padded_length, modulus, length in small_universes():
        words = all_words(modulus, length, padded_length)
        filled = np.zeros((4096, padded_length), np.uint32)  # one shape, one program
        filled[: len(words)] = words
        key = make_key(np.uint32(1000 * length + modulus))
        images = permuted(filled, length, modulus, key)[: len(words)]
        assert images.max() < modulus
        assert not images[:, length:].any()
        hits = np.bincount(rank_of(images, modulus, length), minlength=len(words))
        assert (hits == 1).all(), f"m={modulus}, n={length}: some word has two preimages"
        num_universes += 1
    assert num_universes == 999 + 63 + 15 + 7 + 4 + 3 + 2 + 1 + 1 + 1 + 1 + 1


def test_words_of_several_lengths_go_through_side_by_side():
    """Each word is permuted among those of its own length, whatever stands in the other rows."""
    modulus, key = 3, make_key(np.uint32(4))
    words = np.concatenate([all_words(modulus, n, 5) for n in (2, 3, 4, 5)])
    lengths = np.repeat([2, 3, 4, 5], [9, 27, 81, 243]).astype(np.int32)
    together = np.asarray(permute(words, lengths, np.uint32(modulus), key))
    for length in (2, 3, 4, 5):
        chosen = lengths == length
        apart = permuted(np.where(chosen[:, None], words, 0), length, modulus, key)
        np.testing.assert_array_equal(together[chosen], apart[chosen])


@pytest.mark.parametrize("padded_length", [6, 11, MAX_LENGTH])
def test_a_words_image_does_not_depend_on_how_far_it_is_padded(padded_length):
    key, num_words = make_key(np.uint32(0)), 3**5
    for length in (2, 3, 5):
        words = np.zeros((num_words, padded_length), np.uint32)
        words[: 3**length, :length] = all_words(3, length, length)
        image = permuted(words[:, :5], length, 3, key)
        padded = permuted(words, length, 3, key)
        np.testing.assert_array_equal(padded[:, :5], image)
        assert not padded[:, 5:].any()


def test_words_stay_distinct_and_uniform_where_there_are_more_than_ranks():
    """m = 1,000, n = 64: the first 30,000 ranks, whose high digits are all zero."""
    words = np.zeros((30_000, MAX_LENGTH), np.uint32)
    words[:, 0], words[:, 1] = np.arange(30_000) % 1000, np.arange(30_000) // 1000
    images = permuted(words, MAX_LENGTH, 1000, make_key(np.uint32(5)))
    assert images.max() < 1000
    assert len(np.unique(images, axis=0)) == 30_000
    # Every position looks uniform, not only those where the words differed.
    counts = np.stack([np.bincount(column // 10, minlength=100) for column in images.T])
    assert 0.9 < chi_square_per_degree(counts) < 1.1


def test_a_permutation_has_about_one_fixed_point():
    words = all_words(4, 6, 12)
    fixed = [
        int((permuted(words, 6, 4, make_key(np.uint32(seed))) == words).all(axis=1).sum())
        for seed in range(40)
    ]
    assert 0.5 < np.mean(fixed) < 1.6


# --- uniform over keys --------------------------------------------------------------------------


def chi_square_per_degree(counts):
    """Sums over experiments, one a row: counts of cells that should be equally likely."""
    expected = counts.sum(axis=1, keepdims=True) / counts.shape[1]
    return ((counts - expected) ** 2 / expected).sum() / (counts.shape[0] * (counts.shape[1] - 1))


NUM_KEYS = 32_000


@functools.cache
def many_keys():
    """The keys of seeds 0..31,999, cut to the 20 positions that are needed here."""

    @jax.jit
    @jax.vmap
    def keys_of(seed):
        return jax.tree.map(lambda words: words[:, :20], make_digit_key(jax.random.key(seed)))

    seeds = np.arange(NUM_KEYS, dtype=np.uint32)
    parts = [keys_of(part) for part in np.split(seeds, 8)]
    return jax.tree.map(lambda *words: np.concatenate(words), *parts)


def images_of_first_ranks(modulus, length):
    """uint32[NUM_KEYS, 2, length]: where each key sends ranks 0 and 1."""
    words = np.zeros((2, length), np.uint32)
    words[1, 0] = 1
    lengths = np.full(2, length, np.int32)
    return np.asarray(permute_under_keys(words, lengths, np.uint32(modulus), many_keys()))


permute_under_keys = jax.jit(jax.vmap(permute_digits, in_axes=(None, None, None, 0)))


def experiments(cells, num_cells, per_cell):
    """Counts of `cells` in rows of about `per_cell` hits a cell."""
    size = per_cell * num_cells
    rows = cells[: len(cells) // size * size].reshape(-1, size)
    return np.stack([np.bincount(row, minlength=num_cells) for row in rows])


@pytest.mark.parametrize(("modulus", "length"), [(2, 2), (3, 3), (2, 5), (5, 2)])
def test_the_first_element_of_a_small_universe_is_uniform_over_keys(modulus, length):
    universe = modulus**length
    images = images_of_first_ranks(modulus, length)
    first = rank_of(images[:, 0], modulus, length)
    assert 0.8 < chi_square_per_degree(experiments(first, universe, 10)) < 1.25


@pytest.mark.parametrize(("modulus", "length"), [(2, 2), (3, 3), (2, 5), (5, 2)])
def test_the_first_two_elements_of_a_small_universe_are_uniform_ordered_pairs(modulus, length):
    universe = modulus**length
    images = images_of_first_ranks(modulus, length)
    first, second = (rank_of(images[:, k], modulus, length) for k in (0, 1))
    assert (first != second).all()
    pair = first * (universe - 1) + second - (second > first)
    counts = experiments(pair, universe * (universe - 1), 10)
    assert 0.8 < chi_square_per_degree(counts) < 1.25


@pytest.mark.parametrize(("modulus", "length"), [(10, 5), (1000, 20)])
def test_any_two_digits_of_the_first_two_words_are_uniform_over_keys(modulus, length):
    images = images_of_first_ranks(modulus, length)
    digits = (images.astype(np.int64) * 10 // modulus).reshape(len(images), -1)  # ten bins each
    places = [0, 1, 2, length - 2, length - 1, length, length + 1, 2 * length - 1]
    statistics = {}
    for k, a in enumerate(places):
        for b in places[k + 1 :]:
            counts = experiments(digits[:, a] * 10 + digits[:, b], 100, 20)
            statistics[a, b] = chi_square_per_degree(counts)
    assert 0.8 < min(statistics.values()) and max(statistics.values()) < 1.25, statistics


def test_the_digits_of_the_largest_alphabet_are_uniform_one_by_one():
    images = images_of_first_ranks(1000, 20)
    for word in range(2):
        for place in (0, 1, 19):
            counts = experiments(images[:, word, place].astype(np.int64), 1000, 32)
            assert 0.8 < chi_square_per_degree(counts) < 1.25


def test_two_keys_give_permutations_that_know_nothing_of_each_other():
    modulus, length = 4, 6
    words = all_words(modulus, length, 12)
    images = [permuted(words, length, modulus, make_key(np.uint32(seed))) for seed in range(30)]
    digits = np.stack(images).reshape(30, -1)
    ranks = np.stack([rank_of(image, modulus, length) for image in images])
    # 4,096 pairs: correlations have a standard deviation of 1 / 64.
    correlation = np.corrcoef(ranks)[np.triu_indices(30, 1)]
    assert np.abs(correlation).max() < 5 / 64
    assert 0.8 < (correlation * 64).var() < 1.25
    agreeing = [
        (digits[a] == digits[a + 1]).reshape(4096, 12)[:, :length].mean() for a in range(29)
    ]
    assert np.mean(agreeing) == pytest.approx(1 / modulus, abs=0.005)


def test_keys_that_are_neighbours_share_no_word():
    keys = [make_key(np.uint32(seed)) for seed in (0, 1)]
    assert isinstance(keys[0], DigitKey)
    for first, second in zip(*keys, strict=True):
        assert (np.asarray(first) != np.asarray(second)).mean() > 0.99
    assert (np.asarray(keys[0].multipliers) % 2 == 1).all()


# --- permute_index ------------------------------------------------------------------------------


def words_of(seed):
    return np.random.RandomState(seed).randint(2**32, size=8, dtype=np.uint32)


def test_indices_are_permuted_one_to_one_for_every_size():
    index = np.arange(8192, dtype=np.int32)
    sizes = [*range(1, 300), 511, 512, 513, 1000, 2047, 2048, 2049, 4095, 4096, 4097, 7919, 8192]
    for size in sizes:
        # Rows past the end repeat the last index, as in a training batch.
        image = np.asarray(shuffle(np.minimum(index, size - 1), np.int32(size), words_of(size)))
        assert image.dtype == np.int32
        assert sorted(image[:size].tolist()) == list(range(size)), f"size={size}"


@pytest.mark.parametrize("size", [16_000_000, 15_999_999, 2**30])
def test_a_sample_of_millions_stays_distinct_and_in_range(size):
    index = np.random.RandomState(0).choice(2**23, 200_000, replace=False).astype(np.int64)
    index = np.unique(np.concatenate([index * (size // 2**23), [0, size - 1]]))
    image = np.asarray(shuffle(index.astype(np.int32), np.int32(size), words_of(7)))
    assert image.min() >= 0 and image.max() < size
    assert len(np.unique(image)) == len(index)
    counts = np.bincount(image.astype(np.int64) * 1000 // size, minlength=1000)
    assert 0.8 < chi_square_per_degree(counts[None]) < 1.25


@pytest.mark.parametrize("size", [2, 3, 5, 16, 97])
def test_the_first_positions_are_uniform_over_keys(size):
    num_keys = 20_000
    words = np.random.RandomState(size).randint(2**32, size=(num_keys, 8), dtype=np.uint32)
    index = jnp.arange(2, dtype=jnp.int32)
    images = jax.jit(jax.vmap(lambda word: permute_index(index, jnp.int32(size), word)))(words)
    first, second = np.asarray(images).T.astype(np.int64)
    assert 0.8 < chi_square_per_degree(experiments(first, size, 10)) < 1.25
    assert 0.8 < chi_square_per_degree(experiments(second, size, 10)) < 1.25
    if size > 2:
        pair = first * (size - 1) + second - (second > first)
        counts = experiments(pair, size * (size - 1), 2)
        assert 0.8 < chi_square_per_degree(counts) < 1.25


def test_two_keys_give_two_orders():
    index = np.arange(1000, dtype=np.int32)
    orders = np.stack([shuffle(index, np.int32(1000), words_of(seed)) for seed in range(20)])
    correlation = np.corrcoef(orders)[np.triu_indices(20, 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(1000)
    assert np.abs(np.corrcoef(orders[0], index)[0, 1]) < 5 / np.sqrt(1000)
