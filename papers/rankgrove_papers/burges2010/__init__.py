"""Burges 2010: the overview of RankNet, LambdaRank and LambdaMART."""
