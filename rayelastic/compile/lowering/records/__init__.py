"""The tuple that comes in and those that go out: types, fields, the loop over a run."""
