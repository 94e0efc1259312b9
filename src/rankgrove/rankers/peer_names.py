"""Other libraries' names for parameters, with rankgrove's names for them."""

from __future__ import annotations

from collections.abc import Sequence

from rankgrove.validation import nearest

# Our names -> those of LightGBM, XGBoost, scikit-learn and RankLib.
_WORDS = {
    "n_trees n_rounds n_epochs n_models": "n_estimators num_boost_round num_iterations iterations "
    "num_iteration num_trees num_round num_rounds n_iter n_iterations tree trees round nround",
    "n_epochs n_rounds max_iterations": "epochs epoch max_iter max_epochs",
    "n_leaves": "num_leaves num_leaf max_leaves max_leaf max_leaf_nodes leaf leaves",
    "learning_rate": "eta shrinkage shrinkage_rate lr learning_rate_init",
    "min_leaf": "min_child_samples min_data_in_leaf min_data min_samples_leaf mls "
    "min_child_weight min_sum_hessian_in_leaf",
    "l2": "lambda_l2 reg_lambda lambda l2_regularization",
    "row_fraction sample_fraction": "subsample bagging_fraction bagging sub_row max_samples srate",
    "feature_fraction": "colsample_bytree colsample_bynode colsample_bylevel max_features "
    "sub_feature feature_fraction_bynode frate",
    "max_bins n_thresholds": "max_bin tc",
    "max_depth": "depth",
    "growth": "grow_policy",
    "monotone": "monotone_constraints monotone_constraint mc monotonic_cst",
    "interactions": "interaction_constraints interaction_cst fic",
    "min_gain": "min_split_gain min_gain_to_split gamma min_impurity_decrease",
    "early_stopping": "early_stopping_rounds early_stopping_round n_iter_no_change estop",
    "measure": "metric eval_metric metric2t objective scoring label_gain eval_at",
    "truncation": "lambdarank_truncation_level lambdarank_num_pair_per_sample",
    "normalise": "lambdarank_norm lambdarank_normalization",
    "random_state": "seed random_seed",
    "n_threads": "n_jobs num_threads num_thread nthread thread_count",
    "progress": "verbose verbosity silent",
    "hidden": "hidden_layer_sizes layer node layers",
    "optimiser": "optimizer solver",
    "scaling": "norm normalize normalise standardize",
    "base n_models": "bag estimator base_estimator",
}
_HERE = {word: here.split() for here, words in _WORDS.items() for word in words.split()}


def meant(name: str, known: Sequence[str]) -> str:
    """Return `` (did you mean 'x'?)`` for another library's name or a similar one."""
    for here in _HERE.get(name, []):
        if here in known:
            return f" (did you mean {here!r}?)"
    return nearest(name, known)
