"""What Ray does not offer in public, in one place: a new Ray is taken up when the contract of `adapter` holds."""
