"""The public surface: exactly these names, all of them loadable, documented, with true examples."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rankgrove as rg

NAMES = """
AdaRank AdaptationReport AutoRanker CalibratedRanker EarlyExitRanker ExitCertificate Relevance
Reliability calibrate BaggedRanker BinnedDataset BoltzRank CRR
ClickCheck ClickJudgements ClickLog ClickModelChoice ClickSummary check_clicks choose_click_model
click_data click_prior judgements read_clicks read_ubi
smoothed_judgements
Cascade ClickThroughRate ClickTruth ClicksOverExpected DBN DependentClick ModelIntervals
Perplexity PositionBased SimplifiedDBN UserBrowsing simulate_clicks
Interleaved InterleavingAnalysis LogEstimate analyse_interleaving estimate_from_log
interleave queries_needed
ClusterError CombinedRanker Comparison Comparisons CoordinateAscent CrossValidation DataError
DataWarning Evaluation Explanation FRank
GBRank GradientCheck Interpolation LambdaMART LambdaRank ListNet LocalOptimum MART McRank Measure
MissingExtraError MissingFileError ModelFileError OptimalCombination ParameterError ParseError
FeatureLog JoinedLog Parity join_log parity read_feature_log
PartialDependence PreparedRanker PrunedRanker Qrels QueryDataset QueryKFold RandomForest RankBoost
RankedDocuments RankNet RankSVM RankgroveError RefinedWeights Report Run SVMAcc SVMMap SVMMrr
SVMNdcg SVMRoc SmoothRank StackedRanker StructuralSVM Survey ThresholdFeatures Trada TreeRanker
Tuning UnknownParameterError Variance WeightRanker __version__ adapt_with agreement
check_local_optimum combined_data compare convert cross_validate dataset_from_runs evaluate
explain hold_out interpolate is_gradient k_fold letor_folds load make_artificial make_domains
make_web measure mlflow open_binned optimal_combination partial_dependence plot prune pyterrier
random_trials rank read_letor read_qrels
read_run read_table refine_weights register_measure report statistics_from_data survey torch tune
variance_analysis write_letor write_run
""".split()


def test_names():
    assert sorted(rg.__all__) == sorted(NAMES)
    assert dir(rg) == sorted(NAMES)
    for name in NAMES:
        value = getattr(rg, name)
        assert name.startswith("__") or value.__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rg.nothing  # noqa: B018


MODULES = [m.name for m in pkgutil.walk_packages(rg.__path__, "rankgrove.")]


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(
        importlib.import_module(module),
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert found.failed == 0
