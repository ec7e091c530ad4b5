"""Property tests: seeded, and without a deadline, as the machine may be busy with other things."""

from hypothesis import settings

settings.register_profile("seeded", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("seeded")
