"""A node: the crawler process and the gradient process, and the Dask task that holds them."""
