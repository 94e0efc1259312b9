"""Chen, Lu, Wong, Sun, Heck and Tseng 2008: adaptation of tree ensembles (Trada)."""
