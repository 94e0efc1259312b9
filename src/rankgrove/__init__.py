"""rankgrove: learning to rank.

Public names are loaded when they are first used, so that ``import rankgrove`` stays quick.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rankgrove._version import __version__

# Public name -> the module that defines it.
_HOME = {
    "ClusterError": "errors",
    "DataError": "errors",
    "DataWarning": "errors",
    "MissingExtraError": "errors",
    "MissingFileError": "errors",
    "ModelFileError": "errors",
    "ParameterError": "errors",
    "ParseError": "errors",
    "RankgroveError": "errors",
    "UnknownParameterError": "errors",
    "QueryDataset": "data.queries",
    "read_letor": "data.letor",
    "BinnedDataset": "data.binned_dataset",
    "CalibratedRanker": "rankers.ensembles.calibrated",
    "Relevance": "rankers.ensembles.relevance",
    "Reliability": "evaluation.reliability",
    "calibrate": "rankers.ensembles.calibrated",
    "EarlyExitRanker": "rankers.ensembles.early_exit",
    "ExitCertificate": "rankers.ensembles.early_exit",
    "ClickLog": "clicks.log",
    "ClickSummary": "clicks.summary",
    "read_clicks": "clicks.reading",
    "read_ubi": "clicks.ubi",
    "ClickCheck": "clicks.check",
    "check_clicks": "clicks.check",
    "ClickJudgements": "clicks.judgements",
    "judgements": "clicks.judgements",
    "ClickModelChoice": "clicks.choosing",
    "choose_click_model": "clicks.choosing",
    "click_prior": "operations.click_prior",
    "smoothed_judgements": "operations.click_prior",
    "click_data": "clicks.training_data",
    "ModelIntervals": "clicks.bootstrap",
    "Perplexity": "clicks.perplexity",
    "Cascade": "clicks.cascade",
    "ClickThroughRate": "clicks.rates",
    "ClickTruth": "clicks.simulate",
    "ClicksOverExpected": "clicks.rates",
    "DBN": "clicks.dbn",
    "DependentClick": "clicks.dependent_click",
    "PositionBased": "clicks.position_based",
    "SimplifiedDBN": "clicks.dbn",
    "UserBrowsing": "clicks.user_browsing",
    "simulate_clicks": "clicks.simulate",
    "open_binned": "rankers.trees.open_binned",
    "write_letor": "data.letor",
    "Qrels": "data.trec",
    "Run": "data.trec",
    "dataset_from_runs": "data.trec",
    "read_qrels": "data.trec",
    "read_run": "data.trec",
    "write_run": "data.trec",
    "FeatureLog": "parity.log",
    "read_feature_log": "parity.reading",
    "Parity": "parity.result",
    "parity": "parity.compare",
    "JoinedLog": "parity.join",
    "join_log": "parity.join",
    "read_table": "data.tabular",
    "hold_out": "data.folds",
    "k_fold": "data.folds",
    "letor_folds": "data.folds",
    "random_trials": "data.folds",
    "make_artificial": "data.synthetic",
    "make_domains": "data.synthetic",
    "make_web": "data.synthetic",
    "Measure": "measures.base",
    "measure": "measures.parse",
    "register_measure": "measures.custom",
    "Evaluation": "evaluation.evaluate",
    "evaluate": "evaluation.evaluate",
    "agreement": "evaluation.agreement",
    "Comparison": "evaluation.compare",
    "Comparisons": "evaluation.compare",
    "compare": "evaluation.compare",
    "Interleaved": "evaluation.interleaving",
    "interleave": "evaluation.interleaving",
    "InterleavingAnalysis": "evaluation.interleaving_analysis",
    "analyse_interleaving": "evaluation.interleaving_analysis",
    "LogEstimate": "evaluation.log_estimate",
    "estimate_from_log": "evaluation.off_policy",
    "queries_needed": "evaluation.power",
    "QueryKFold": "operations.query_k_fold",
    "RankedDocuments": "operations.ranking",
    "rank": "operations.ranking",
    "LambdaMART": "rankers.trees.lambdamart",
    "MART": "rankers.trees.mart",
    "AutoRanker": "rankers.auto.auto",
    "BaggedRanker": "rankers.ensembles.bagged",
    "McRank": "rankers.trees.mcrank",
    "AdaRank": "rankers.linear.adarank",
    "FRank": "rankers.trees.frank",
    "GBRank": "rankers.trees.gbrank",
    "RandomForest": "rankers.trees.forest",
    "RankBoost": "rankers.trees.rankboost",
    "CombinedRanker": "rankers.ensembles.combination",
    "Interpolation": "operations.combining",
    "OptimalCombination": "operations.combining",
    "RefinedWeights": "operations.refining",
    "interpolate": "operations.combining",
    "optimal_combination": "operations.combining",
    "refine_weights": "operations.refining",
    "LambdaRank": "rankers.nets.lambda_nets",
    "RankNet": "rankers.nets.lambda_nets",
    "ListNet": "rankers.nets.listnet",
    "BoltzRank": "rankers.nets.boltzrank",
    "StackedRanker": "rankers.ensembles.stacking",
    "LocalOptimum": "nets.local_optimum",
    "check_local_optimum": "operations.optimality",
    "GradientCheck": "objectives.gradient_check",
    "is_gradient": "objectives.gradient_check",
    "StructuralSVM": "rankers.linear.structural_svm",
    "SVMMap": "rankers.linear.structural_svm",
    "SVMMrr": "rankers.linear.structural_svm",
    "SVMNdcg": "rankers.linear.structural_svm",
    "SVMRoc": "rankers.linear.structural_svm",
    "SVMAcc": "rankers.linear.svm_acc",
    "RankSVM": "rankers.linear.rank_svm",
    "CoordinateAscent": "rankers.linear.coordinate_ascent",
    "SmoothRank": "rankers.linear.smooth_rank",
    "CRR": "rankers.linear.crr",
    "ThresholdFeatures": "operations.threshold_features",
    "Trada": "rankers.trees.trada",
    "AdaptationReport": "adapt.adaptation_report",
    "adapt_with": "operations.adapting",
    "combined_data": "operations.adapting",
    "statistics_from_data": "operations.adapting",
    "load": "rankers.load",
    "TreeRanker": "rankers.foreign_models",
    "WeightRanker": "rankers.foreign_models",
    "convert": "operations.convert",
    "Report": "reporting.make",
    "report": "reporting.make",
    "PreparedRanker": "rankers.ensembles.prepared",
    "PrunedRanker": "operations.pruning",
    "prune": "operations.pruning",
    "Tuning": "tuning.tuning_result",
    "tune": "tuning.tune",
    "CrossValidation": "tuning.cross_validation",
    "cross_validate": "tuning.cross_validation",
    "Survey": "tuning.survey",
    "survey": "tuning.survey",
    "Variance": "tuning.variance",
    "variance_analysis": "tuning.variance",
    "Explanation": "explaining.explanation",
    "explain": "explaining.explain",
    "PartialDependence": "explaining.partial_dependence",
    "partial_dependence": "explaining.partial_dependence",
}

# Modules with a public name of their own.
_MODULES = {
    "mlflow": "mlflow",
    "plot": "reporting.plots",
    "pyterrier": "pyterrier",
    "torch": "nets.torch_bridge",
}

__all__ = ["__version__", *sorted([*_HOME, *_MODULES])]

if TYPE_CHECKING:
    from rankgrove import mlflow as mlflow
    from rankgrove import pyterrier as pyterrier
    from rankgrove.adapt.adaptation_report import AdaptationReport as AdaptationReport
    from rankgrove.clicks.bootstrap import ModelIntervals as ModelIntervals
    from rankgrove.clicks.cascade import Cascade as Cascade
    from rankgrove.clicks.check import ClickCheck as ClickCheck
    from rankgrove.clicks.check import check_clicks as check_clicks
    from rankgrove.clicks.choosing import ClickModelChoice as ClickModelChoice
    from rankgrove.clicks.choosing import choose_click_model as choose_click_model
    from rankgrove.clicks.dbn import DBN as DBN
    from rankgrove.clicks.dbn import SimplifiedDBN as SimplifiedDBN
    from rankgrove.clicks.dependent_click import DependentClick as DependentClick
    from rankgrove.clicks.judgements import ClickJudgements as ClickJudgements
    from rankgrove.clicks.judgements import judgements as judgements
    from rankgrove.clicks.log import ClickLog as ClickLog
    from rankgrove.clicks.perplexity import Perplexity as Perplexity
    from rankgrove.clicks.position_based import PositionBased as PositionBased
    from rankgrove.clicks.rates import ClicksOverExpected as ClicksOverExpected
    from rankgrove.clicks.rates import ClickThroughRate as ClickThroughRate
    from rankgrove.clicks.reading import read_clicks as read_clicks
    from rankgrove.clicks.simulate import ClickTruth as ClickTruth
    from rankgrove.clicks.simulate import simulate_clicks as simulate_clicks
    from rankgrove.clicks.summary import ClickSummary as ClickSummary
    from rankgrove.clicks.training_data import click_data as click_data
    from rankgrove.clicks.ubi import read_ubi as read_ubi
    from rankgrove.clicks.user_browsing import UserBrowsing as UserBrowsing
    from rankgrove.data.binned_dataset import BinnedDataset as BinnedDataset
    from rankgrove.data.folds import hold_out as hold_out
    from rankgrove.data.folds import k_fold as k_fold
    from rankgrove.data.folds import letor_folds as letor_folds
    from rankgrove.data.folds import random_trials as random_trials
    from rankgrove.data.letor import read_letor as read_letor
    from rankgrove.data.letor import write_letor as write_letor
    from rankgrove.data.queries import QueryDataset as QueryDataset
    from rankgrove.data.synthetic import make_artificial as make_artificial
    from rankgrove.data.synthetic import make_domains as make_domains
    from rankgrove.data.synthetic import make_web as make_web
    from rankgrove.data.tabular import read_table as read_table
    from rankgrove.data.trec import Qrels as Qrels
    from rankgrove.data.trec import Run as Run
    from rankgrove.data.trec import dataset_from_runs as dataset_from_runs
    from rankgrove.data.trec import read_qrels as read_qrels
    from rankgrove.data.trec import read_run as read_run
    from rankgrove.data.trec import write_run as write_run
    from rankgrove.errors import ClusterError as ClusterError
    from rankgrove.errors import DataError as DataError
    from rankgrove.errors import DataWarning as DataWarning
    from rankgrove.errors import MissingExtraError as MissingExtraError
    from rankgrove.errors import MissingFileError as MissingFileError
    from rankgrove.errors import ModelFileError as ModelFileError
    from rankgrove.errors import ParameterError as ParameterError
    from rankgrove.errors import ParseError as ParseError
    from rankgrove.errors import RankgroveError as RankgroveError
    from rankgrove.errors import UnknownParameterError as UnknownParameterError
    from rankgrove.evaluation.agreement import agreement as agreement
    from rankgrove.evaluation.compare import Comparison as Comparison
    from rankgrove.evaluation.compare import Comparisons as Comparisons
    from rankgrove.evaluation.compare import compare as compare
    from rankgrove.evaluation.evaluate import Evaluation as Evaluation
    from rankgrove.evaluation.evaluate import evaluate as evaluate
    from rankgrove.evaluation.interleaving import Interleaved as Interleaved
    from rankgrove.evaluation.interleaving import interleave as interleave
    from rankgrove.evaluation.interleaving_analysis import (
        InterleavingAnalysis as InterleavingAnalysis,
    )
    from rankgrove.evaluation.interleaving_analysis import (
        analyse_interleaving as analyse_interleaving,
    )
    from rankgrove.evaluation.log_estimate import LogEstimate as LogEstimate
    from rankgrove.evaluation.off_policy import estimate_from_log as estimate_from_log
    from rankgrove.evaluation.power import queries_needed as queries_needed
    from rankgrove.evaluation.reliability import Reliability as Reliability
    from rankgrove.explaining.explain import explain as explain
    from rankgrove.explaining.explanation import Explanation as Explanation
    from rankgrove.explaining.partial_dependence import PartialDependence as PartialDependence
    from rankgrove.explaining.partial_dependence import partial_dependence as partial_dependence
    from rankgrove.measures.base import Measure as Measure
    from rankgrove.measures.custom import register_measure as register_measure
    from rankgrove.measures.parse import measure as measure
    from rankgrove.nets import torch_bridge as torch  # noqa: F401
    from rankgrove.nets.local_optimum import LocalOptimum as LocalOptimum
    from rankgrove.objectives.gradient_check import GradientCheck as GradientCheck
    from rankgrove.objectives.gradient_check import is_gradient as is_gradient
    from rankgrove.operations.adapting import adapt_with as adapt_with
    from rankgrove.operations.adapting import combined_data as combined_data
    from rankgrove.operations.adapting import statistics_from_data as statistics_from_data
    from rankgrove.operations.click_prior import click_prior as click_prior
    from rankgrove.operations.click_prior import smoothed_judgements as smoothed_judgements
    from rankgrove.operations.combining import Interpolation as Interpolation
    from rankgrove.operations.combining import OptimalCombination as OptimalCombination
    from rankgrove.operations.combining import interpolate as interpolate
    from rankgrove.operations.combining import optimal_combination as optimal_combination
    from rankgrove.operations.convert import convert as convert
    from rankgrove.operations.optimality import check_local_optimum as check_local_optimum
    from rankgrove.operations.pruning import PrunedRanker as PrunedRanker
    from rankgrove.operations.pruning import prune as prune
    from rankgrove.operations.query_k_fold import QueryKFold as QueryKFold
    from rankgrove.operations.ranking import RankedDocuments as RankedDocuments
    from rankgrove.operations.ranking import rank as rank
    from rankgrove.operations.refining import RefinedWeights as RefinedWeights
    from rankgrove.operations.refining import refine_weights as refine_weights
    from rankgrove.operations.threshold_features import ThresholdFeatures as ThresholdFeatures
    from rankgrove.parity.compare import parity as parity
    from rankgrove.parity.join import JoinedLog as JoinedLog
    from rankgrove.parity.join import join_log as join_log
    from rankgrove.parity.log import FeatureLog as FeatureLog
    from rankgrove.parity.reading import read_feature_log as read_feature_log
    from rankgrove.parity.result import Parity as Parity
    from rankgrove.rankers.auto.auto import AutoRanker as AutoRanker
    from rankgrove.rankers.ensembles.bagged import BaggedRanker as BaggedRanker
    from rankgrove.rankers.ensembles.calibrated import CalibratedRanker as CalibratedRanker
    from rankgrove.rankers.ensembles.calibrated import calibrate as calibrate
    from rankgrove.rankers.ensembles.combination import CombinedRanker as CombinedRanker
    from rankgrove.rankers.ensembles.early_exit import EarlyExitRanker as EarlyExitRanker
    from rankgrove.rankers.ensembles.early_exit import ExitCertificate as ExitCertificate
    from rankgrove.rankers.ensembles.prepared import PreparedRanker as PreparedRanker
    from rankgrove.rankers.ensembles.relevance import Relevance as Relevance
    from rankgrove.rankers.ensembles.stacking import StackedRanker as StackedRanker
    from rankgrove.rankers.foreign_models import TreeRanker as TreeRanker
    from rankgrove.rankers.foreign_models import WeightRanker as WeightRanker
    from rankgrove.rankers.linear.adarank import AdaRank as AdaRank
    from rankgrove.rankers.linear.coordinate_ascent import CoordinateAscent as CoordinateAscent
    from rankgrove.rankers.linear.crr import CRR as CRR
    from rankgrove.rankers.linear.rank_svm import RankSVM as RankSVM
    from rankgrove.rankers.linear.smooth_rank import SmoothRank as SmoothRank
    from rankgrove.rankers.linear.structural_svm import StructuralSVM as StructuralSVM
    from rankgrove.rankers.linear.structural_svm import SVMMap as SVMMap
    from rankgrove.rankers.linear.structural_svm import SVMMrr as SVMMrr
    from rankgrove.rankers.linear.structural_svm import SVMNdcg as SVMNdcg
    from rankgrove.rankers.linear.structural_svm import SVMRoc as SVMRoc
    from rankgrove.rankers.linear.svm_acc import SVMAcc as SVMAcc
    from rankgrove.rankers.load import load as load
    from rankgrove.rankers.nets.boltzrank import BoltzRank as BoltzRank
    from rankgrove.rankers.nets.lambda_nets import LambdaRank as LambdaRank
    from rankgrove.rankers.nets.lambda_nets import RankNet as RankNet
    from rankgrove.rankers.nets.listnet import ListNet as ListNet
    from rankgrove.rankers.trees.forest import RandomForest as RandomForest
    from rankgrove.rankers.trees.frank import FRank as FRank
    from rankgrove.rankers.trees.gbrank import GBRank as GBRank
    from rankgrove.rankers.trees.lambdamart import LambdaMART as LambdaMART
    from rankgrove.rankers.trees.mart import MART as MART
    from rankgrove.rankers.trees.mcrank import McRank as McRank
    from rankgrove.rankers.trees.open_binned import open_binned as open_binned
    from rankgrove.rankers.trees.rankboost import RankBoost as RankBoost
    from rankgrove.rankers.trees.trada import Trada as Trada
    from rankgrove.reporting import plots as plot  # noqa: F401
    from rankgrove.reporting.make import Report as Report
    from rankgrove.reporting.make import report as report
    from rankgrove.tuning.cross_validation import CrossValidation as CrossValidation
    from rankgrove.tuning.cross_validation import cross_validate as cross_validate
    from rankgrove.tuning.survey import Survey as Survey
    from rankgrove.tuning.survey import survey as survey
    from rankgrove.tuning.tune import tune as tune
    from rankgrove.tuning.tuning_result import Tuning as Tuning
    from rankgrove.tuning.variance import Variance as Variance
    from rankgrove.tuning.variance import variance_analysis as variance_analysis


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = importlib.import_module(f"rankgrove.{_MODULES[name]}")
    elif name in _HOME:
        value = getattr(importlib.import_module(f"rankgrove.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'rankgrove' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """The package, in which the subpackage ``parity`` does not hide the function ``rg.parity``."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
