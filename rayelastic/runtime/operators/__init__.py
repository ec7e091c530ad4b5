"""Makes native operators of the graph's operators. Knows no links and no other PEs."""
