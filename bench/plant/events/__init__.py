"""A second plant, by discrete events: threads, ports, queues and cores one by one, no formula of throughput."""
