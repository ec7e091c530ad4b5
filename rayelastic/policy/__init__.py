"""Pure controllers: `step(observation) -> decision`, the decision carrying its reason in words.

Must not know clocks, threads, files, Ray, native code, unseeded random numbers, or logging.
"""
