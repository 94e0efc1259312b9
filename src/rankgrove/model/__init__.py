"""Models: what training makes and scoring reads, and the file that holds it."""
