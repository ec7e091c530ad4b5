"""Every use of Ray's private interface, in one place: a new Ray is supported when the contract of `adapter` holds."""
