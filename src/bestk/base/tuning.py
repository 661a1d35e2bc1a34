"""Constants that steer speed: every one in one place, with its reason.

None of them can make a bound wrong: what proofs rest on (unit roundoff, margins of a rounding
analysis) stands beside the proof. Costs are model seconds from counted work. They are constants,
not measurements, so that the same input gives the same tree on every machine.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The constants in use; :func:`tuning` returns them, :func:`tuned` changes them for a while."""

    # Reading data ---------------------------------------------------------------------------

    fewest_wide: int = 200
    """Features from which on data can be wide: below, p x p products cost next to nothing."""
    wide_from: float = 1.5
    """Features per row from which on rows are used instead of products: measured about equal."""
    chunk_bytes: int = 2**26
    """Rows converted to float64 at a time: few calls of BLAS, little memory."""
    cached_bytes: int = 2**24
    """Plain rows read at a time, if BLAS likes their number: in cache for a second product."""
    fewest_cached_rows: int = 4096
    """Rows that BLAS likes at least: shorter products are slower than reading the rows twice."""
    batch_bytes: int = 2**24
    """Numbers read from a file at a time, as float64."""
    text_bytes: int = 2**22
    """Text read from a file at a time by Arrow."""
    text_values: int = 2**19
    """Values parsed at a time without Arrow: Python's strings take far more than numbers."""
    parquet_buffer: int = 2**18
    """Bytes of Parquet read ahead: row groups may be as large as the file."""
    part_bytes: int = 2**27
    """Numbers of a part of a table, as float64: what a worker easily has room for, and some tenths
    of a second to read. Larger row groups are not cut."""
    part_columns: int = 16
    """Columns of Parquet decoded at a time: each keeps pages in memory, up to some megabytes."""
    block_bytes: int = 2**20
    """Numbers of them decoded at a time: in cache until they are in their place."""
    remote_files: int = 16
    """Remote files that are opened at a time: nearly all of it is waiting."""
    device_sums: float = 2e10
    """Multiplications of sums of products that are worth sending rows to a device."""
    device_columns: int = 500
    """The same for rows whose number is not known beforehand, in columns."""
    triangle_features: int = 200
    """Features up to which batches keep a triangular factor: its cost is p times that of sums."""

    triangle_panel: int = 48
    """Columns eliminated at a time: LAPACK's block size for its triangle-pentagon QR."""
    triangle_rows: int = 4
    """Rows per column of a chunk that is added to a triangle, for speed alone."""
    triangle_fewest_rows: int = 512
    """Rows of such a chunk, at least."""

    # Matrices -------------------------------------------------------------------------------

    scaled_rows: int = 256
    """Rows of a matrix, or columns of data, that are scaled at a time: in cache."""
    lanczos_steps: int = 30
    """Steps for the smallest eigenvalue: nearly all matrices need fewer, and it is only a guess."""
    device_factors: int = 2000
    """Features from which on a device factors matrices: below, the way there takes longer."""
    device_products: float = 2e7
    """Entries of wide data from which on a device multiplies batches of nodes with them."""
    qr_multiplies: float = 1e11
    """Work up to which the data are factored to judge nearly dependent features: a minute."""
    small_features: int = 1500
    """Features up to which one BLAS thread is as fast as a pool, and faster on a busy machine."""
    small_sums: float = 2e9
    """Multiplications of sums of products that one BLAS thread does in no time."""
    small_wide_entries: float = 2e7
    """The same for entries of wide data."""
    core_first: int = 128
    """Candidates of a first core: relaxations have fewer nonzeros than that."""
    core_per_choice: int = 16
    """Candidates of a first core for each feature of a model: correlated data need more."""
    core_many: int = 2000
    """Candidates that are no burden; a larger core has no more products than the data have."""
    core_entrants: int = 32
    """Candidates that one node may add at a time: once these have moved, most others stay zero."""
    core_rounds: int = 12
    """Times that a batch of nodes may ask for candidates: nearly all are done after three."""
    product_share: float = 0.125
    """Multiplies of a product by BLAS beside those of a compiled loop of the same length."""
    live_share: float = 0.7
    """Features OUT at all nodes are left out of products if at most this share is left."""

    # Dual vectors ---------------------------------------------------------------------------

    closeness: float = 0.2
    """A relaxation is solved to this share of what separates its bound from the cutoff."""
    sweeps: int = 400
    """Sweeps of coordinate descent for one node, at most: few nodes need more than 100."""
    sweeps_at_once: int = 60
    """Sweeps over one working set before other features are asked in."""
    admm_iterations: int = 100
    """The paper's number."""
    admm_check_every: int = 10
    """Iterations between looks at the bound: a look costs as much as two of them."""
    admm_singular_step: float = 0.1
    """Share of the paper's step where Q has a large null space: 30 steps are then worth 60."""
    subgradient_iterations: int = 200
    """Steps after which the paper's optional bound hardly moves."""
    subgradient_smoothing: float = 1.5
    """Weight of the last direction in the next one, as for CMF steps in the paper."""
    single_from: float = 1e-5
    """Mean charge from which on duals are kept in single precision: rounding them costs nothing."""

    # Splits ---------------------------------------------------------------------------------

    ascent_steps: int = 6
    """Steps of one improvement of the diagonal: more gain little."""
    ascent_share: float = 2.0
    """Share of what the tree has cost, after which charges are improved again: at first often."""
    ascent_sweeps: int = 200
    """Sweeps for a node at each step: it starts from the step before."""
    ascent_weight: float = 0.5
    """Weight of the barrier in the first step, beside the gradient of the bound."""
    ascent_shrink: float = 0.75
    """Weight of the barrier from one step to the next."""
    thread_features: int = 200
    """Features from which on a few nodes are worth a piece of work for threads."""
    pieces_per_thread: int = 4
    """Pieces of a batch of such nodes for each thread: they take unequal time."""
    ascent_nodes: int = 4
    """Open nodes to which a diagonal is fitted: one would be special, many are slow."""
    narrow_after: float = 3.0
    """A narrower box waits until the tree has cost this many times as much: few problems gain."""
    small_tree: float = 0.01
    """Model seconds of a tree that does without a narrower box, to end with a gap of zero."""

    # Clusters -------------------------------------------------------------------------------

    cluster_seeds: int = 40
    """Features that may lead a cluster: those that greedy selection takes first."""
    cluster_seed_gain: float = 0.02
    """Share of the best gain below which a feature leads no cluster."""
    cluster_widths: tuple[int, ...] = (2, 6, 16, 48)
    """Followers per cluster to try, as long as charges grow."""
    cluster_likeness: float = 0.1
    """Correlation with the seed below which a feature stays outside its cluster."""
    cluster_followers: float = 0.5
    """Share of the possible charge that followers get; the less, the more is left for seeds."""
    cluster_temperatures: tuple[float, ...] = (1e-2, 2e-3)
    """Temperatures of the smoothed maximum at the root, relative to the incumbent's value."""
    cluster_steps: int = 60
    """Quasi-Newton steps for each temperature, at most."""
    cluster_steps_at_once: int = 6
    """The same between two looks at the clock."""
    cluster_memory: int = 12
    """Steps that a quasi-Newton direction remembers."""
    cluster_closeness: float = 1e-3
    """A step that gains less than this share of what is missing to the cutoff is the last one."""
    cluster_node_closeness: float = 3e-2
    """The same at nodes, which start from their parent's dual vector."""
    clusters_below: float = 0.6
    """Cluster bounds cost several times as much as others, and take over the tree if they leave
    less than this share of the root's gap."""
    cluster_cubes: float = 10.0
    """Products of p^3 that finding clusters and proving a split over them takes, about."""
    cluster_evaluations: float = 200.0
    """Evaluations of the bound that maximising it at the root takes, about."""
    cluster_node_evaluations: float = 20.0
    """The same at a node."""

    # Enumeration ----------------------------------------------------------------------------

    most_hits: int = 50_000
    """Supports that one enumeration may list: more means that the node has to be branched."""
    worth_fitting: int = 4096
    """Listed supports that are fitted: more take longer than branching."""
    few_hits: int = 32
    """Listed supports that are fitted without another look."""
    per_beginning: float = 0.3e-6
    """Seconds of a scan of triples, whatever its size: arrays are made and scaled."""
    per_first: float = 8e-8
    """Seconds per first feature of triples."""
    per_pair_row: float = 5e-9
    """Seconds per row of pairs: loops start and end, and run over more than the row."""
    per_support: float = 0.13e-9
    """Seconds per support of a scan."""
    per_update: float = 0.2e-9
    """Seconds per multiply-add of an elimination."""
    per_closing: float = 5e-5
    """Seconds of Python around one enumeration."""
    per_last: float = 1e-7
    """Seconds per feature, and feature inside, to try one more feature without any products."""
    most_free: int = 10_000
    """Free features up to which their products are formed: more would take gigabytes."""
    piece_seconds: float = 0.05
    """Work between two looks at the clock that is aimed at."""
    longest_piece: float = 0.5
    """The same, at most: a shorter scan is one piece for each thread."""

    # Enumeration on a device ----------------------------------------------------------------

    per_device_support: float = 3.4e-13
    """Seconds per support that a large device scans."""
    per_device_row: float = 1e-11
    """Seconds per row of pairs: tiles are as wide as 32 columns, at least."""
    per_device_first: float = 8e-10
    """Seconds per first feature of triples: what a block prepares."""
    per_device_beginning: float = 6e-9
    """Seconds per prefix, and feature in it: it is eliminated for itself."""
    per_device_node: float = 3e-4
    """Seconds around one node: its matrix is conditioned and sent, what is left is looked at."""
    device_threads: float = 16.0
    """Threads beside a device: a second of it costs as many model seconds, those of a thread."""
    device_close: float = 0.0
    """Model seconds up to which a device always closes a node."""
    device_bounds: float = 240.0
    """The same in bounds: threads would have more nodes to bound meanwhile."""
    device_batch: float = 0.32
    """Model seconds of nodes that go to a device together: it has many to work on at a time."""
    device_questions: int = 4
    """Times that a device is asked before the first answer is needed: it should never idle."""
    device_lag: float = 1.0
    """Model seconds of units for each that a device was asked for, before its answer is needed."""
    device_units: float = 4.0
    """Times as much work in a unit beside a device."""

    # Units of work --------------------------------------------------------------------------

    units_from: int = 40
    """Nodes of a tree from which on subtrees are units. A smaller tree gains some milliseconds by
    them at most, and the first one would wait for their loops, which take longest to compile."""
    units_in_flight: int = 64
    """Units that are explored at a time: enough for many threads, few that miss a better model."""
    flight_share: float = 0.25
    """The same, as a share of the units that are done: a large tree has room for many workers."""
    units_here: int = 16
    """Units that are explored before a cluster is asked: a small tree is done by then."""
    cluster_unit: float = 0.01
    """Seconds of a unit, for a start: they are measured as soon as there are some."""
    call_seconds: float = 1.0
    """Seconds of units that go to a worker of a cluster together: far more than the way there."""
    calls_per_thread: float = 2.0
    """Calls that a thread of a cluster has at hand: one in work, another on its way."""
    cluster_scan: float = 3.0
    """Model seconds of an enumeration that is cut into calls for a cluster."""
    unit_nodes: int = 300
    """Nodes of a unit, at most: about what its own charges cost, and some tens of milliseconds."""
    first_unit_nodes: int = 32
    """Nodes of a unit while the tree is small: then there are soon many of them."""
    weakest_first_below: float = 0.9
    """Share of the cutoff that is proven, up to which a unit of a large form branches its weakest
    nodes first: a tree that is far from closed is to have the best bound it can get."""
    unit_multiplies: float = 5e7
    """Multiplications of a unit, at most, where nodes are costly: some milliseconds."""
    unit_beginnings: float = 4.0
    """The same, in what it takes to prepare the matrix of a unit: large ones may take longer."""
    unit_close: float = 1e-3
    """Model seconds up to which a unit always closes a node by enumeration."""
    unit_close_bounds: float = 12.0
    """The same in bounds: subtrees that are closed so would have as many nodes, about."""
    whole_from: int = 1500
    """Features from which on units in a box share one matrix: copies take longer than bounds."""
    inside_share: float = 0.01
    """Charge of features that are IN in a split of a unit's own, over the smallest eigenvalue."""
    per_own_multiply: float = 1e-10
    """Seconds per multiplication of an interior-point ascent."""
    per_unit_multiply: float = 2e-10
    """Seconds per multiplication of a bound in a unit, with what loops cost besides."""
    per_unit_entry: float = 1e-8
    """Seconds per entry of the matrix that a unit is about, to prepare it."""
    per_unit_node: float = 5e-6
    """Seconds of a unit around one node."""
    own_features: int = 160
    """Free features up to which a subtree has charges of its own: an ascent takes m^3. Larger ones
    share a diagonal that improves step by step."""
    root_features: int = 600
    """Features up to which the charges that large subtrees share begin with the root's best."""
    own_from: float = 0.2
    """Share of what is missing to the cutoff that charges of a unit's own have to gain: features
    are fixed less often by them."""
    own_share: float = 1.0
    """Model seconds that ascents may cost for each one of exploring."""
    own_always: float = 0.02
    """Model seconds of an ascent that the first unit may cost at once."""

    # The tree -------------------------------------------------------------------------------

    per_multiply: float = 2e-10
    """Seconds per multiply-add of a bound."""
    per_node: float = 1e-4
    """Seconds of Python around one node."""
    per_cube: float = 3e-11
    """Seconds per multiply-add of a factorisation."""
    close_below: float = 5.0
    """A node is closed by enumeration if that costs no more than this many bounds."""
    close_always: float = 1e-3
    """Model seconds that an enumeration may always cost: less than a bound and what it takes to
    prepare the root for one."""
    units_per_node: float = 2.0
    """Units that an open node is likely to take, where it is asked whether to close all of them."""
    preparing_counts: float = 0.2
    """How much a second spent on matrices allows for closing everything, beside one on nodes."""
    batch_seconds: float = 1.0
    """Model seconds of a batch of nodes, at most: limits are looked at between batches."""
    batch_entries: int = 32_000
    """Nodes times features of a batch: what stays in cache."""
    hope: float = 0.75
    """Share of the incumbent's value, proven at the root, above which a diagonal usually does."""
    shrink_below: float = 0.75
    """Share of the features left, at which the search starts again on those alone."""
    first_model_seconds: float = 1.0
    """Seconds that a first model may take whatever the limit: nearly always it takes much less."""
    beam_entries: float = 5e6
    """Numbers that a beam search may keep: wider beams find no more on large problems."""

    # Choices of groups ----------------------------------------------------------------------

    choice_batch: int = 32
    """Nodes branched together: enough for threads, few enough to stay close to best-first."""
    choice_cheap: float = 2e4
    """Multiplications for which a node is tried out before it is bounded: what a bound costs."""
    choice_dear: float = 4e5
    """Multiplications for which it is tried out afterwards: what bounds of its subtree cost."""
    choice_scans: float = 10.0
    """Times as many for scans, which try supports of single features as if there were no rules."""
    choice_largest: int = 160
    """Coordinates of a subtree that may get charges of its own: an ascent takes many cubes."""

    # Many searches --------------------------------------------------------------------------

    box_factor: float = 1.5
    """An automatic box reaches this many times as far as the first model's largest coefficient."""
    share_least: float = 0.2
    """Model seconds of an enumeration that is worth sharing between penalties."""
    share_most: float = 600.0
    """The most model seconds for it, without a time limit."""
    share_hits: int = 300_000
    """Supports listed for all penalties; each judges them by its own value before fitting any."""
    share_close: float = 1.05
    """Penalties share an enumeration if their objectives differ by no more than this factor."""
    share_useless: float = 0.02
    """Bounds are useless if the root proves less than this share of the best objective known."""
    fold_cancellation: float = 100.0
    """Lost accuracy at which the rows outside a fold are summed up afresh instead of subtracted."""


_current = Tuning()


def tuning() -> Tuning:
    """The constants in use."""
    return _current


@contextmanager
def tuned(**changes: Any) -> Iterator[Tuning]:
    """Other constants inside the block, for all threads: to measure them, or to force rare paths.

    Not for users: kernels, costs and choices were measured together.
    """
    global _current
    before = _current
    _current = replace(before, **changes)
    try:
        yield _current
    finally:
        _current = before
