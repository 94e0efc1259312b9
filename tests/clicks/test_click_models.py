"""Click models against oracles in plain Python."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.clicks.chains import Chain, ChainEvidence
from rankgrove.clicks.em import climb
from rankgrove.clicks.learned import PseudoCounts
from rankgrove.clicks.products import ProductEvidence
from rankgrove.clicks.user_browsing import browsing_cells
from tests.reference import clicks as reference

MODELS = {
    "position-based": rg.PositionBased(),
    "cascade": rg.Cascade(),
    "dependent-click": rg.DependentClick(),
    "user-browsing": rg.UserBrowsing(),
    "simplified-dbn": rg.SimplifiedDBN(method="em"),
    "dbn": rg.DBN(),
}
ALL = [
    *MODELS.values(),
    rg.SimplifiedDBN(),
    rg.DependentClick(method="closed_form"),
    rg.ClickThroughRate(),
    rg.ClicksOverExpected(),
]


@pytest.fixture(scope="module")
def log():
    """Lists of one to five documents of four queries, some of them with several clicks."""
    rng = np.random.default_rng(3)
    rows = []
    for s in range(80):
        query = int(rng.integers(4))
        documents = rng.permutation(6)[: 1 + (s % 5)]
        for position, document in enumerate(documents, 1):
            rows.append((s, query, document, position, rng.random() < 0.2 + 0.1 * document))
    return rg.ClickLog(*map(list, zip(*rows, strict=True)))


def pseudo(n, hits, misses):
    return PseudoCounts(np.full(n, hits), np.full(n, misses))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_position_based_steps(log, n_threads):
    cell = log.position.astype(np.int64) - 1
    evidence = ProductEvidence(log, cell, 5, n_threads)
    reached, _ = evidence.learn(
        evidence.weighted(np.ones(log.n_sessions)),
        pseudo(log.n_pairs, 0.7, 1.1),
        (np.full(log.n_pairs, 0.5), np.full(5, 0.5)),
        fixed=np.zeros(5, bool),
        cell_strength=0.5,
        max_iterations=7,
        tolerance=0,
        accelerate=False,
    )
    attraction, examination = reference.product_em(
        reference.sessions_of(log), lambda session, i: session[i][1] - 1, 7, 0.7, 1.1, 0.5
    )
    np.testing.assert_allclose(
        reached.parameters[0], [attraction[p] for p in range(log.n_pairs)], rtol=1e-12
    )
    np.testing.assert_allclose(
        reached.parameters[1], [examination[c] for c in range(5)], rtol=1e-12
    )


def test_user_browsing_steps(log):
    cell = browsing_cells(log, 5, None)
    evidence = ProductEvidence(log, cell, 30, None)
    fixed = np.zeros(30, bool)
    fixed[0] = True
    start = np.where(fixed, 1.0, 0.5)
    reached, _ = evidence.learn(
        evidence.weighted(np.ones(log.n_sessions)),
        pseudo(log.n_pairs, 1.0, 1.0),
        (np.full(log.n_pairs, 0.5), start),
        fixed=fixed,
        cell_strength=2.0,
        max_iterations=5,
        tolerance=0,
        accelerate=False,
    )

    def cell_of(session, i):
        return (session[i][1] - 1) * 6 + reference.distance_above(session, i)

    attraction, examination = reference.product_em(
        reference.sessions_of(log), cell_of, 5, 1.0, 1.0, 2.0, fixed=(0,)
    )
    np.testing.assert_allclose(
        reached.parameters[0], [attraction[p] for p in range(log.n_pairs)], rtol=1e-12
    )
    seen = np.unique(cell)
    np.testing.assert_allclose(
        reached.parameters[1][seen], [examination[c] for c in seen], rtol=1e-12
    )


def random_chain(log, by_position, going):
    rng = np.random.default_rng(5)
    n = log.n_positions if by_position else log.n_pairs
    return Chain(rng.uniform(0.1, 0.9, log.n_pairs), rng.uniform(0.1, 0.9, n), np.array([going]))


@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.parametrize("going", [1.0, 0.7])
def test_chain_step(log, by_position, going):
    chain = random_chain(log, by_position, going)
    evidence = ChainEvidence(log, by_position, 2)
    none, no_stop = pseudo(log.n_pairs, 0.0, 0.0), pseudo(chain.stop.size, 0.0, 0.0)
    reached, sums, stops = evidence.learn(
        np.ones(log.n_sessions),
        none,
        no_stop,
        chain,
        going_fixed=False,
        max_iterations=1,
        tolerance=0,
    )
    key = (lambda pair, position: position - 1) if by_position else (lambda pair, position: pair)
    a_sums, s_sums, on, total = reference.chain_step(
        reference.sessions_of(log), chain.attraction, chain.stop, going, key
    )
    np.testing.assert_allclose(sums.T, [a_sums[p] for p in range(log.n_pairs)], rtol=1e-9)
    np.testing.assert_allclose(
        stops.T, [s_sums[k] for k in range(chain.stop.size)], rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(reached.parameters[2], on[0] / on[1], rtol=1e-9)
    np.testing.assert_allclose(reached.history[0], total, rtol=1e-12)


def test_closed_forms(log):
    sessions = reference.sessions_of(log)
    sums = reference.closed_form(sessions)
    pairs = range(log.n_pairs)

    def share(top, bottom, keys, otherwise=0.5):
        return [top[k] / bottom[k] if bottom[k] else otherwise for k in keys]

    model = rg.SimplifiedDBN(prior_strength=0).fit(log)
    np.testing.assert_allclose(model.attractiveness_, share(sums["clicks"], sums["seen"], pairs))
    np.testing.assert_allclose(model.satisfaction_, share(sums["last"], sums["clicked"], pairs))
    np.testing.assert_array_equal(model.relevance_, model.attractiveness_ * model.satisfaction_)
    model = rg.DependentClick(method="closed_form", prior_strength=0).fit(log)
    np.testing.assert_allclose(model.attractiveness_, share(sums["clicks"], sums["seen"], pairs))
    stops = [(sums["last_at"][k] + 1) / (sums["clicked_at"][k] + 2) for k in range(1, 6)]
    np.testing.assert_allclose(model.continuation_, 1 - np.array(stops))
    first = reference.closed_form(sessions, to_first=True)
    model = rg.Cascade(prior_strength=0).fit(log)
    np.testing.assert_allclose(model.attractiveness_, share(first["clicks"], first["seen"], pairs))


def likelihood_of(model):
    """Return a function of a session, its probability by the definition of a fitted model."""
    attraction = model.attractiveness_

    def product(session):
        p = 1.0
        for i, (pair, position, click) in enumerate(session):
            e = (
                model.examination_[position - 1, reference.distance_above(session, i)]
                if isinstance(model, rg.UserBrowsing)
                else model.examination_[position - 1]
            )
            p *= attraction[pair] * e if click else 1 - attraction[pair] * e
        return p

    def chain(session):
        satisfied = isinstance(model, rg.SimplifiedDBN | rg.DBN)
        if satisfied:
            stop = model.satisfaction_
        elif isinstance(model, rg.DependentClick):
            stop = 1 - model.continuation_
        else:
            stop = np.ones(10)
        key = (lambda pair, _: pair) if satisfied else (lambda _, position: position - 1)
        going = model.continuation_ if isinstance(model, rg.DBN) else 1.0
        return sum(
            reference.chain_probability(session, way, attraction, stop, going, key)
            for way in reference.histories(session)
        )

    return product if isinstance(model, rg.PositionBased | rg.UserBrowsing) else chain


@pytest.mark.parametrize("name", MODELS)
def test_click_probabilities(log, name):
    model = MODELS[name].fit(log)
    likelihood = likelihood_of(model)
    some = log.select(np.arange(40))
    sessions = reference.sessions_of(some)
    for conditional, ours in [
        (False, model.click_probabilities(some)),
        (True, model.conditional_click_probabilities(some)),
    ]:
        possible = [s for s in sessions if likelihood(s) > 0]  # a cascade has no second click
        expected = [reference.click_probabilities(s, likelihood, conditional) for s in possible]
        where = np.repeat([likelihood(s) > 0 for s in sessions], [len(s) for s in sessions])
        np.testing.assert_allclose(ours[where], np.concatenate(expected), rtol=1e-9, atol=1e-12)
    if name != "cascade":
        expected_total = sum(math.log(likelihood(s)) for s in sessions)
        assert model.log_likelihood(some) == pytest.approx(expected_total, abs=1e-4)


def enumerated_examination(session, attraction, stop, going, key):
    ways = list(reference.histories(session))
    p = [reference.chain_probability(session, way, attraction, stop, going, key) for way in ways]
    return [
        sum(q for (examined, _), q in zip(ways, p, strict=True) if examined > i) / sum(p)
        for i in range(len(session))
    ]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("name", ["dependent-click", "simplified-dbn", "dbn"])
def test_examination_given_all_clicks_of_chains(log, name, n_threads):
    model = pickle.loads(pickle.dumps(MODELS[name]))
    model.n_threads = n_threads
    model.fit(log)
    by_position = name == "dependent-click"
    if not by_position:
        model.satisfaction_ = np.linspace(0.1, 0.6, log.n_pairs)
    if name == "dbn":
        model.continuation_ = 0.7
    stop = 1 - model.continuation_ if by_position else model.satisfaction_
    going = model.continuation_ if name == "dbn" else 1.0
    if by_position:

        def key(pair, position):
            return position - 1
    else:

        def key(pair, position):
            return pair

    expected = [
        value
        for session in reference.sessions_of(log)
        for value in enumerated_examination(session, model.attractiveness_, stop, going, key)
    ]
    np.testing.assert_allclose(model.examination_probabilities(log), expected, rtol=1e-10)
    assert min(expected) < 0.9


def test_examination_of_positions_follows_bayes(log):
    model = rg.PositionBased().fit(log)
    a = model.attractiveness_[log.pair]
    e = model.examination_[log.position.astype(int) - 1]
    expected = np.where(log.click, 1.0, e * (1 - a) / (1 - e * a))
    np.testing.assert_allclose(model.examination_probabilities(log), expected, rtol=1e-12)
    browsing = rg.UserBrowsing().fit(log)
    a = browsing.attractiveness_[log.pair]
    e = browsing.examination_.ravel()[browsing_cells(log, browsing.examination_.shape[0], 1)]
    expected = np.where(log.click, 1.0, e * (1 - a) / (1 - e * a))
    np.testing.assert_allclose(browsing.examination_probabilities(log), expected, rtol=1e-12)


def test_examination_of_models_without_guesses(log):
    assert (rg.ClickThroughRate().fit(log).examination_probabilities(log) == 1.0).all()
    once = rg.ClickLog([1, 1, 1, 2, 2, 2], ["a"] * 6, list("xyzxyz"), [1, 2, 3] * 2,
                       [0, 1, 0, 0, 0, 0])  # fmt: skip
    seen = rg.Cascade().fit(once).examination_probabilities(once)
    np.testing.assert_allclose(seen, [1, 1, 0, 1, 1, 1], atol=1e-9)


def test_perplexity_by_hand():
    log = rg.ClickLog([1, 1, 2, 2], ["a"] * 4, ["x", "y", "x", "y"], [1, 2, 1, 2], [1, 0, 0, 0])
    model = rg.ClickThroughRate(prior_strength=2).fit(log, prior=0.25)
    # x: (1 + 0.5) / 4, y: 0.5 / 4
    p = model.perplexity(log)
    np.testing.assert_allclose(p.by_position, [(0.375 * 0.625) ** -0.5, 1 / 0.875], rtol=1e-12)
    assert p.value == pytest.approx(p.by_position.mean())
    assert p.impressions.tolist() == [2, 2]
    assert model.log_likelihood(log) == pytest.approx(math.log(0.375 * 0.625 * 0.875**2))


@pytest.mark.parametrize("name", MODELS)
def test_likelihood_never_falls(log, name):
    steps = np.diff(MODELS[name].fit(log).history_)
    assert (steps > -1e-9).all()
    if name != "cascade":
        assert steps.size


def test_acceleration_ends_where_plain_steps_end(log):
    cell = log.position.astype(np.int64) - 1
    evidence = ProductEvidence(log, cell, 5, None)
    fixed = np.arange(5) == 0
    begin = (np.full(log.n_pairs, 0.5), np.where(fixed, 1.0, 0.5))
    ends = {}
    for accelerate in (True, False):
        ends[accelerate], _ = evidence.learn(
            evidence.weighted(np.ones(log.n_sessions)),
            pseudo(log.n_pairs, 1.0, 1.0),
            begin,
            fixed=fixed,
            cell_strength=1.0,
            max_iterations=20_000,
            tolerance=1e-10,
            accelerate=accelerate,
        )
    for ours, plain in zip(ends[True].parameters, ends[False].parameters, strict=True):
        np.testing.assert_allclose(ours, plain, atol=1e-6)
    assert ends[True].n_iterations < ends[False].n_iterations


def test_climb_refuses_a_step_down():
    """Where an extrapolation lowers the objective, the plain steps are kept."""

    def step(parameters):
        (x,) = parameters
        value = -abs(float(x[0]) - 0.5)
        return [x + 0.1 * np.sign(0.5 - x) * np.minimum(1, abs(0.5 - x) / 0.2)], value

    reached = climb(step, [np.array([0.1])], weights=(None,), max_iterations=99, tolerance=1e-9)
    assert reached.converged
    assert (np.diff(reached.history) >= 0).all()
    np.testing.assert_allclose(reached.parameters[0], 0.5, atol=1e-8)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_threads_and_repeats(log, model):
    fits = []
    for n_threads in (1, 2, None):
        model.n_threads = n_threads
        model.fit(log)
        intervals = model.intervals(log, n=3)
        fits.append(
            [model.attractiveness_, model.click_probabilities(log), *intervals.low.values()]
        )
    for fit in fits[1:]:
        for a, b in zip(fits[0], fit, strict=True):
            np.testing.assert_array_equal(a, b)


def test_prior(log):
    strong = rg.ClickThroughRate(prior_strength=1e9).fit(log, prior=0.3)
    np.testing.assert_allclose(strong.attractiveness_, 0.3, rtol=1e-6)
    means = np.linspace(0.1, 0.9, log.n_pairs)
    strong = rg.PositionBased(prior_strength=1e9).fit(log, prior=means)
    np.testing.assert_allclose(strong.attractiveness_, means, rtol=1e-6)
    assert strong.prior_strength_ == 1e9
    # a prior that is right makes rates of few impressions better
    free = rg.ClickThroughRate(prior_strength=0).fit(log).attractiveness_
    assert ((free == 0) | (free == 1)).any()
    shrunk = rg.ClickThroughRate().fit(log).attractiveness_
    assert ((shrunk > 0) & (shrunk < 1)).all()


def test_strength_is_estimated():
    """Rates from a beta distribution of strength 8 and mean 0.25."""
    rng = np.random.default_rng(0)
    rate = rng.beta(2, 6, 3000)
    clicks = rng.random((3000, 5)) < rate[:, None]
    document = np.repeat(np.arange(3000), 5)
    session = np.arange(15_000)
    log = rg.ClickLog(
        session, np.zeros(15_000, int), document, np.ones(15_000, int), clicks.ravel()
    )
    model = rg.ClickThroughRate().fit(log)
    assert model.prior_mean_ == pytest.approx(0.25, abs=0.02)
    assert model.prior_strength_ == pytest.approx(8, rel=0.25)


def test_other_logs(log):
    model = rg.DBN().fit(log)
    other = rg.ClickLog([1, 1, 1], ["3", "3", "9"], ["5", "77", "5"], [1, 2, 1], [1, 0, 0])
    ours = model.attractiveness(other)
    known = np.flatnonzero(
        (log.query_ids[log.pair_query] == 3) & (log.document_ids[log.pair_document] == 5)
    )
    where = {
        (other.query_ids[q], other.document_ids[d]): value
        for q, d, value in zip(other.pair_query, other.pair_document, ours, strict=True)
    }
    assert where["3", "5"] == model.attractiveness_[known[0]]
    assert where["3", "77"] == where["9", "5"] == pytest.approx(model.prior_mean_)
    assert model.click_probabilities(other).size == 3
    for other_model in ALL:  # positions that were never seen
        far = rg.ClickLog([1, 1], [3, 3], [5, 4], [2, 4000], [1, 0])
        assert np.isfinite(other_model.fit(log).conditional_click_probabilities(far)).all()


def test_contexts():
    data = rg.make_web(20, seed=1)
    log, truth = rg.simulate_clicks(
        data,
        data.column(1),
        noise=1.0,
        sessions=60_000,
        contexts={"device": {"phone": (2.0, 0.4), "desktop": (0.5, 0.6)}},
        return_truth=True,
    )
    model = rg.PositionBased(context="device").fit(log)
    assert model.context_names_ == ("phone", "desktop")
    np.testing.assert_allclose(model.examination_, truth.examination, atol=0.06)
    assert (model.examination_[:, 0] == 1).all()
    one = rg.PositionBased().fit(log)
    assert model.perplexity(log).value < one.perplexity(log).value
    tablet = rg.ClickLog([1], ["a"], ["x"], [1], [0], context={"device": ["tablet"]})
    assert model.click_probabilities(tablet)[0] == pytest.approx(model.prior_mean_)
    with pytest.raises(rg.DataError, match=r"needs the context 'browser'; .* has 'device'"):
        rg.PositionBased(context="browser").fit(log)


def test_messages(log):
    with pytest.raises(rg.ParameterError, match=r"prior_strength.*at least 0. Got -1"):
        rg.Cascade(prior_strength=-1)
    with pytest.raises(rg.ParameterError, match="closed_form"):
        rg.DependentClick(method="closed")
    with pytest.raises(rg.ParameterError, match=r"prior.*above 0 and below 1"):
        rg.Cascade().fit(log, prior=1.0)
    with pytest.raises(rg.DataError, match="one per pair"):
        rg.Cascade().fit(log, prior=[0.5, 0.5])
    with pytest.raises(AttributeError, match="call fit first"):
        rg.Cascade().attractiveness_  # noqa: B018
    with pytest.raises(AttributeError, match="call fit first"):
        rg.Cascade().perplexity(log)
    with pytest.raises(rg.ParameterError, match="call fit first"):
        rg.Cascade().intervals(log)
    with pytest.raises(rg.DataError, match=r"no impressions|at least one session"):
        rg.Cascade().fit(log.select([]))
    assert repr(rg.Cascade()) == "Cascade(prior_strength=None, n_threads=None)"


@pytest.mark.parametrize("model", ALL, ids=repr)
@pytest.mark.parametrize("clicks", [[0, 0, 0], [1, 1, 1], [0, 1, 0]])
def test_logs_that_say_little(model, clicks):
    """One session; position 1 is missing; no click, or clicks only."""
    tiny = rg.ClickLog([1, 1, 1], ["a"] * 3, ["x", "y", "z"], [3, 7, 9], clicks)
    model.fit(tiny)
    for values in (model.attractiveness_, model.click_probabilities(tiny)):
        assert ((values >= 0) & (values <= 1)).all()
    assert model.perplexity(tiny).value < 1e7
    intervals = model.intervals(tiny, n=5)
    assert (intervals.low["attractiveness"] <= intervals.high["attractiveness"]).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.attractiveness_, model.attractiveness_)
