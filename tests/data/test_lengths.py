"""Length distributions and the split, against simulations that hand out one sequence at a time."""

import itertools

import jax
import numpy as np
import pytest

from ib_bench.data import DISTRIBUTIONS, MAX_LENGTH, VALIDATION_LENGTHS, make_split
from ib_bench.data.lengths import MAX_RANK, length_and_rank, one_by_one, take_turns

SIXTEEN_MILLION = 16_000_000

SMALL = [(2, 2), (2, 3), (2, 5), (2, 9), (3, 2), (3, 4), (5, 4), (10, 3), (23, 2)]

every_small_cell = pytest.mark.parametrize(
    ("num_symbols", "max_length", "distribution", "validation_lengths"),
    [
        (*sizes, *names)
        for sizes in SMALL
        for names in itertools.product(DISTRIBUTIONS, VALIDATION_LENGTHS)
    ],
)


# --- the slow simulation ------------------------------------------------------------------------


def lengths_of(distribution, max_length):
    return [max_length] if distribution == "fixed" else list(range(2, max_length + 1))


def hand_out(available, in_turn):
    """Hands out sequences one at a time; yields lengths. `available` is length -> sequences."""
    left = dict(available)
    while any(left.values()):
        for length in left:
            while left[length]:
                left[length] -= 1
                yield length
                if in_turn:
                    break


def simulate(num_symbols, max_length, distribution, validation_lengths):
    """Returns both splits as lists of (length, rank)."""
    universe = {
        n: sum(1 for _ in itertools.product(range(num_symbols), repeat=n))
        for n in lengths_of(distribution, max_length)
    }
    share = {n: count // 5 for n, count in universe.items()}
    wanted = min(2000, sum(universe.values()) // 5, sum(share.values()))
    if wanted == 0:
        share[max_length] = wanted = 1
    validation_in_turn = validation_lengths == "uniform" or distribution == "uniform"
    used = dict.fromkeys(universe, 0)

    def take(lengths):
        for length in lengths:
            yield length, used[length]
            used[length] += 1

    validation = list(take(itertools.islice(hand_out(share, validation_in_turn), wanted)))
    left = {n: universe[n] - used[n] for n in universe}
    return list(take(hand_out(left, distribution == "uniform"))), validation


def members(table, count):
    lengths, ranks = length_and_rank(np.arange(count), table)
    return list(zip(lengths.tolist(), ranks.tolist(), strict=True))


@every_small_cell
def test_both_splits_equal_a_simulation_that_hands_out_one_sequence_at_a_time(
    num_symbols, max_length, distribution, validation_lengths
):
    split = make_split(num_symbols, max_length, distribution, validation_lengths)
    train, validation = simulate(num_symbols, max_length, distribution, validation_lengths)
    assert split.num_train == len(train)
    assert split.num_validation == len(validation)
    assert members(split.train, split.num_train) == train
    assert members(split.validation, split.num_validation) == validation


@every_small_cell
def test_the_splits_share_no_sequence_and_are_the_whole_universe(
    num_symbols, max_length, distribution, validation_lengths
):
    split = make_split(num_symbols, max_length, distribution, validation_lengths)
    train = set(members(split.train, split.num_train))
    validation = set(members(split.validation, split.num_validation))
    universe = {
        (n, rank) for n in lengths_of(distribution, max_length) for rank in range(num_symbols**n)
    }
    assert len(train) == split.num_train
    assert len(validation) == split.num_validation
    assert not train & validation
    assert train | validation == universe


@every_small_cell
def test_validation_is_a_fifth_at_most_two_thousand_and_never_nothing(
    num_symbols, max_length, distribution, validation_lengths
):
    split = make_split(num_symbols, max_length, distribution, validation_lengths)
    universe = {n: num_symbols**n for n in lengths_of(distribution, max_length)}
    total = sum(universe.values())
    held_out = np.bincount(
        length_and_rank(np.arange(split.num_validation), split.validation)[0]
    ).tolist()
    assert 1 <= split.num_validation <= 2000
    if total < 5:  # a fifth of so few is nothing, so one is taken
        assert split.num_validation == 1
        return
    assert 5 * split.num_validation <= total
    for length, count in universe.items():
        assert 5 * (held_out[length] if length < len(held_out) else 0) <= count
    # Nothing is held back beyond what rounding down per length takes.
    assert split.num_validation >= min(2000, total // 5 - len(universe))


@pytest.mark.parametrize(
    ("num_symbols", "max_length", "distribution", "expected"),
    [
        (2, 10, "fixed", 204),  # 20 % of 1,024
        (2, 30, "fixed", 2000),
        (5, 5, "fixed", 625),
        (10, 4, "fixed", 2000),  # exactly 20 % of 10,000
        (2, 10, "uniform", 404),  # 2,044 / 5 = 408, less what rounding takes at each length
        (120, 20, "uniform", 2000),
        (1000, 64, "short_to_long", 2000),
    ],
)
def test_the_papers_cells_have_validation_sets_of_the_papers_size(
    num_symbols, max_length, distribution, expected
):
    split = make_split(num_symbols, max_length, distribution)
    assert split.num_validation == expected
    if num_symbols**max_length < MAX_RANK:
        total = sum(num_symbols**n for n in lengths_of(distribution, max_length))
        assert split.num_train == total - expected


# --- how the distributions look -----------------------------------------------------------------


def test_fixed_has_one_length():
    split = make_split(3, 6, "fixed")
    assert {length for length, _ in members(split.train, split.num_train)} == {6}
    assert {length for length, _ in members(split.validation, split.num_validation)} == {6}


def test_short_to_long_exhausts_a_length_before_the_next_begins():
    split = make_split(3, 6, "short_to_long")
    lengths = [length for length, _ in members(split.train, split.num_train)]
    assert lengths == sorted(lengths)
    assert set(lengths) == {2, 3, 4, 5, 6}


def test_uniform_gives_equal_shares_to_lengths_with_unused_sequences():
    """At every N the counts differ by at most one, except where a length is exhausted."""
    split = make_split(3, 6, "uniform")
    held_out = np.bincount(
        length_and_rank(np.arange(split.num_validation), split.validation)[0], minlength=7
    )
    counts = dict.fromkeys(range(2, 7), 0)
    for length, _ in members(split.train, split.num_train):
        counts[length] += 1
        unused = [n for n in counts if counts[n] < 3**n - held_out[n]]
        level = max(counts.values())
        assert all(counts[n] >= level - 1 for n in unused)


@pytest.mark.parametrize("distribution", ["uniform", "short_to_long"])
def test_validation_lengths_are_uniform_or_as_training(distribution):
    by_key = {
        key: np.bincount(
            length_and_rank(np.arange(2000), make_split(3, 9, distribution, key).validation)[0]
        )
        for key in VALIDATION_LENGTHS
    }
    # 20 % of 9, 27, 81 and 243, then equal shares of what is left.
    assert by_key["uniform"].tolist() == [0, 0, 1, 5, 16, 48, 145, 437, 674, 674]
    in_order = [0, 0, 1, 5, 16, 48, 145, 437, 1312, 36]
    expected = by_key["uniform"].tolist() if distribution == "uniform" else in_order
    assert by_key["as_training"].tolist() == expected


def test_phases_of_water_filling_start_where_a_length_is_exhausted():
    # 3 rounds of three lengths, 2 of two, 5 of one.
    assert take_turns({2: 3, 3: 5, 4: 10}) == [(0, 2, 3, 0), (9, 3, 2, 3), (13, 4, 1, 5)]
    # Lengths that end together take one phase; a length without sequences takes none.
    assert take_turns({2: 0, 3: 4, 4: 4}) == [(0, 3, 2, 0)]


def test_phases_of_one_by_one_are_the_lengths():
    assert one_by_one({2: 3, 3: 5, 4: 10}) == [(0, 2, 1, 0), (3, 3, 1, 0), (8, 4, 1, 0)]


# --- large sizes --------------------------------------------------------------------------------


def round_by_round(num_symbols, max_length, split, index):
    """Oracle for `uniform`: counts the lengths alive in every round, in 64 bits."""
    lengths = np.arange(2, max_length + 1)
    held_out = np.bincount(
        length_and_rank(np.arange(split.num_validation), split.validation)[0],
        minlength=max_length + 1,
    )
    free = np.array([min(num_symbols**n, MAX_RANK) for n in lengths.tolist()]) - held_out[2:]
    # Enough rounds to hand out 16 million: lengths with more are alive throughout.
    num_rounds = int(np.sort(free)[-1]) if free.sum() < SIXTEEN_MILLION else SIXTEEN_MILLION
    alive = np.zeros(num_rounds + 1, np.int64)
    for count in free:
        alive[: min(count, num_rounds)] += 1
    ends = np.cumsum(alive)
    rounds = np.searchsorted(ends, index, side="right")
    turns = index - (ends[rounds] - alive[rounds])
    expected = []
    for turn, rank in zip(turns.tolist(), rounds.tolist(), strict=True):
        length = lengths[free > rank][turn]
        expected.append((int(length), rank + int(held_out[length])))
    return expected


def far_indices(num_train):
    last = min(SIXTEEN_MILLION, num_train) - 1
    spread = np.random.RandomState(0).randint(last, size=500)
    ends = [np.arange(min(200, last)), np.arange(max(0, last - 200), last + 1)]
    return np.concatenate([*ends, spread])


@pytest.mark.parametrize("num_symbols", [2, 10, 120, 1000])
@pytest.mark.parametrize("max_length", [5, 24, MAX_LENGTH])
def test_uniform_is_right_up_to_sixteen_million(num_symbols, max_length):
    split = make_split(num_symbols, max_length, "uniform")
    index = far_indices(split.num_train)
    lengths, ranks = length_and_rank(index, split.train)
    pairs = list(zip(lengths.tolist(), ranks.tolist(), strict=True))
    assert pairs == round_by_round(num_symbols, max_length, split, index)


@pytest.mark.parametrize("num_symbols", [2, 10, 120, 1000])
@pytest.mark.parametrize("distribution", ["fixed", "short_to_long"])
def test_one_length_after_the_other_is_right_up_to_sixteen_million(num_symbols, distribution):
    split = make_split(num_symbols, MAX_LENGTH, distribution)
    held_out = np.bincount(
        length_and_rank(np.arange(split.num_validation), split.validation)[0],
        minlength=MAX_LENGTH + 1,
    ).tolist()
    index = far_indices(split.num_train)
    lengths, ranks = length_and_rank(index, split.train)
    for i, length, rank in zip(index.tolist(), lengths.tolist(), ranks.tolist(), strict=True):
        before = 0
        for n in lengths_of(distribution, MAX_LENGTH):
            free = min(num_symbols**n, MAX_RANK) - held_out[n]
            if i < before + free:
                break
            before += free
        assert (length, rank) == (n, i - before + held_out[n])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("num_symbols", [2, 1000])
def test_tables_of_the_largest_cells_fit_their_integers(num_symbols, distribution):
    split = make_split(num_symbols, MAX_LENGTH, distribution)
    assert SIXTEEN_MILLION < split.num_train <= MAX_RANK
    for table in (split.train, split.validation):
        for column in table:
            assert column.dtype == np.int32
            assert (column >= 0).all()
    index = np.array([0, split.num_train - 1])
    lengths, ranks = length_and_rank(index, split.train)
    assert (lengths >= 2).all() and (lengths <= MAX_LENGTH).all()
    assert (ranks >= 0).all() and (ranks < MAX_RANK).all()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_traced_lookup_equals_one_in_numpy(distribution):
    lookup = jax.jit(length_and_rank)
    for num_symbols in (2, 1000):
        split = make_split(num_symbols, 24, distribution)
        index = far_indices(split.num_train)
        expected = length_and_rank(index, split.train)
        for traced, direct in zip(
            lookup(index.astype(np.int32), split.train), expected, strict=True
        ):
            assert traced.dtype == np.int32
            np.testing.assert_array_equal(traced, direct)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_padded_table_holds_the_same_sequences(distribution):
    split = make_split(3, 5, distribution)
    padded = make_split(3, 5, distribution, padded_length=20)
    assert padded.train.start.shape == (20,)
    assert padded.train.skip.shape == (21,)
    assert padded.num_train == split.num_train
    assert padded.num_validation == split.num_validation
    assert members(padded.train, split.num_train) == members(split.train, split.num_train)
    assert members(padded.validation, split.num_validation) == members(
        split.validation, split.num_validation
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (3, 5, "unifrom"),
            "data.length_distribution: 'unifrom' is unknown; did you mean 'uniform'",
        ),
        ((3, 5, "fixed", "fixed"), "data.validation_lengths: 'fixed' is unknown.*as_training, uni"),
        ((3, 1, "uniform"), "max_length: 1 is out of range; use 2 to 64"),
        ((3, 65, "uniform"), "max_length: 65 is out of range; use 2 to 64"),
        ((1, 5, "uniform"), "num_symbols: 1 is out of range; use 2 to 1000"),
        ((1001, 5, "uniform"), "num_symbols: 1001 is out of range; use 2 to 1000"),
        ((3, 5, "uniform", "uniform", 4), "padded_length: 4 is out of range; use 5 to 64"),
        ((3, 5, "uniform", "uniform", 65), "padded_length: 65 is out of range; use 5 to 64"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name_and_the_fix(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_split(*arguments)
