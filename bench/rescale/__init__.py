"""What a change of regions costs, and what a replica brings, on real PEs."""
