"""The papers' own algorithms for regions: Joker's as printed, and pipelined fission, its baseline."""
