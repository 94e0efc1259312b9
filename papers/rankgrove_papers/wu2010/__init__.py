"""Wu, Burges, Svore and Gao 2010: LambdaMART, LambdaSMART and exact combinations."""
