"""Arrays and label vectors, dense or sparse, with no idea of clustering."""
