package engine

import "sync/atomic"

// publishEvery bounds how often a loop writes to the shared cache line, in nanoseconds. A gap can be too long by this.
const publishEvery = int64(100_000)

// sharedGap is the longest time within the window with requests under way and no response, on any loop. An error ends no gap.
type sharedGap struct {
	_             [64]byte     // Cache lines of its own: every iteration reads what stands around it.
	responded     atomic.Int64 // when a loop last had a response, as far as published
	loopsUnderWay atomic.Int32 // loopsUnderWay have requests under way, without a pause since underWaySince
	underWaySince atomic.Int64
	longest       atomic.Int64
	_             [64]byte
}

// loopGap is a loop's part in the longest gap. Times are nanoseconds of the run's clock.
type loopGap struct {
	shared *sharedGap
	// The last response was in the iteration that ended at since; published is when the other loops last learnt of one.
	responses, since, published int64
	underWay                    bool
	longest                     int64
}

// restart begins to look for gaps now: without responses so far.
func (g *loopGap) restart(clock int64) { *g = loopGap{shared: g.shared, since: clock} }

// responded notes an iteration, over at clock, after which there are so many responses. They had come when its poll returned, at reported.
func (g *loopGap) responded(responses, reported, clock int64) {
	g.end(reported)
	g.responses, g.since = responses, clock
	if g.since-g.published >= publishEvery {
		raise(&g.shared.responded, g.since)
		g.published = g.since
	}
}

// setUnderWay notes that the loop has requests under way, or none any more.
func (g *loopGap) setUnderWay(underWay bool, clock int64) {
	g.underWay = underWay
	s := g.shared
	if !underWay {
		g.end(clock)
		s.loopsUnderWay.Add(-1)
		return
	}
	// Before the loop counts, so that no other loop takes the time before for time under load.
	if s.loopsUnderWay.Load() == 0 {
		s.underWaySince.Store(clock)
	}
	s.loopsUnderWay.Add(1)
}

// end ends the loop's own gap, and raises the shared maximum if no other loop had a response in it.
func (g *loopGap) end(at int64) {
	s := g.shared
	// The gap of all loops is no longer than this loop's, so most iterations need not look at the others.
	if at-g.since <= g.longest || s.loopsUnderWay.Load() == 0 {
		return
	}
	raise(&s.longest, at-max(g.since, s.responded.Load(), s.underWaySince.Load()))
	g.longest = s.longest.Load()
}

// leave ends what is under way: other sides' turns make no gap, unless the loop's own turn, since this time, had no response at all.
func (g *loopGap) leave(since int64) {
	if g.underWay && g.since >= since {
		g.underWay = false
		g.shared.loopsUnderWay.Add(-1)
	}
}

func raise(value *atomic.Int64, to int64) {
	for {
		if old := value.Load(); to <= old || value.CompareAndSwap(old, to) {
			return
		}
	}
}
