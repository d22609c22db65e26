package engine

import (
	"slices"
	"syscall"
	"time"
)

const (
	// settleTime is how long a turn of the open model begins with requests for nobody, or settleShare of a slice where that is less.
	settleTime, settleShare = 5 * time.Millisecond, 10
	// settleDrainLimit is how long the last of them are awaited.
	settleDrainLimit = int64(20 * time.Millisecond)
	// mostSettlers bounds their connections: enough to reach all workers of most servers, and few beside those of the load.
	mostSettlers = 16
)

// settlerOf is a second load of the same server, of which nobody asks what it measures: it runs at the begin of the side's
// turns, while the clocks of the side itself stand. What has just been continued is slow for the first millisecond (cold
// caches, cores asleep), and at a rate that would be in p99: each turn would add to it what a load that is alone does not see.
//
// It has connections of its own, so that those of the side have exactly the side's requests. It ends with the side.
func settlerOf(p *plan) *run {
	settling := *p
	settling.Connections = max(p.Threads, min(p.Connections, mostSettlers))
	settling.forNobody, settling.Arrivals, settling.Buckets = true, ConstantArrivals, nil
	// Its warm-up has no end.
	settling.Requests, settling.Duration, settling.Warmup = 0, time.Second, forEver
	return &run{plan: &settling}
}

// settle continues the side's server and has it answer for nobody for a while, at the side's rate, before a slice as long as
// this. A server that has requests under way gets none: meanwhile it would answer those, in no time.
func (r *run) settle(slice time.Duration) {
	if r.settler == nil || r.shared.left == 0 || r.isBusy() {
		return
	}
	r.signal(syscall.SIGCONT)
	r.settler.turn(min(settleTime, slice/settleShare))
	r.shared.settled = 0
	for _, l := range r.settler.loops {
		r.shared.settled += l.responses
	}
}

// endSettling ends the settler's loops, whether they have begun or not.
func (r *run) endSettling() {
	if r.settler != nil {
		r.settler.shared.stop.Store(true)
		r.settler.turn(forEver)
	}
}

// isBusy tells whether requests are under way. It is asked between two turns only.
func (r *run) isBusy() bool {
	return slices.ContainsFunc(r.loops, func(l *loop) bool { return l.outstanding > 0 })
}
