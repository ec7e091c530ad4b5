"""What is worth a try where estimates promise nothing: beliefs by all that was measured, and what follows from them."""
