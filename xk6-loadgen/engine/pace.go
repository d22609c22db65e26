package engine

import (
	"slices"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
	// saturatedSlice: the noise of a machine is slow, and sides that alternate faster than it see the same of it. 10 ms would be no more
	// precise (docs/proof.md, The length of a turn), and a server's first answers, whose caches are cold, twice as large a part.
	saturatedSlice = 20 * time.Millisecond
	// waitingSlice: a server that waits has no need of short turns, at whose begin its caches are cold.
	waitingSlice = 100 * time.Millisecond
	// rateSlice: at a rate no side is saturated, and what begins and ends a turn must be a small part of it.
	rateSlice = 250 * time.Millisecond
	// drainLimit is how long a turn awaits answers where nothing is known of them.
	drainLimit = second
	// longestDrain is how long it awaits them in a count without a warm-up.
	longestDrain = 10 * second
	// longestShortDrain of a server at its limit is part of a turn; a longer queue does not drain as it is worked off under load.
	longestShortDrain = int64(10 * time.Millisecond)
	// shortestQuiet: after so long without an answer a server that has less to do than it could is not working off what is under way.
	shortestQuiet = 50 * int64(time.Millisecond)
	// busyShare of a core, or of the generator's threads: with less, the server spends its answers waiting.
	busyShare = 0.8
	// waitsPerSlice: a turn of a busy server loses about one wait, which is to be a percent of it at most.
	waitsPerSlice = 100
	// answersPerSlice of a server that waits, so that what comes at the edges of a window is a small part of it.
	answersPerSlice = 10
	// longestQueue and longestRamp bound what comes before a turn's window.
	longestQueue, longestRamp = second, 10 * second
	// soloRequests are made one after the other before all others, for soloLimit at most: how long an answer takes without a queue.
	soloRequests = 3
	soloLimit    = second
)

// pace is how a side's turns go. All but slice are nanoseconds.
//
// A server at its limit works at full rate while its queue drains, so that all of a turn counts, from the first request to the last
// answer, and short turns do; unless the queue is longer than a turn. Of such a server, and of one that waits (for a backend, a disk,
// a timer), neither the begin of a turn, until answers come steadily, nor its drain is continuous load: what ends in between counts,
// and turns are long against an answer.
type pace struct {
	// slice is the mean length of a turn, without ramp and drain.
	slice time.Duration
	// ramp comes before a turn's window; over spread the connections begin one after the other: 0 with a server at its limit.
	ramp, spread int64
	// A drain is over patience after the turn, or quiet after the last answer.
	patience, quiet int64
	waits           bool
}

// probe is what a side's warm-up told of its server.
type probe struct {
	// solo is how long an answer took without a queue.
	solo     int64
	from, to probeReading
}

// probeReading is what a loop and the server have used by some time. Both were kept from working for so long: others had their cores.
type probeReading struct{ at, generator, generatorDelay, server, serverDelay, answered int64 }

func (l *loop) readProbe() probeReading {
	s := l.shared
	r := probeReading{at: s.now(), generator: s.usedCPU(), generatorDelay: linux.ThreadRunDelay(), answered: l.responses}
	if s.server.processes != nil {
		r.server, r.serverDelay = s.server.processes.CPU(), s.server.processes.RunDelay()
	}
	return r
}

// choosePace chooses how the side's turns go by its warm-up, which is over, if it had one.
func (r *run) choosePace() {
	s := r.shared
	s.pace = pace{slice: saturatedSlice, patience: drainLimit, quiet: drainLimit}
	p := &s.pace
	if r.plan.Rate > 0 {
		p.slice = rateSlice
	}
	latency := newRecorder()
	for _, l := range r.loops {
		latency.merge(l.interval.latency)
	}
	if r.plan.Warmup == 0 && r.plan.Rate == 0 {
		// Its first turn opens all connections: their handshakes keep some servers at work for seconds before the first answer.
		p.patience, p.quiet = longestDrain, longestDrain
	}
	if r.plan.Warmup == 0 || latency.count == 0 {
		return
	}
	at := latency.histogram.Percentiles(50, 99, 99.9)
	p50, p99, worst := at[0], at[1], at[2]
	p.patience = max(drainLimit, 2*p99)
	p.quiet = max(shortestQuiet, 2*p50)
	if r.plan.Rate > 0 {
		return
	}
	// Of one of the loops; all have the same share.
	answered := float64(max(1, s.probe.to.answered-s.probe.from.answered)) * float64(r.plan.Threads)
	used := float64(s.probe.to.server - s.probe.from.server)
	if s.isBusy(p50, p99, r.plan.Threads) {
		// What a request costs is no wait; several at once may be.
		p.quiet = p.patience
		if p50 > longestShortDrain && r.plan.Requests == 0 {
			// Many requests of a connection come together.
			p.ramp, p.slice = min(p50, longestQueue), min(longestSlice, time.Duration(2*p50))
			return
		}
		wait := max(0, s.probe.solo-int64(used/answered))
		p.slice = min(longestSlice, max(saturatedSlice, time.Duration(waitsPerSlice*wait)))
		if p99 > waitsPerSlice*p50 {
			// A turn that ends with one of those that wait is to be long against it.
			p.slice = min(longestSlice, max(p.slice, time.Duration(answersPerSlice*p99)))
		}
		return
	}
	p.waits = true
	if r.plan.Requests == 0 {
		p.ramp, p.spread = min(2*max(worst, s.probe.solo), longestRamp), p50
	}
	p.slice = min(longestSlice, max(waitingSlice, time.Duration(answersPerSlice*p50), time.Duration(worst)))
}

// grow has the turns of a count without a warm-up grow with its queue, which only a drain tells.
func (r *run) grow(slice time.Duration) time.Duration {
	if s := r.shared; r.plan.Warmup == 0 && r.plan.divided && s.left-s.sliceEnd > int64(slice) {
		return min(longestSlice, time.Duration(answersPerSlice*(s.left-s.sliceEnd)))
	}
	return slice
}

// isBusy tells whether the load keeps the server or the generator at work, or waiting for their cores. Where the server's CPU time is
// not known it is told by the queue: answers take longer together than one alone, and about the same time each.
func (s *shared) isBusy(p50, p99 int64, threads int) bool {
	from, to := s.probe.from, s.probe.to
	busy := int64(busyShare * float64(to.at-from.at))
	switch {
	case to.generator-from.generator+int64(threads)*(to.generatorDelay-from.generatorDelay) >= int64(threads)*busy:
		return true
	case s.server.processes != nil:
		return to.server-from.server+to.serverDelay-from.serverDelay >= busy
	}
	return p50 >= 2*s.probe.solo && p99 <= 4*p50
}

const (
	// longestSteal is how long a host may keep the cores of a turn. With more the generator stood still.
	longestSteal = int64(20e6)
	// mostLeftOut is the share of cycles above which all count: such a machine has no quiet ones to choose.
	mostLeftOut = 0.25
)

// longestStandstill is how late the engine may begin to send what is due while a connection is free for it.
var longestStandstill = int64(5e6)

// cycle is what a side at a rate did in an order of turns and its mirror. It is kept apart until it is known whether the generator stood
// still meanwhile, which says nothing of any server: then it is left out for all sides, and made again.
type cycle struct {
	interval
	sendDelays, waits *recorder
	buckets           []int64
}

// cycles are those of all sides together; stood are those in which the generator stood still.
type cycles struct {
	all, stood, leftOut int
	// stands: it did so in the cycle under way.
	stands bool
	// cores are those of the generator and of the servers, steal is what the host took of them by the last look.
	cores []int
	steal int64
}

func newCycles(runs []*run) *cycles {
	c := &cycles{cores: linux.Cores()}
	for _, r := range runs {
		for _, pid := range r.cpuOf {
			c.cores = append(c.cores, linux.CoresOf(pid)...)
		}
	}
	slices.Sort(c.cores)
	c.cores = slices.Compact(c.cores)
	c.steal = linux.Steal(c.cores)
	return c
}

// startCycles has the loop count in cycles from now on.
func (l *loop) startCycles() {
	l.cycle = &cycle{
		interval: interval{latency: newRecorder()}, sendDelays: l.sendDelays, waits: l.waits, buckets: l.bucketCounts,
	}
	l.sendDelays, l.waits, l.bucketCounts = newRecorder(), newRecorder(), make([]int64, len(l.bucketCounts))
	l.current = &l.cycle.interval
}

// endCycle puts what the cycle came to into the figures, or leaves it out.
func (l *loop) endCycle(keep bool) {
	c := l.cycle
	if keep {
		l.interval.Counts.add(&c.Counts)
		l.interval.latency.merge(c.latency)
		c.sendDelays.merge(l.sendDelays)
		c.waits.merge(l.waits)
		addEach(c.buckets, l.bucketCounts)
	} else {
		l.warmup += c.Requests
		if l.plan.Requests > 0 {
			l.allowance += c.Requests
		}
	}
	c.Counts = Counts{}
	c.latency.reset()
	l.sendDelays.reset()
	l.waits.reset()
	clear(l.bucketCounts)
}

// leaveCycles puts the last cycle into the figures.
func (l *loop) leaveCycles() {
	c := l.cycle
	if c == nil {
		return
	}
	l.endCycle(true)
	l.sendDelays, l.waits, l.bucketCounts, l.cycle = c.sendDelays, c.waits, c.buckets, nil
	l.current = l.interval
}

// noteLate notes how late the loop begins to send what a connection was free for.
func (l *loop) noteLate() {
	l.stood = max(l.stood, l.clock-max(l.schedule.nextDue, l.idleSince))
}

// end decides whether the cycle that is over counts, and has all sides begin the next one.
func (c *cycles) end(runs []*run) {
	c.all++
	keep := true
	if c.stands {
		c.stood++
		keep = float64(c.leftOut) >= mostLeftOut*float64(c.all)
	}
	if !keep {
		c.leftOut++
	}
	c.stands = false
	for _, r := range runs {
		s := r.shared
		if !keep {
			s.away += s.cycleTime
			s.cpuAway.Add(s.cycleCPU)
		}
		s.cycleIsOver, s.cycleCounts, s.cycleTime, s.cycleCPU = true, keep, 0, 0
	}
}

// look notes, after a turn, whether the generator stood still in it.
func (c *cycles) look(r *run) {
	steal := linux.Steal(c.cores)
	c.stands = c.stands || steal-c.steal > longestSteal || slices.ContainsFunc(r.loops, func(l *loop) bool { return !l.through && l.stood > longestStandstill })
	c.steal = steal
}
