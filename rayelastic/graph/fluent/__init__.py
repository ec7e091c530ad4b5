"""What users call methods on: Topology, Stream and what these give. Only declares; decides nothing of an operator."""
