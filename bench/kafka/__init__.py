"""A topic of a real broker into `count`, and into a topic: ours beside librdkafka alone and other systems."""
