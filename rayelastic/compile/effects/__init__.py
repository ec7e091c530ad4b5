"""What functions change outside themselves, and operators so remember."""
