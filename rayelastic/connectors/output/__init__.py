"""The output protocol: one owner of each output, hidden parts that a commit shows, a ledger in checkpoints."""
