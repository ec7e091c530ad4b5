"""What users call methods on: Topology, Stream and their results. They only declare; operators are in `operators`."""
