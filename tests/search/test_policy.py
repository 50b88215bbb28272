"""Policies on synthetic oracles: they end, they are right, and they spend as promised."""

import dataclasses
import functools
import random

import pytest

from benchmarks.synthetic import compare, nstars
from ib_bench.search.policy import POLICIES, Knowledge, best_cut, is_closed, propose
from ib_bench.specs import SearchSpec

SEARCHES = ("cost_aware", "paper")


def make_search(policy, tolerance=0.05, width=1, max_probes=1000, sizes=()):
    return SearchSpec("nstar", policy, 16_000_000, tolerance, width, max_probes, 50.0, sizes, False)


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
        verdicts = {size: learned(size) for size in sizes}
        good = tuple(size for size in sizes if verdicts[size])
        bad = tuple(size for size in sizes if not verdicts[size])
        knowledge = knowledge._replace(
            learned=knowledge.learned + good, failed=knowledge.failed + bad
        )
    raise AssertionError("the policy never ends")


@pytest.mark.parametrize("policy", SEARCHES)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_bracket_holds_nstar_and_is_as_narrow_as_asked(policy, width):
    for nstar in [*range(1, 61), *nstars(30)]:
        known = ask(make_search(policy, width=width), lambda size, n=nstar: size >= n)
        assert known.low < nstar <= known.high
        assert is_closed(known, 0.05)


@pytest.mark.parametrize("policy", SEARCHES)
def test_without_tolerance_nstar_is_exact(policy):
    for nstar in [1, 2, 3, 17, 26, 820]:
        known = ask(make_search(policy, tolerance=0.0), lambda size, n=nstar: size >= n, 820)
        assert (known.low, known.high) == (nstar - 1, nstar)


@pytest.mark.parametrize("policy", SEARCHES)
@pytest.mark.parametrize("tolerance", [0.0, 1e-4])
def test_a_fine_tolerance_ends_also_where_millions_of_sizes_are_possible(policy, tolerance):
    for nstar in [1, 2, 300, 54_321, 4_999_999, 16_000_000]:
        search = make_search(policy, tolerance=tolerance, max_probes=200)
        known = ask(search, lambda size, n=nstar: size >= n)
        assert known.low < nstar <= known.high
        assert is_closed(known, tolerance)
        assert tolerance or known.high == nstar


@pytest.mark.parametrize("policy", SEARCHES)
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.5])
def test_rounds_of_any_width_agree_within_the_tolerance(policy, tolerance):
    for nstar in [3, 40, 777]:
        found = [
            ask(make_search(policy, tolerance, width), lambda size, n=nstar: size >= n, 820)
            for width in (1, 2, 4)
        ]
        for known in found:
            assert nstar <= known.high <= max(nstar, (nstar - 1) * (1 + tolerance))
        assert tolerance or len({known.high for known in found}) == 1


@pytest.mark.parametrize("policy", SEARCHES)
def test_a_wide_tolerance_spends_no_probe_that_it_does_not_need(policy):
    """Without the last verdict the bracket would still have been too wide."""
    for nstar in [5, 60, 5000, 300_000]:
        search, known = make_search(policy, tolerance=0.5), Knowledge(1_000_000)
        while sizes := propose(known, search):
            assert not is_closed(known, 0.5)
            (size,) = sizes
            field = "learned" if size >= nstar else "failed"
            known = known._replace(**{field: (*getattr(known, field), size)})
        assert is_closed(known, 0.5)


@pytest.mark.parametrize("policy", SEARCHES)
@pytest.mark.parametrize("width", [1, 4])
def test_nothing_is_asked_beyond_a_cell_that_is_never_learned(policy, width):
    known = ask(make_search(policy, width=width), lambda size: False, 820)
    assert known == Knowledge(820, failed=(820,))


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
@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("max_probes", [1, 2, 3, 6])
def test_no_more_probes_than_allowed(policy, width, max_probes):
    search = make_search(policy, width=width, max_probes=max_probes)
    known = ask(search, lambda size: size >= 12)
    assert known.num_probes == max_probes
    assert known.low < 12 <= known.high


def test_contradictions_name_a_learned_size_and_every_larger_one_that_failed():
    known = Knowledge(100, learned=(100, 20, 50), failed=(70, 10, 30))
    assert known.contradictions == ((20, 30), (20, 70), (50, 70))
    assert (known.high, known.low) == (20, 10)
    assert Knowledge(100, learned=(100, 50), failed=(49,)).contradictions == ()


def test_the_dearer_a_failure_the_nearer_to_the_learned_size_is_the_next():
    known = Knowledge(1_000_000, learned=(1_000_000,))
    searches = [
        dataclasses.replace(make_search("cost_aware"), failure_cost=cost)
        for cost in (1.0, 5.0, 50.0, 500.0)
    ]
    sizes = [propose(known, search)[0] for search in searches]
    assert sizes == sorted(set(sizes))
    assert sizes[0] < 10_000 and sizes[-1] > 100_000


@pytest.mark.parametrize("num_places", [2, 3, 7, 20])
@pytest.mark.parametrize("failure_cost", [1.0, 7.0, 50.0])
def test_no_other_cut_costs_less_in_expectation(num_places, failure_cost):
    """Against all search trees, spelled out."""

    @functools.cache
    def cost(n):
        return 0.0 if n == 1 else min(map(functools.partial(of_cut, n), range(1, n)))

    def of_cut(n, cut):
        learned, failed = 1 + cost(n - cut), failure_cost + cost(cut)
        return ((n - cut) * learned + cut * failed) / n

    cut = best_cut(num_places, failure_cost)
    assert of_cut(num_places, cut) == pytest.approx(cost(num_places))


def test_the_paper_divides_by_a_thousand_then_bisects():
    asked = []
    ask(make_search("paper", tolerance=0.0), lambda size: asked.append(size) or size >= 30, 10**6)
    assert asked[:4] == [10**6, 1000, 1, 500]
    assert asked[-1] in (29, 30)


def test_cost_aware_needs_fewer_failed_probes_and_less_than_the_paper():
    paper, cost_aware = compare(("paper", "cost_aware"), num_cells=400)
    assert paper["failed"] > 3 and paper["learned"] > 3  # the reconstruction as it is known
    assert cost_aware["failed_share"] <= 0.60
    assert cost_aware["cost_share"] <= 0.65


def test_grid_tries_every_size_and_reports_contradictions():
    search = make_search("grid", sizes=(10, 40, 20, 30))
    known = ask(search, lambda size: size in (20, 40))
    assert known.learned == (40, 20)
    assert known.failed == (30, 10)
    assert (known.high, known.low) == (20, 10)
    assert known.contradictions == ((20, 30),)


@pytest.mark.parametrize("width", [1, 3, 10])
def test_grid_asks_for_each_size_once_largest_first(width):
    asked = []
    search = make_search("grid", sizes=(10, 40, 20, 40, 30), width=width)
    ask(search, lambda size: asked.append(size) or False)
    assert asked == [40, 30, 20, 10]


def test_grid_takes_no_more_sizes_than_allowed():
    search = make_search("grid", sizes=(10, 40, 20, 30), width=3, max_probes=2)
    assert ask(search, lambda size: False).failed == (40, 30)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_same_verdicts_give_the_same_proposal(policy):
    search = make_search(policy, width=3, sizes=(5, 6, 7) if policy == "grid" else ())
    known = Knowledge(1000, learned=(1000, 100), failed=(10,))
    first = propose(known, search)
    assert len(first) in (1, 3)
    propose(Knowledge(9, learned=(9,)), search)
    assert propose(known, search) == first
    assert known == Knowledge(1000, learned=(1000, 100), failed=(10,))


@pytest.mark.parametrize("policy", SEARCHES)
def test_the_order_of_verdicts_does_not_matter(policy):
    one = Knowledge(1000, learned=(1000, 100), failed=(10, 20))
    other = Knowledge(1000, learned=(100, 1000), failed=(20, 10))
    search = make_search(policy, width=3)
    assert propose(one, search) == propose(other, search) != ()
