"""Each reason with its whole sentence, as people read it; all other tests compare codes and values."""

from __future__ import annotations

import pytest

from rayelastic.reasons import Code, Reason, sentence

SENTENCES = [
    (Code.NOT_IN_FORCE(), "Waiting until the last change is in force."),
    (Code.PINNED(), "The configuration is fixed."),
    (Code.CPU_BUDGET(cpus=4), "This PE now has 4 CPUs of its node."),
    (Code.STAGE_BUDGET(cpus=2), "This stage now has 2 CPUs of its process."),
    (Code.NO_CPU_BUDGET(), "This PE now shares its node with no other PE of the job."),
    (Code.OTHER_PROCESSES(cpus=2, of=8, before=1), "Other processes use 2 of 8 CPUs, 1 before."),
    (Code.NO_TUPLES(), "No tuples arrive."),
    (Code.THREADS_IDLE(idle=0.9), "Threads are idle 90 % of the time, and so are the sources."),
    (Code.SOURCES_WAIT(wait=0.35), "Every source waits for input at least 35 % of the time."),
    (Code.SOURCE_BUSY(wait=0.35), "A source waits for input only 35 % of the time."),
    (Code.NO_PROFILE(), "Operator costs aren't measured yet."),
    (Code.QUEUE_FULL(fill=0.7), "A queue is 70 % full."),
    (Code.THREADS_BLOCKED(blocked=0.05), "Threads are blocked on output 5.0 % of the time."),
    (Code.THREADS_WAIT_FOR_GIL(wait=0.35), "Threads wait for the GIL 35 % of the time."),
    (Code.THREAD_FULL(busy=0.86), "The operators between two queues keep a thread 86 % busy."),
    (Code.CPUS_BUSY(busy=3.4, cpus=4), "3.4 of 4 CPUs are busy."),
    (Code.PARTLY_BUSY(busy=1.2, cpus=4, idle=0.9), "1.2 of 4 CPUs are busy, and threads are idle 90 % of the time."),
    (Code.SOURCES_LIMIT(), "The sources emit no more."),
    (Code.FASTER_BEFORE(), "Throughput was higher before."),
    (Code.DEMAND_MET(), "The PE keeps up with its sources."),
    (Code.DEMAND_UNMET(), "The PE no longer keeps up with its sources."),
    (Code.THREADS_BUSY(busy=1.4, threads=8), "Only 1.4 of 8 threads were busy."),
    (Code.COST_CHANGED(), "The cost of a tuple changed."),
    (Code.COST_MAY_HAVE_CHANGED(), "The cost of a tuple may have changed."),
    (Code.MEASURED(rate=15200.0, setting={"channels": 3}), "15.2k/s with 3 channels."),
    (
        Code.EXPECTED(rate=15200.0, setting={"threads": 2, "queues": 3}, expected=16000.0),
        "15.2k/s with 2 threads and 3 queues, 16k/s expected.",
    ),
    (Code.MEASURING(setting={"threads": 2, "queues": 3}), "Measuring 2 threads and 3 queues."),
    (
        Code.BASELINE(setting={"threads": 2, "queues": 3}),
        "Measuring 2 threads and 3 queues longer, to judge a small difference.",
    ),
    (
        Code.UNDECIDED(tried={"threads": 2, "queues": 2}, change=0.0304, base={"threads": 1, "queues": 0}),
        "2 threads and 2 queues were 3.0 % faster than 1 thread so far; measuring on.",
    ),
    (
        Code.KEPT(
            tried={"threads": 2, "queues": 2},
            change=0.811,
            base={"threads": 1, "queues": 0},
            rate=1650000.0,
            base_rate=912000.0,
        ),
        "Kept: 2 threads and 2 queues were 81 % faster than 1 thread (1.65M/s against 912k/s).",
    ),
    (
        Code.REVERTED(
            tried={"threads": 2, "queues": 2},
            change=-0.994,
            base={"threads": 1, "queues": 0},
            rate=82.0,
            base_rate=15200.0,
        ),
        "Reverted: 2 threads and 2 queues were 99 % slower than 1 thread (82/s against 15.2k/s).",
    ),
    (
        Code.NOT_ENOUGH(
            tried={"threads": 2, "queues": 2},
            change=0.011,
            base={"threads": 1, "queues": 0},
            rate=15367.0,
            base_rate=15200.0,
        ),
        "Reverted: 2 threads and 2 queues were only 1.1 % faster than 1 thread (15.4k/s against 15.2k/s).",
    ),
    (Code.AS_REMEMBERED(), "Throughput is as it was under such a load before."),
    (Code.BEHIND(), "No further trials while a backlog is worked off."),
    (Code.TRIALS_COST(share=0.02, most=0.01), "Trials have cost 2.0 % of the throughput, 1.0 % is the most."),
    (Code.NO_BETTER(), "No better setting found."),
    (Code.SETTLED(setting={"threads": 1, "queues": 0}), "Staying with 1 thread."),
    (Code.CHANGED_BY_OTHERS(), "This isn't the setting that was asked for; it is kept."),
    (Code.LOAD_CHANGED(), "The load changed."),
    (Code.LOAD_CHANGED_LITTLE(), "The load changed by little."),
    (Code.SAME_WORK(), "The work is the same, at another pace."),
    (Code.TRYING(setting={"threads": 2, "queues": 3}), "Trying 2 threads and 3 queues."),
    (
        Code.BEST_BEFORE(setting={"threads": 2, "queues": 3}),
        "2 threads and 3 queues were best under such a load before.",
    ),
    (Code.BEST_EARLIER(setting={"threads": 2, "queues": 3}), "2 threads and 3 queues were best in an earlier run."),
    (Code.UNKNOWN_ABOVE(threads=2), "Nothing is known of more than 2 threads."),
    (Code.PEAK_PASSED(low=2, high=8), "Throughput rose up to 2 threads and fell before 8 threads."),
    (Code.FEWER_MAY_DO(threads=6), "Fewer than 6 threads may be enough."),
    (Code.COSTS_ALLOW(factor=1.91, threads=2), "Operator costs allow 1.91 times as much with 2 threads."),
    (
        Code.COSTS_ALLOW_QUEUES(factor=1.91),
        "No operator has a queue, and operator costs allow 1.91 times as much with queues.",
    ),
    (Code.WORTH_A_TRY(gain=0.25), "A trial is expected to gain 25 %."),
    (Code.ONCE_MORE(), "Measuring the best setting once more before it is kept."),
    (Code.EVERY_QUEUE(), "Every operator gets a queue."),
    (Code.SWITCHING(), "Queues are being switched."),
    (Code.OTHER_LOAD(), "This is another load."),
    (Code.UNKNOWN(setting={"threads": 4}), "Nothing is known of 4 threads."),
    (Code.FEWEST(setting={"threads": 1}), "No fewer than 1 thread are allowed."),
    (Code.FASTER(setting={"threads": 4}), "4 threads were faster."),
    (Code.SLOWER(setting={"channels": 1}), "1 channel was slower."),
    (Code.NO_SLOWER(setting={"channels": 2}), "2 channels were no slower."),
    (Code.NO_FASTER(setting={"threads": 4}), "4 threads were no faster."),
    (Code.HOST_BUSY(busy=0.81), "The node is 81 % busy, so no thread is added."),
    (Code.GROUP_FIRST(), "No queue was tried before."),
    (Code.GROUP_BETTER(gain=0.25), "The whole group was 25 % faster."),
    (Code.GROUP_WORSE(), "The whole group was slower."),
    (Code.PART_BETTER(operators=3), "Faster than with 3 of the group."),
    (Code.PART_WORSE(operators=3), "Slower than with 3 of the group."),
    (Code.PART_NO_BETTER(operators=3), "No faster than with 3 of the group."),
    (Code.PART_BEST(operators=3), "The best is 3 of the group."),
    (Code.NEXT_GROUP(group=1, groups=4, operators=3), "Trying group 1 of 4 next, with 3 operators."),
    (Code.NEXT_PART(operators=3), "Trying 3 of the group next."),
    (Code.LAST_GROUP(), "No group is left."),
    (Code.BUFFERS(fill=0.7), "Buffers are 70 % full."),
    (Code.NOISE(), "The difference counts as noise."),
    (Code.NO_CONGESTION(), "Buffers aren't congested."),
    (Code.FEWER_CONGESTED(), "Fewer channels were congested."),
    (Code.BUSY_LAST_THREAD(), "The system is busy, but the last thread stays."),
    (Code.BUSY_TRY_FEWER(), "The system is busy, so one thread less is tried."),
    (Code.STILL_IMPROVING(), "Throughput still improves, so one thread more is tried."),
    (Code.ONE_MORE_FASTER(), "One thread more was faster."),
    (Code.STABLE_ABOVE(), "More threads were no faster."),
    (Code.STABLE_BELOW(), "Fewer threads were no slower."),
    (Code.RATES(offered=1200000.0, carried=950.0), "1.2M/s offered, 950/s processed."),
    (
        Code.LATENCY(p99=0.25, goal=0.2, aim=0.6),
        "P99 latency is 0.25 s, and the goal is 0.2 s; replicas are sized for 60 % use.",
    ),
    (Code.LATENCY_UNKNOWN(goal=0.2), "The latency isn't measured yet, and the goal is 0.2 s."),
    (
        Code.REGIONS_ROLLED_BACK(),
        "The plan in force isn't the one asked for: it was rolled back, or changed by others.",
    ),
    (Code.WARMING_UP(), "Warming up after the change."),
    (Code.MEASURING_REGIONS(), "Measuring the regions."),
    (Code.NO_CPU(share=0.61), "Threads had no CPU for 61 % of their work."),
    (Code.NOTHING_MADE(), "Sources are blocked on output and have emitted nothing."),
    (Code.NOT_JUDGED(periods=2, most=10), "Not judged for 2 of at most 10 periods."),
    (Code.LOCAL_UNSETTLED(periods=2, most=10), "Threads and queues haven't settled, after 2 of at most 10 periods."),
    (Code.LOAD_MAY_CHANGE(), "The load seems to change."),
    (Code.STABLE(), "The region level is stable."),
    (Code.REPLICAS_EARLIER(replicas=3, region="r1"), "3 replicas of r1 paid off in an earlier run."),
    (Code.PROCESS_EARLIER(operators=["parse", "count"]), "A process for parse, count paid off in an earlier run."),
    (Code.HOT_KEY(key="'home'", share=0.61, region="r1"), "Key 'home' has 61 % of the load of r1."),
    (Code.INDIVISIBLE(region="r1", share=0.61), "One indivisible part of r1 has 61 % of its load."),
    (Code.REPLICAS_LIMIT(replicas=3), "More than 3 replicas would hardly help."),
    (Code.TWO_STEPS(aggregate="counts"), "Declaring counts with two_steps=True would divide it."),
    (
        Code.FEWER_REPLICAS_MAY_DO(),
        "More replicas helped far less than expected, and no CPU was free: fewer may be enough.",
    ),
    (Code.SPLIT(region="r1", at="parse"), "Split r1 before parse."),
    (Code.MERGE(region="r1", at="parse"), "Merge r1 at parse."),
    (Code.REPLICAS(region="r1", before=1, replicas=3), "r1 from 1 replica to 3."),
    (Code.MOVE(region="r1", pes=["pe1", "pe2"]), "Move replicas of r1 to pe1, pe2."),
    (Code.SHARE(region="r1", shares=[71, 200]), "Partitions of r1 as 71:200."),
    (Code.SHARE_EVENLY(region="r1"), "Partitions of r1 as evenly as possible."),
    (Code.GAIN(gain=0.25, cost=1.25), "Expected gain 25 %, cost 1.2 s."),
    (Code.SAVES_THREADS(gain=0.25, cost=1.25), "Saves 25 % of the threads, cost 1.2 s."),
    (Code.SAVES_PROCESSES(gain=0.25, cost=1.25), "Saves 25 % of the processes, cost 1.2 s."),
    (Code.NOT_WORTH_IT(), "Not worth it."),
    (Code.NO_ROOM(), "No node has room, except for what didn't help before."),
    (
        Code.BOUNDS_NO_ROOM(regions=["r1"]),
        "No room for replicas of r1: nodes are full, or Elasticity(max_processes=...) is reached.",
    ),
    (Code.BOUNDS(), "The bounds on replicas at this time require it."),
    (Code.UNEVEN(), "Replicas aren't equally busy."),
    (Code.GIL_FULL(operators=["parse", "count"]), "One GIL isn't enough: start a process for parse, count."),
    (Code.BACK_TOGETHER(operators=["parse", "count"]), "Move parse, count back to the process upstream."),
    (
        Code.GIL_FULL_STAYS(operators=["parse", "count"]),
        "One GIL isn't enough for parse, count and others, but they stay in one process.",
    ),
    (
        Code.HOST_FULL(nodes=["a"], operators=["parse", "count"]),
        "The CPUs of a aren't enough: parse, count go to another host.",
    ),
    (
        Code.HOST_FULL_STAYS(operators=["parse"]),
        "The CPUs of one host aren't enough, but parse stay in their process.",
    ),
    (
        Code.HOST_HAS_ROOM(nodes=["a"]),
        "CPUs of a are idle, and threads of a process can use them: another host wouldn't help.",
    ),
    (Code.ONE_HOST(node="a"), "The CPUs of a are all in use, and there is no other host."),
    (Code.HOSTS_FULL(), "The CPUs of one host aren't enough, and no other host has any left."),
    (Code.ONE_THREAD(), "One operator needs a whole thread, so another host wouldn't help."),
    (Code.LINKS_TOO_MUCH(), "No other division of the operators over hosts frees more CPU than its links use."),
    (Code.TRIED_IN_VAIN(operators=["parse"]), "parse on another host didn't help before."),
    (Code.GAINED(gain=-0.044), "Throughput changed by -4.4 %."),
    (Code.REPLICAS_KEPT(), "Kept."),
    (Code.REPLICAS_REVERTED(), "Reverted: less gain than expected; not tried again until the load changes."),
    (Code.NODE_LOST(node="b"), "Node b is lost."),
    (Code.PE_MOVES(pe="pe1", node="b"), "pe1 moves to b."),
    (Code.NEEDS_MORE(region="r1", use=0.95), "r1 needs 95 % of its capacity: it scales out if this lasts."),
    (Code.LESS_WOULD_DO(regions=["r1"]), "Fewer threads or replicas are enough for r1: scale in if this lasts."),
    (Code.CANT_GROW(regions=["r1"]), "Nothing makes r1 faster."),
    (Code.BUSIEST(region="r1", use=0.95), "r1 is the busiest region, at 95 %."),
    (Code.CPUS_MISSING(cpus=3.5), "The load needs 3.5 CPUs more than may be used."),
    (Code.NO_ROOM_FOR_CPUS(cpus=3.5), "Replicas that need 3.5 CPUs have no room."),
    (Code.PIPELINE_BUSY(region="r1", busy=0.86), "r1 is 86 % busy."),
    (Code.PIPELINES_CALM(busy=0.86), "No pipeline is more than 86 % busy."),
    (Code.NOTHING_LEFT(regions=["r1"]), "Over the limit, with nothing left to try: r1."),
    (Code.REGION_GAIN(region="r1", gain=0.25), "The throughput of r1 changed by +25 %."),
    (Code.NOTHING_ELSE(), "There is nothing else to try."),
    (Code.PLACED_BY_CONFIG(), "JobConfig(pes=...) fixes which operators run where."),
    (Code.REMEMBERS(operator="seen", names=["SEEN"]), "'seen' remembers `SEEN` outside its state."),
    (Code.CANT_SEEK(sources=["orders"]), "After a move, orders would emit rows again, as no position can be restored."),
    (Code.NO_CHECKPOINTS(), "The job takes no checkpoints to restore from."),
    (
        Code.IN_ORDER_OF_TIMES(operator="seen"),
        "'seen' emits tuples in the order of their times, unless key_by takes a field of its left stream.",
    ),
    (Code.ONE_SINK(operator="out"), "'out' is a sink, which has one replica."),
    (
        Code.OBJECT_MAY_CHANGE(operator="ask"),
        "'ask' is an object that may change: declare stateless=True, or state by key.",
    ),
    (Code.WHOLE_STREAM(operator="sum"), "'sum' has state of the whole stream."),
    (Code.ACTS_AT_END(operator="ask"), "'ask' acts at the end of its input."),
    (Code.KIND_HAS_ONE(kind="source"), "A source region has one replica."),
    (Code.NO_OUTPUT_USED(), "No operator receives its output."),
    (Code.ONE_GROUP(), "It has one group of all tuples."),
    (Code.SEVERAL_INPUTS(operators=["parse", "count"]), "Only a join may have several input ports: parse, count."),
    (Code.SEVERAL_OUTPUTS(operators=["parse", "count"]), "Several output ports, or the head of a loop: parse, count."),
    (Code.IN_A_CHANNEL(), "It runs in a channel whose order is restored."),
    (Code.OTHER_KEYS(operators=["parse", "count"]), "Its region has other keys: parse, count."),
    (Code.PIPELINES_APART(), "Its pipelines are in different PEs."),
    (Code.FIXED_BY_CONFIG(), "The job has JobConfig(regions='fixed')."),
    (Code.WAITS_OUTSIDE(asleep=0.99, cpu=0.005), "Its function waits 99 % of the time and computes 0.5 %."),
    (Code.COMPUTES(busy=0.86), "Its function is busy 86 % of the time of one thread."),
    (Code.UPSTREAM_BLOCKED(blocked=0.05), "Operators upstream are blocked on output 5.0 % of the time."),
    (
        Code.HOLDS_GIL(wait=0.75, busy=0.86),
        "Threads wait for the GIL 0.8 s a second, and it holds the GIL 86 % of the time.",
    ),
    (Code.ONE_GIL(), "One Python function runs at a time in a process: compile it, or run it in a PE of its own."),
    (Code.SKEWED(share=0.61, pe="pe1", replicas=3), "61 % of its tuples go to pe1, one of 3 replicas."),
    (Code.HOTTEST_KEY(key="'home'", share=0.61, region="r1"), "Key 'home' has 61 % of the tuples of r1."),
    (Code.KEY_HAS_ONE_REPLICA(), "A key belongs to one replica, so more replicas don't divide a hot key."),
    (Code.TWO_STEPS_DIVIDE(), "An aggregate with two_steps=True divides it."),
    (Code.BUSIEST_OPERATOR(busy=0.86), "The busiest operator is 86 % busy."),
    (Code.NOTHING_RUNS(), "No operator runs."),
    (Code.KEEPS_UP(), "The job keeps up with its sources."),
    (Code.SOURCES_FULL_SPEED(), "The sources emit as fast as they can."),
    (Code.KEEPS_ONE(region="r1"), "Its region r1 keeps one replica:"),
    (Code.RUNS_AS(region="r1", replicas=3), "Its region r1 runs as 3 replicas."),
    (Code.NOT_ELASTIC(), "It scales with JobConfig(regions='elastic'), the default on Ray."),
    (Code.LAST_REGION_DECISION(), "Last decision on replicas:"),
    (Code.LAST_THREAD_DECISION(pe="pe1"), "Last decision on threads and queues of pe1:"),
    (Code.THREADS_FIXED(), "JobConfig fixes threads and queues."),
]


@pytest.mark.parametrize(("reason", "text"), SENTENCES, ids=[reason.code.name for reason, _ in SENTENCES])
def test_a_reason_reads(reason: Reason, text: str) -> None:
    assert sentence([reason]) == text


def test_every_code_of_a_decision_is_shown() -> None:
    """The codes after these are of plans and functions: golden layouts and tests of the compiler show them."""
    shown = [reason.code for reason, _ in SENTENCES]
    assert shown == list(Code)[: len(shown)]
    assert list(Code)[len(shown)] is Code.SOURCE_ALONE


def test_a_reverted_trial_is_told_with_what_follows() -> None:
    one, two = {"threads": 1, "queues": 0}, {"threads": 2, "queues": 0}
    reverted = Code.REVERTED(tried=two, base=one, change=-0.994, rate=82.0, base_rate=15_200.0)
    assert sentence([reverted, Code.SETTLED(setting=one)]) == (
        "Reverted: 2 threads were 99 % slower than 1 thread (82/s against 15.2k/s). Staying with 1 thread."
    )


def test_a_reason_of_another_version_says_so() -> None:
    with pytest.raises(ValueError, match="another version of rayelastic wrote it: far_from_costs"):
        Reason.from_dict({"code": "far_from_costs", "share": 0.5})
