"""Policies on synthetic oracles: they end, they are right, and they spend as promised."""

import math
import random

import pytest

from ib_bench.search.policy import POLICIES, Knowledge, is_closed, propose
from ib_bench.specs import SearchSpec

SEARCHES = ("cost_aware", "paper")


def make_search(policy, tolerance=0.05, width=1, max_probes=1000, sizes=()):
    return SearchSpec(policy, 16_000_000, tolerance, width, max_probes, 50.0, sizes, False)


def ask(search, learned, max_size=16_000_000):
    """Drives a policy against `learned(N) -> bool`."""
    knowledge = Knowledge(max_size)
    for _ in range(search.max_probes + 1):
        sizes = propose(knowledge, search)
        if not sizes:
            return knowledge
        tried = {*knowledge.learned, *knowledge.failed}
        assert len(sizes) <= search.width and not tried & set(sizes)
        assert list(sizes) == sorted(set(sizes), reverse=True)
        assert all(1 <= size <= max_size for size in sizes)
        good = tuple(size for size in sizes if learned(size))
        bad = tuple(size for size in sizes if not learned(size))
        knowledge = knowledge._replace(
            learned=knowledge.learned + good, failed=knowledge.failed + bad
        )
    raise AssertionError("the policy never ends")


def synthetic_cells(count):
    draw = random.Random(0)
    return [round(math.exp(draw.uniform(math.log(5), math.log(5e6)))) for _ in range(count)]


@pytest.mark.parametrize("policy", SEARCHES)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_bracket_holds_nstar_and_is_as_narrow_as_asked(policy, width):
    for nstar in [*range(1, 61), *synthetic_cells(30)]:
        known = ask(make_search(policy, width=width), lambda size, n=nstar: size >= n)
        assert known.low < nstar <= known.high
        assert is_closed(known, 0.05)


@pytest.mark.parametrize("policy", SEARCHES)
def test_without_tolerance_nstar_is_exact(policy):
    for nstar in [1, 2, 3, 17, 26, 820]:
        known = ask(make_search(policy, tolerance=0.0), lambda size, n=nstar: size >= n, 820)
        assert (known.low, known.high) == (nstar - 1, nstar)


@pytest.mark.parametrize("policy", SEARCHES)
def test_a_cell_that_is_never_learned_costs_one_probe(policy):
    known = ask(make_search(policy), lambda size: False)
    assert (known.num_probes, known.high, known.low) == (1, None, 16_000_000)


@pytest.mark.parametrize("policy", SEARCHES)
def test_a_cell_that_is_always_learned_ends_at_one_sequence(policy):
    known = ask(make_search(policy), lambda size: True)
    assert (known.high, known.low, known.failed) == (1, 0, ())


@pytest.mark.parametrize("policy", SEARCHES)
def test_noisy_verdicts_end_in_a_bracket_all_the_same(policy):
    for seed in range(20):

        def noisy(size, seed=seed):
            draw = random.Random(f"{seed} {size}").random()
            return draw < 1 / (1 + (500 / size) ** 2)

        known = ask(make_search(policy), noisy, 100_000)
        assert known.high is None or (known.low < known.high and is_closed(known, 0.05))


@pytest.mark.parametrize("policy", SEARCHES)
def test_no_more_probes_than_allowed(policy):
    known = ask(make_search(policy, max_probes=3), lambda size: size >= 12)
    assert known.num_probes == 3


def test_cost_aware_needs_fewer_failed_probes_and_less_than_the_paper():
    spent = {}
    for policy in SEARCHES:
        found = [
            ask(make_search(policy), lambda size, n=n: size >= n) for n in synthetic_cells(400)
        ]
        failed = sum(len(known.failed) for known in found)
        spent[policy] = failed, 50 * failed + sum(len(known.learned) for known in found)
    assert spent["cost_aware"][0] <= 0.60 * spent["paper"][0]
    assert spent["cost_aware"][1] <= 0.65 * spent["paper"][1]


def test_grid_tries_every_size_and_reports_contradictions():
    search = make_search("grid", sizes=(10, 40, 20, 30))
    known = ask(search, lambda size: size in (20, 40))
    assert known.learned == (40, 20)
    assert known.failed == (30, 10)
    assert (known.high, known.low) == (20, 10)
    assert known.contradictions == ((20, 30),)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_same_verdicts_give_the_same_proposal(policy):
    search = make_search(policy, width=3, sizes=(5, 6, 7) if policy == "grid" else ())
    known = Knowledge(1000, learned=(1000, 100), failed=(10,))
    assert propose(known, search) == propose(known, search)
