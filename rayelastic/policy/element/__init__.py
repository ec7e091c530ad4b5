"""Controllers of one processing element: how many threads, which operators get a queue. Know no regions."""
