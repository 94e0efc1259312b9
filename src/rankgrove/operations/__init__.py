"""Operations on trained rankers: combining, pruning, converting, adapting, checking."""
