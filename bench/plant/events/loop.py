"""The event loop: threads on cores go through the programs of pieces, as those of the native scheduler do.

Scheduler threads take ports from a list, first in, first out, but for one that they have just filled; a port is run by
one thread at a time; a queue holds four runs; a port takes no more than the next one has room for, and waits for it
without a thread until that is empty; whoever finds a queue full drains the last full one behind it; locks are reserved
for who came too late twice; the token is refused to who comes with a port, which is left until it is free.
Cores are given in turns of some ms. Compiled: a graph is a million steps. Must not know operators or a controller.
"""

from __future__ import annotations

import numba
import numpy as np

from bench.plant.events.program import LOCK, TOKEN, UNLOCK, WORK, Floats, Numbers

# What a thread does, for its books.
RUNNING, READY, IDLE, BLOCKED, TOKEN_WAIT, NAPPING, WAKING = range(7)
STATES = 7
VISIT, HELP, SOURCE = range(3)  # why a piece is run

# Fitted to what `./dev bench figures/validate_plant` measures, where a call is part of what an operator takes:
PUSHED = 0.3  # ns of a record at either end of a queue
HANDED = 30.0  # ns of a run at either end
VISITED = 60.0  # ns to take a port from the list and to put it back
LOCKED = 10.0  # ns of a lock that is free
TAKEN = 300.0  # ns of the token
WAKER = 1_000.0  # ns of who wakes a thread
WAKE = 30_000.0  # ns until a thread that was woken runs
SPIN = 2_000.0  # ns for which a thread waits before it sleeps
SLICE = 3e6  # ns until a core goes to the next thread
NAP = 1e6  # ns that a source without input sleeps
LATE = 0.02  # s of input that a source that is held back keeps for later
JITTER = 0.1  # by which the time of a run differs
EVERY = 32  # events between looks at the queues


@numba.njit(cache=True)
def _list(port: int, free_list: Numbers, state: Numbers, wakes: Numbers) -> None:
    """Put a port at the end of the list, and mark a thread without work to be woken."""
    size = len(free_list) - 2
    free_list[(free_list[size] + free_list[size + 1]) % size] = port
    free_list[size + 1] += 1
    for th in range(len(state)):
        if state[th] == IDLE and wakes[th] == 0:
            wakes[th] = 1
            return


@numba.njit(cache=True)
def _take(free_list: Numbers) -> int:
    """Take the first port off the list."""
    size = len(free_list) - 2
    port = free_list[free_list[size]]
    free_list[size] = (free_list[size] + 1) % size
    free_list[size + 1] -= 1
    return int(port)


@numba.njit(cache=True)
def simulate(
    sources: int,
    start: Numbers,
    kind: Numbers,
    what: Numbers,
    amount: Floats,
    run: Numbers,
    rate: Floats,
    next_port: Numbers,
    ahead: Numbers,
    token: Numbers,
    locks: int,
    workers: int,
    cores: int,
    warm: float,
    span: float,
    seed: int,
) -> tuple[Floats, Floats, Floats, float]:
    """Run the pieces of a `Program` for a while.

    Args:
        sources, start, kind, what, amount, run, rate, next_port, ahead, token, locks: of the program.
        workers: scheduler threads.
        cores: CPUs.
        warm: ns before what counts.
        span: ns that count.
        seed: of the differences between runs.

    Returns:
        Tuples that each piece took, ns that each thread spent in each state, mean fill of each queue, ns that passed.
    """
    pieces, threads = len(start) - 1, sources + workers
    ports = pieces - sources
    queue, limit, quantum = np.zeros(ports, np.int64), np.zeros(ports, np.int64), np.zeros(ports, np.int64)
    for p in range(ports):
        quantum[p] = run[sources + p]
        limit[p] = 4 * quantum[p]
    listed = np.zeros(ports, np.bool_)  # somebody is responsible for it
    noted = np.zeros(ports, np.bool_)  # whoever has it puts it back in the list
    behind = np.zeros(ports, np.int64)  # ports that wait for this one to be empty
    parked = np.zeros(ports, np.bool_)
    refused = np.zeros(ports, np.bool_)  # until the token is free
    free_list = np.zeros(ports + 2, np.int64)  # a ring, where it begins, and how many are in it
    owner = np.full(locks + ports, -1, np.int64)  # locks, then consumers of queues
    carry = np.zeros(len(kind))

    depth = np.zeros(threads, np.int64)
    frame = np.zeros((threads, ports + 2, 5), np.int64)  # piece, tuples, step, left to push, why
    state = np.full(threads, READY, np.int64)
    since, waited = np.zeros(threads), np.zeros(threads)
    until, turn = np.zeros(threads), np.zeros(threads)  # when what it does ends; when its core goes to another
    debt = np.zeros(threads)  # ns that it has yet to spend
    on = np.full(threads, -1, np.int64)  # lock that it waits for
    was_on, hungry = np.full(threads, -1, np.int64), np.zeros(threads, np.bool_)  # it did so before, and in vain
    kept = np.full(threads, -1, np.int64)  # port that it visits next
    ready = np.zeros(threads + 1, np.int64)
    ready_at, ready_end, running = 0, 0, 0
    made, owed = np.zeros(sources), np.zeros(sources)

    took, spent, fill = np.zeros(pieces), np.zeros((threads, STATES)), np.zeros(ports)
    looks, events, counting, now = 0, 0, False, 0.0
    random = np.uint64(88172645463325252 + 2654435761 * seed)
    wakes = np.zeros(threads, np.int64)  # those to be woken in this step
    for th in range(threads):
        ready[ready_end] = th
        ready_end += 1

    while True:
        # --- cores to those who are ready
        while running < cores and ready_at != ready_end:
            th = ready[ready_at]
            ready_at = (ready_at + 1) % (threads + 1)
            spent[th, READY] += now - since[th]
            state[th], since[th] = RUNNING, now
            until[th] = now + debt[th]
            debt[th] = 0.0
            turn[th] = now + SLICE
            running += 1
        # --- the next event
        crowded = ready_at != ready_end
        first, best = -1, np.inf
        for th in range(threads):
            if state[th] == RUNNING:
                end = min(until[th], turn[th]) if crowded else until[th]
            elif state[th] == NAPPING or state[th] == WAKING:
                end = until[th]
            else:
                continue
            if end < best:
                first, best = th, end
        if first < 0:
            raise RuntimeError("nothing moves: the simulated scheduler is deadlocked")
        if not counting and best >= warm:
            counting, now = True, warm
            took[:] = 0.0
            spent[:] = 0.0
            since[:] = now
        if best >= warm + span:
            break
        th, now = first, max(now, best)
        events += 1
        if counting and events % EVERY == 0:
            looks += 1
            for p in range(ports):
                fill[p] += min(1.0, queue[p] / limit[p])
        if state[th] != RUNNING:
            spent[th, state[th]] += now - since[th]
            state[th], since[th] = READY, now
            ready[ready_end] = th
            ready_end = (ready_end + 1) % (threads + 1)
            continue
        if crowded and turn[th] < until[th]:
            debt[th] = until[th] - now
            spent[th, RUNNING] += now - since[th]
            state[th], since[th] = READY, now
            running -= 1
            ready[ready_end] = th
            ready_end = (ready_end + 1) % (threads + 1)
            continue
        # --- the thread goes on, up to where time passes or it has to wait
        halt = -1
        while halt < 0:
            unlocked, filled, token_free = -1, -1, False
            if depth[th] == 0:
                p = -1
                if th < sources:
                    n = run[th]
                    if rate[th] > 0:
                        due = rate[th] * now * 1e-9 - owed[th] - made[th]
                        if due < 1:
                            halt = NAPPING
                            until[th] = now + max(NAP, (1 - due) * 1e9 / rate[th])
                            break
                        late = due - max(1.0, rate[th] * LATE)
                        if late > 0:  # what can't be taken is offered to nobody
                            owed[th] += late
                            due -= late
                        n = min(n, int(due))
                    why, piece = SOURCE, th
                else:
                    if kept[th] >= 0:
                        p, kept[th] = kept[th], -1
                    elif free_list[ports + 1] > 0:
                        p = _take(free_list)
                    else:
                        halt = IDLE
                        break
                    debt[th] += VISITED
                    if owner[locks + p] >= 0:
                        noted[p] = True
                        continue
                    n = min(queue[p], quantum[p])
                    if n > 0 and ahead[p] >= 0:
                        room = limit[ahead[p]] - queue[ahead[p]]
                        if room < limit[ahead[p]] and room < min(n, quantum[ahead[p]]):
                            if listed[ahead[p]]:
                                parked[p] = True
                                behind[ahead[p]] += 1
                            else:
                                _list(p, free_list, state, wakes)
                            continue
                        n = min(n, room)
                    if n > 0 and token[sources + p] and owner[TOKEN] >= 0:
                        refused[p] = True
                        continue
                    why, piece = VISIT, sources + p
                    owner[locks + p] = th
                    debt[th] += n * PUSHED + HANDED
                frame[th, 0, 0], frame[th, 0, 1], frame[th, 0, 2] = piece, n, start[piece]
                frame[th, 0, 3], frame[th, 0, 4] = -1, why
                depth[th] = 1
                continue
            at = depth[th] - 1
            piece, n, step = frame[th, at, 0], frame[th, at, 1], frame[th, at, 2]
            if n > 0 and step < start[piece + 1]:
                if kind[step] == WORK:
                    random ^= random << np.uint64(13)
                    random ^= random >> np.uint64(7)
                    random ^= random << np.uint64(17)
                    about = 1 + JITTER * (2 * (random >> np.uint64(11)) / 9007199254740992.0 - 1)
                    until[th] = now + debt[th] + n * amount[step] * about
                    debt[th] = 0.0
                    frame[th, at, 2] += 1
                    halt = RUNNING
                elif kind[step] == LOCK:
                    if owner[what[step]] >= 0 and owner[what[step]] != th:
                        hungry[th] = was_on[th] == what[step]
                        on[th] = what[step]
                        was_on[th] = what[step]
                        halt = TOKEN_WAIT if what[step] == TOKEN else BLOCKED
                    else:
                        owner[what[step]] = th
                        hungry[th], was_on[th] = False, -1
                        debt[th] += TAKEN if what[step] == TOKEN else LOCKED
                        frame[th, at, 2] += 1
                elif kind[step] == UNLOCK:
                    unlocked = what[step]
                    owner[unlocked] = -1
                    for other in range(threads):  # who came too late twice has it reserved
                        if hungry[other] and on[other] == unlocked:
                            owner[unlocked] = other
                            break
                    token_free = owner[TOKEN] < 0 and unlocked == TOKEN
                    frame[th, at, 2] += 1
                else:  # PUSH
                    p = what[step]
                    if frame[th, at, 3] < 0:
                        carry[step] += n * amount[step]
                        whole = int(carry[step] + 1e-9)
                        carry[step] -= whole
                        frame[th, at, 3] = whole
                    some = min(limit[p] - queue[p], frame[th, at, 3])
                    if some > 0:
                        queue[p] += some
                        frame[th, at, 3] -= some
                        debt[th] += some * PUSHED + HANDED
                        if not listed[p]:
                            filled = p
                    if frame[th, at, 3] <= 0:
                        frame[th, at, 3] = -1
                        frame[th, at, 2] += 1
                    elif filled < 0:
                        last = p
                        if owner[locks + p] < 0:
                            while next_port[last] >= 0:
                                beyond = next_port[last]
                                if limit[beyond] - queue[beyond] >= quantum[beyond]:
                                    break
                                last = beyond
                        if owner[locks + last] >= 0:
                            on[th] = locks + last
                            halt = BLOCKED
                        else:
                            owner[locks + last] = th
                            n = min(queue[last], quantum[last])
                            debt[th] += n * PUSHED + HANDED
                            frame[th, at + 1, 0], frame[th, at + 1, 1] = sources + last, n
                            frame[th, at + 1, 2], frame[th, at + 1, 3] = start[sources + last], -1
                            frame[th, at + 1, 4] = HELP
                            depth[th] += 1
            else:  # the run has been dealt with
                depth[th] -= 1
                took[piece] += n
                if frame[th, at, 4] == SOURCE:
                    made[th] += n
                else:
                    p = piece - sources
                    queue[p] -= n
                    owner[locks + p] = -1
                    unlocked = locks + p
                    again = noted[p]
                    noted[p] = False
                    if frame[th, at, 4] == VISIT:
                        empty = queue[p] == 0
                        again = again or not empty
                        listed[p] = again
                        roomy = limit[p] < 1024 and limit[p] - queue[p] >= limit[p] // 2
                        if behind[p] > 0 and (empty or roomy):
                            for other in range(ports):
                                if parked[other] and ahead[other] == p:
                                    parked[other] = False
                                    behind[p] -= 1
                                    _list(other, free_list, state, wakes)
                    if again:
                        _list(p, free_list, state, wakes)
            # --- what follows for others
            if filled >= 0:
                listed[filled] = True
                if th >= sources and frame[th, 0, 4] == VISIT:
                    filled, kept[th] = kept[th], filled
            if halt in (BLOCKED, TOKEN_WAIT) and kept[th] >= 0:
                filled, kept[th] = kept[th], -1
            if filled >= 0:
                _list(filled, free_list, state, wakes)
            if token_free:
                for p in range(ports):
                    if refused[p]:
                        refused[p] = False
                        _list(p, free_list, state, wakes)
            if unlocked >= 0:
                for other in range(threads):
                    if on[other] == unlocked and other != th:
                        on[other] = -1
                        wakes[other] = 1
            for other in range(threads):
                if wakes[other]:
                    wakes[other] = 0
                    spent[other, state[other]] += now - since[other]
                    state[other], since[other] = WAKING, now
                    until[other] = now
                    if now - waited[other] > SPIN:
                        until[other] += WAKE
                        debt[th] += WAKER
        if halt != RUNNING:
            spent[th, RUNNING] += now - since[th]
            state[th], since[th], waited[th] = halt, now, now
            running -= 1
    for th in range(threads):
        spent[th, state[th]] += warm + span - since[th]
    return took, spent, fill / max(1, looks), span
