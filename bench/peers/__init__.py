"""The same work on several systems, side by side: `python -m bench.peers --work word_count`.

A *work* is a folder in `works/`: `__init__.py` says what the input is (`WORK`), and one file per system does the
work as that system's users would write it. Works that are examples of Bytewax are in `ported.py`, with their ports. A
*system* is one entry in `systems.py`: the interpreter's environment.

A program has two functions and knows nothing of the measuring:

    prepare(path) -> run()      reads or describes the input, declares the job; not timed
    declare(path, out) -> flow  instead, for Bytewax: declares a flow whose output is the list `out`
    result(raw) -> dict         turns what run() gave into plain Python, to compare systems; not timed

What is timed is `run()`, in a fresh process, after the same job has run once on ten tuples (compiled code, lazy
imports). Rounds alternate between the systems, so that a noisy minute of the machine meets all of them.
"""
