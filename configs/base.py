"""Every key and its default. Presets start from here and change what they name.

A tuple as a value spans cells: `config.data.max_length = (5, 10)` asks for both. `config.sweep`
holds further combinations: each entry is a dict of dotted keys, its tuples span cells too, and the
study is the union over entries. Keys given on the command line win over both.
"""

from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    config = ConfigDict()

    config.task = ConfigDict()
    config.task.name = ("modular_addition",)  # `ib_bench list` prints them all
    config.task.modulus = (2,)  # modular_addition, register_machine: m, 2 to 1,000; 2 is parity
    # permutation_composition, alternating_group, swaps, dihedral, cycle_navigation, bounded_counter
    config.task.k = (5,)
    config.task.variables = (2,)  # register_machine: modulus^variables is at most 1,000
    config.task.states = (5,)  # random_machine: states
    config.task.symbols = (5,)  # random_machine: symbols
    config.task.seed = (0,)  # random_machine: which machine
    config.task.factors = ("modular_addition(2)", "modular_addition(3)")  # product: of which tasks
    config.task.path = ("",)  # words: a CSV with the columns input and target, ids by spaces
    config.task.claims = ("",)  # words: the task that it must agree with; "" takes what it shows

    config.data = ConfigDict()
    config.data.max_length = (5,)  # L: lengths are 2..L, or L alone for `fixed`; 2 to 64
    config.data.length_distribution = ("uniform",)  # fixed, uniform, short_to_long
    config.data.format = ("outcome",)  # outcome, cot, acot
    config.data.label_every = (1,)  # acot: a state label at every so many symbols, and at the last
    config.data.validation_lengths = "uniform"  # uniform over 2..L, or as_training
    # Lengths, of the training or beyond, at which each run is evaluated when it ends.
    config.data.evaluation_lengths = ()
    config.data.evaluation_multiples = ()  # more of them, as multiples of L: (2,) is 2L
    # A program is compiled for padded sizes, so that cells share it: L and the numbers of symbols
    # and of states are rounded up to the next size listed here; past the last, nothing is padded.
    config.data.padded_lengths = (5, 10, 20, 30, 64)
    config.data.padded_symbols = ()

    config.model = ConfigDict()
    config.model.name = ("lstm",)  # `ib_bench list` prints them all
    config.model.hidden = (64,)  # width of the state or of the residual stream
    config.model.layers = (2,)  # transformer, mamba, delta_product, deltanet: layers
    config.model.heads = (4,)  # transformers, delta_product, deltanet: heads; they divide `hidden`
    config.model.positions = ("learned",)  # transformers: or sinusoidal, rotary, alibi, none
    config.model.loops = (0,)  # looped_transformer: uses of its block; 0 is as many as positions
    # bilinear: full, cp, block, rotation, diagonal, positive_diagonal
    config.model.structure = ("full",)
    config.model.rank = (64,)  # bilinear, cp: R
    config.model.block = (2,)  # bilinear, block: rows of a block; they divide `hidden`
    config.model.additive = (False,)  # bilinear: the input is added to the state too
    config.model.unit_state = (False,)  # bilinear: the head reads h / |h|, in training too
    config.model.state = (16,)  # mamba: states per channel
    config.model.expand = (2,)  # mamba: channels per entry of the residual stream
    config.model.conv = (4,)  # mamba: positions that its convolution reads
    config.model.householders = (2,)  # delta_product: steps per token; deltanet has 1
    config.model.eigenvalues = ("positive",)  # mamba, delta_product, deltanet: or signed, from -1

    config.optim = ConfigDict()
    config.optim.steps = 250_000  # budget of a run; a multiple of eval_every
    config.optim.batch_size = 64  # sequences per step; N below it trains on the full set
    config.optim.eval_every = 250  # steps between evaluations on the validation set
    config.optim.threshold = 1e-4  # a run is solved once its validation loss is below, in nats
    # A run whose training loss is below the threshold and whose best validation loss is this many
    # steps old ends as stalled, which counts as not solved; 0: every run has its full budget.
    config.optim.stall = 0
    config.optim.beta1 = 0.9  # Adam
    config.optim.beta2 = 0.999  # Adam
    config.optim.epsilon = 1e-8  # Adam

    config.grid = ConfigDict()
    config.grid.learning_rates = (1e-3, 1e-4, 1e-5)  # tried in this order
    config.grid.seeds = (10, 20, 30, 40, 50)  # each seed draws its own data, split, order, weights

    config.search = ConfigDict()
    # nstar: a size is decided once one run has solved it; success_curve: every run of every size
    # goes to its end, so that a rate of success can be fitted to them.
    config.search.mode = "nstar"
    config.search.policy = "cost_aware"  # which N next: cost_aware, paper, grid
    config.search.max_size = (
        16_000_000  # N_max; also at most steps x batch_size and what the split leaves
    )
    config.search.tolerance = 0.05  # stop at N* / largest failed N <= 1 + this; 0 is exact
    config.search.width = 1  # sizes tried side by side in a round
    config.search.max_probes = 100  # sizes per cell, then the bracket stays as it is (paper: 20)
    config.search.failure_cost = 50.0  # cost_aware: a failed probe costs this many learned ones
    config.search.sizes = ()  # grid: the sizes
    config.search.confirm = False  # complete all runs at N*, to print how many of them solve it

    config.lanes = ConfigDict()
    config.lanes.strategy = "auto"  # map (one after the other), vmap (batched); auto: by platform
    config.lanes.devices = 0  # devices to use; 0 is all (on a CPU: one per core)
    config.lanes.per_device = 0  # lanes per device; 0 tries out what is best; cut to fit in memory
    config.lanes.memory_fraction = 0.8  # of the free memory that lanes may take

    # Where compiled programs are kept for the next start: a folder, "auto" (the user's cache
    # folder) or "" (nowhere).
    config.lanes.compile_cache = "auto"

    config.out = ConfigDict()
    config.out.checkpoint_minutes = 5.0  # between checkpoints of the lanes; 0 is after every chunk
    config.out.log_seconds = 30.0  # between progress lines where there is no terminal

    config.sweep = ()  # ({"model.name": "lstm", "data.format": ("outcome", "acot")}, ...)
    return config.lock()
