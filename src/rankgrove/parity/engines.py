"""All engines that are emulated, by name; the names are those of ``rg.convert(engine=)``."""

from __future__ import annotations

from rankgrove.parity import elasticsearch_ltr as ltr
from rankgrove.parity import elasticsearch_native
from rankgrove.parity.engine import Engine

_PLUGIN = "o19s/elasticsearch-learning-to-rank"
_OPENSEARCH = "opensearch-project/opensearch-learning-to-rank-base"
_SCORING = "src/main/java/com/o19s/es/ltr/ranker: parser/, dectree/, linear/, normalizer/"
_ELASTIC = "elastic/elasticsearch, x-pack/plugin/core/.../ml/inference/trainedmodel"
_NATIVE = (
    f"{_ELASTIC}/inference/TreeInferenceModel.java at ccac5e899ee8",
    f"{_ELASTIC}/inference/EnsembleInferenceModel.java at 86c9a4625df1",
    f"{_ELASTIC}/ensemble/WeightedSum.java at 08b914215126",
    f"{_ELASTIC}/tree/Tree.java at 430c1dd89414, tree/TreeNode.java at e4d93f3e705a",
    "elastic/elasticsearch, x-pack/plugin/core/.../ml/job/config/Operator.java at 250128fb95a1",
    "elastic/elasticsearch, x-pack/plugin/ml/.../inference/ltr/LearningToRankRescorer.java at "
    "0318f601eb85, QueryFeatureExtractor.java at 83436de3e379",
)


def _plugin(name: str, title: str, rules: ltr.Rules, at: str, form: str = "opensearch") -> Engine:
    repository = _PLUGIN if form == "elasticsearch" else _OPENSEARCH
    return Engine(name, title, form, (f"{repository} at {at}, {_SCORING}",), ltr.reader(rules))


# one entry per line
_ALL = (
    _plugin("elasticsearch-ltr", "the Elasticsearch plugin from 1.5.9 on", ltr.Rules("learned", needs_missing=True), "1dfed572e652 (October 2025)", "elasticsearch"),  # noqa: E501
    _plugin("elasticsearch-ltr-2023", "the Elasticsearch plugin up to 1.5.8", ltr.Rules("zero", ranking_objectives=False), "v1.5.8-es8.9.2", "elasticsearch"),  # noqa: E501
    _plugin("opensearch-3.1", "OpenSearch up to 3.1", ltr.Rules("zero", ranking_objectives=False), "3.1.0.0"),  # noqa: E501
    _plugin("opensearch-3.2", "OpenSearch 3.2 to 3.7", ltr.Rules("right"), "3.2.0.0 and 3.7.0.0"),
    _plugin("opensearch-3.8", "OpenSearch 3.8", ltr.Rules("learned", checks_missing=True), "3.8.0.0"),  # noqa: E501
    _plugin("opensearch-main", "OpenSearch after 3.8", ltr.Rules("learned", checks_missing=True, zero_flag=True), "af2d983f16d8 (August 2026)"),  # noqa: E501
    Engine("elasticsearch-8.12", "Elasticsearch's own learning to rank, from 8.12 on", "elasticsearch-native", _NATIVE, elasticsearch_native.read),  # noqa: E501
)  # fmt: skip
ENGINES: dict[str, Engine] = {engine.name: engine for engine in _ALL}
