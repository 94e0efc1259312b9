"""Model formats of other programs: LightGBM, XGBoost, RankLib, Solr, Elasticsearch, ONNX, source."""
