package engine

import (
	"slices"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

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
