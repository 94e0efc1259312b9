"""Where independent pieces of work run: in this process, or on a Dask cluster."""
