"""Controllers of one PE: how many threads, which operators get a queue. Know no regions."""
