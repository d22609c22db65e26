package engine

import "sync/atomic"

// sharedGap is the longest time within the window with requests under way, on any loop, in which no response ended on any. An error ends
// no gap. Loops look at the end of each iteration; with several the gap can be too long by publishEvery.
type sharedGap struct {
	_             [64]byte     // Cache lines of its own: every iteration reads what stands around it.
	responded     atomic.Int64 // when a loop last had a response, as far as published
	loopsUnderWay atomic.Int32 // loopsUnderWay have requests under way, without a pause since underWaySince
	underWaySince atomic.Int64
	longest       atomic.Int64
	_             [64]byte
}

// publishEvery is how often a loop tells the others, so that they rarely write to one cache line.
const publishEvery = int64(100_000)

type loopGap struct {
	// The last response was in the iteration that ended at since; the others were told at published.
	responses, since, published int64
	underWay                    bool
	longest                     int64
}

func (l *loop) trackGap(reported int64) {
	g, s := &l.gap, &l.shared.gap
	responded, underWay := l.responses != g.responses, l.outstanding > 0
	if responded {
		l.endGap(reported)
		g.responses, g.since = l.responses, l.clock
		if g.since-g.published >= publishEvery {
			raise(&s.responded, g.since)
			g.published = g.since
		}
	}
	if underWay == g.underWay {
		return
	}
	g.underWay = underWay
	if !underWay {
		l.endGap(l.clock)
		s.loopsUnderWay.Add(-1)
		return
	}
	// Before the loop counts, so that no other loop takes the time before for time under load.
	if s.loopsUnderWay.Load() == 0 {
		s.underWaySince.Store(l.clock)
	}
	s.loopsUnderWay.Add(1)
}

// suspendGap is for the others' turns: late responses leave no gap, unless there was none in the whole turn.
func (l *loop) suspendGap() {
	if g := &l.gap; g.underWay && g.since >= l.began {
		g.underWay = false
		l.shared.gap.loopsUnderWay.Add(-1)
	}
}

func (l *loop) endGap(at int64) {
	g, s := &l.gap, &l.shared.gap
	// The gap of all loops is no longer than this loop's, so most iterations need not look at the others.
	if at-g.since <= g.longest || s.loopsUnderWay.Load() == 0 {
		return
	}
	raise(&s.longest, at-max(g.since, s.responded.Load(), s.underWaySince.Load()))
	g.longest = s.longest.Load()
}

func raise(value *atomic.Int64, to int64) {
	for {
		if old := value.Load(); to <= old || value.CompareAndSwap(old, to) {
			return
		}
	}
}
