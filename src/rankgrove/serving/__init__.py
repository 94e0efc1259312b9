"""The scoring service: JSON in, ranked ids and scores out (``rankgrove serve``)."""
