package engine

import "sync/atomic"

// silence is what the loops know together of the longest gap: the longest time within the window in which requests were under
// way, on whichever loop, and no response ended on any loop. An error is no response and does not end a gap. Time in which
// nothing is under way, as between two requests of the open model or in the pauses before a server is tried again, is in none.
//
// A loop looks at the end of each turn: a gap runs from the turn with the last response to the turn with the next one, so a
// delay within the engine's own turn is in none. With several loops it can be too long by publishEvery.
type silence struct {
	// Not in the cache line of what every turn reads.
	_ [64]byte
	// answered is when a loop last had a response, as far as it has been published.
	answered atomic.Int64
	// loopsUnderWay have requests under way; underWaySince is when that began, after a time in which none had.
	loopsUnderWay atomic.Int32
	underWaySince atomic.Int64
	longest       atomic.Int64
	_             [64]byte
}

// publishEvery is how often a loop tells the others that it has responses: for each turn the loops would write to one cache
// line in turn.
const publishEvery = int64(100_000)

// quiet is what one loop knows of that.
type quiet struct {
	// responses were seen, the last of them at the end of the turn at since; published is when the others were told last.
	responses, since, published int64
	underWay                    bool
	// longest is the longest gap that this loop knows of.
	longest int64
}

// lookForSilence is called at each turn's end; the turn's events were reported at this time.
func (l *loop) lookForSilence(reported int64) {
	q, s := &l.quiet, &l.shared.silence
	answered, underWay := l.responses != q.responses, l.outstanding > 0
	if answered {
		l.endSilence(reported)
		q.responses, q.since = l.responses, l.clock
		if q.since-q.published >= publishEvery {
			raise(&s.answered, q.since)
			q.published = q.since
		}
	}
	if underWay == q.underWay {
		return
	}
	q.underWay = underWay
	if !underWay {
		l.endSilence(l.clock)
		s.loopsUnderWay.Add(-1)
		return
	}
	// Before it is counted, so that no other loop takes the time before for time under load.
	if s.loopsUnderWay.Load() == 0 {
		s.underWaySince.Store(l.clock)
	}
	s.loopsUnderWay.Add(1)
}

// leaveSilence: others have their turns. Those under way that are late leave no gap, unless nothing was answered in the whole turn.
func (l *loop) leaveSilence() {
	if q := &l.quiet; q.underWay && q.since >= l.began {
		q.underWay = false
		l.shared.silence.loopsUnderWay.Add(-1)
	}
}

// endSilence: a gap that reached up to this time, if there was one, is over.
func (l *loop) endSilence(at int64) {
	q, s := &l.quiet, &l.shared.silence
	// No gap of all loops is longer than this one's, so that in most turns the others need not be asked.
	if at-q.since <= q.longest || s.loopsUnderWay.Load() == 0 {
		return
	}
	raise(&s.longest, at-max(q.since, s.answered.Load(), s.underWaySince.Load()))
	q.longest = s.longest.Load()
}

// raise sets a value that only grows.
func raise(value *atomic.Int64, to int64) {
	for {
		if old := value.Load(); to <= old || value.CompareAndSwap(old, to) {
			return
		}
	}
}
