"""Published figures of large collections, translated, and runs on these collections."""
