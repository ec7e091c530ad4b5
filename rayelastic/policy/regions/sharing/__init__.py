"""Which replica has how many partitions of the keys, by what it makes of them."""
