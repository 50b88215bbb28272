"""A state-tracking task is a finite automaton, and an automaton is a table.

Knows nothing of data sets, formats or models.
"""

import dataclasses
import hashlib

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Automaton:
    """A finite automaton: s_k = transition[s_{k-1}, x_k], from s_0 = initial_state.

    Attributes:
      name: how the task is written in records and tables, for example "modular_addition(5)".
      transition: int32[num_states, num_symbols], read-only; the state after reading a symbol.
      initial_state: s_0.
      states_are_symbols: True where states and symbols are the same set (groups), so that a chain
        of thought writes states with the symbols' own token ids.
    """

    name: str
    transition: np.ndarray
    initial_state: int = 0
    states_are_symbols: bool = False

    def __post_init__(self):
        table = np.array(self.transition, dtype=np.int32)
        if table.ndim != 2 or table.size == 0:
            raise ValueError(
                f"task {self.name}: transition has shape {table.shape}; it must be "
                "[num_states, num_symbols] with at least one of each"
            )
        num_states, num_symbols = table.shape
        if table.min() < 0 or table.max() >= num_states:
            raise ValueError(
                f"task {self.name}: transition names state "
                f"{table.min() if table.min() < 0 else table.max()}; states are 0..{num_states - 1}"
            )
        if not 0 <= self.initial_state < num_states:
            raise ValueError(
                f"task {self.name}: initial_state is {self.initial_state}; states are "
                f"0..{num_states - 1}"
            )
        if self.states_are_symbols and num_states != num_symbols:
            raise ValueError(
                f"task {self.name}: states_are_symbols needs as many states as symbols, "
                f"not {num_states} and {num_symbols}"
            )
        table.setflags(write=False)
        object.__setattr__(self, "transition", table)

    @property
    def num_states(self) -> int:
        return self.transition.shape[0]

    @property
    def num_symbols(self) -> int:
        return self.transition.shape[1]

    @property
    def table_hash(self) -> str:
        """16 hex digits over the table and the initial state; stored in every record."""
        content = np.concatenate(
            [[*self.transition.shape, self.initial_state], self.transition.ravel()]
        )
        return hashlib.sha256(content.astype("<i4").tobytes()).hexdigest()[:16]

    def states(self, symbols: np.ndarray) -> np.ndarray:
        """Returns s_1..s_n for x_1..x_n; int32[..., n] to int32[..., n]."""
        symbols = np.asarray(symbols)
        states = np.empty(symbols.shape, np.int32)
        state = np.full(symbols.shape[:-1], self.initial_state, np.int32)
        for k in range(symbols.shape[-1]):
            state = self.transition[state, symbols[..., k]]
            states[..., k] = state
        return states

    def state_probabilities(self, length: int) -> np.ndarray:
        """Returns float64[length, num_states]: P(s_k = s) for k = 1..length, symbols uniform."""
        probability = np.zeros(self.num_states)
        probability[self.initial_state] = 1.0
        rows = np.empty((length, self.num_states))
        for k in range(length):
            spread = np.repeat(probability / self.num_symbols, self.num_symbols)
            probability = np.bincount(
                self.transition.ravel(), weights=spread, minlength=self.num_states
            )
            rows[k] = probability
        return rows

    def chance(self, length: int) -> float:
        """Returns the accuracy of the best constant guess of s_n at n = length."""
        return float(self.state_probabilities(length)[-1].max())
