"""Ganjisaffar, Caruana and Lopes 2011: bags of LambdaMART models (BL-MART)."""
