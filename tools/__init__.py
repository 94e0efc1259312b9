"""Tools for maintainers: the documentation site, its pictures, mutation tests, damaged files."""
