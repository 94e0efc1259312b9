"""Nets trained by lambdas: RankNet and LambdaRank."""
