"""Running independent tasks in this process or on a Dask cluster; data-parallel training."""
