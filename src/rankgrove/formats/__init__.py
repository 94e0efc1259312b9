"""Other programs' model formats: LightGBM, XGBoost, RankLib, Solr, Elasticsearch, ONNX, source."""
