package engine

import "time"

const (
	// Time-outs are looked for in passes over all slots, which begin at most this long and at least this long apart, and in
	// between after a hundredth of the time-out.
	sweepAtMost, sweepAtLeast = second, int64(5 * time.Millisecond)
	// A turn looks at this many slots: a pass over a hundred thousand at once would keep a loop from reading for milliseconds.
	slotsPerSweep = 1000
)

// sweep looks for what took too long, at some of the slots; the next turn goes on with the others. So an attempt ends as
// timed out sweepInterval after its time at the latest, and the turns of a pass and longestWait later.
func (l *loop) sweep() {
	if l.sweepFrom == 0 {
		l.nextSweep = l.clock + l.sweepInterval()
	}
	end := min(l.sweepFrom+slotsPerSweep, len(l.conns))
	for i := l.sweepFrom; i < end; i++ {
		l.conns[i].sweep()
	}
	if l.sweepFrom = end; end == len(l.conns) {
		l.sweepFrom = 0
	}
}

// sweepInterval is from the beginning of one pass to that of the next. It keeps a time-out's error small beside the time-out.
func (l *loop) sweepInterval() int64 {
	return min(sweepAtMost, max(sweepAtLeast, int64(l.plan.Timeout)/100))
}

// sweepBy has a pass begin by this time, but not all too soon.
func (l *loop) sweepBy(at int64) {
	if at = max(at, l.clock+sweepAtLeast); at < l.nextSweep {
		l.nextSweep = at
		l.setTimer()
	}
}
