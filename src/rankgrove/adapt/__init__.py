"""Trees of one domain adapted to another (Trada)."""
