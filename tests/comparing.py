"""What tests of all estimators compare by."""


def same_partition(a, b):
    """Tell whether two label vectors differ in the names of the clusters alone."""
    return len({*zip(a, b, strict=True)}) == len({*a}) == len({*b})
