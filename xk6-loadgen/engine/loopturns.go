package engine

import (
	"cmp"
	"time"
)

// longestReopening bounds how long a turn waits for connections that the server has closed meanwhile.
const longestReopening = second

// loopTurn is a loop's part in the turns of its side.
type loopTurn struct {
	// resume begins a turn; closed, it ends a loop that has not begun. turnIsOver: nothing more starts in this turn.
	resume                            chan struct{}
	turnIsOver, windowIsOver, through bool
	isAtEdge                          bool // counting begins or ends with one of the next responses, see crossEdge
	readsLate                         bool // between turns the loop waits for late responses; wake ends the wait
	wakeFD                            int  // an eventfd in the loop's epoll
	// Latencies of requests that start before recordFrom are left out. At a rate requests that are due before dueFrom do not count. See turn
	// for the others.
	began, steadyFrom, sliceEnd, recordFrom, dueFrom int64
	started                                          int // started connections have begun in this turn, which they do one after the other over spread
	spread                                           int64
	isReopening                                      bool
	// older is how many attempts under way began in earlier turns. left is when the loop's time under load ended; answered is its count of
	// responses at the turn's begin, and then at its end.
	older, left, answered int64
	sawNothing            bool   // the last poll and wait found no events
	cycle                 *cycle // nil except at a rate in turns. standstill is the loop's longest one of the turn.
	standstill            int64
}

// joinTurn begins the loop's turn together with the side's other loops. The last loop to be ready sets the turn's times, and each copies
// them.
func (l *loop) joinTurn() {
	s := l.shared
	l.clock = s.now()
	if l.phase == measuring || l.phase == warmedUp {
		l.reopen()
	}
	l.answered, l.older = l.responses, l.outstanding
	if s.ready.Add(1) == s.running {
		s.beginTurn(l.phase == warmedUp || l.phase == unbegun && l.plan.Warmup == 0)
		s.going.Store(true)
	}
	for !s.going.Load() {
		l.pause(10 * time.Microsecond)
	}
	l.clock, l.began, l.steadyFrom, l.sliceEnd = s.began, s.began, s.steadyFrom, s.sliceEnd
	l.turnIsOver, l.started, l.spread, l.standstill, l.isAtEdge = false, 0, s.pace.spread, 0, false
	l.recordFrom, l.dueFrom = 0, 0
	l.setCounting(true)
	switch {
	case s.alone || l.phase == unbegun:
	case l.plan.Rate > 0:
		l.recordFrom, l.dueFrom = l.steadyFrom, l.steadyFrom
	case s.pace.ramp > 0:
		l.recordFrom, l.isAtEdge = l.steadyFrom, true
		l.setCounting(false)
	default:
		l.recordFrom = never // The first requests of a turn meet no queue
	}
}

// crossEdge begins or ends the counting once an edge is set. It is called before an iteration's events are handled, since their responses
// come after the one that set the edge.
func (l *loop) crossEdge() {
	s := l.shared
	if to := s.countTo.Load(); to > 0 && l.clock > to {
		l.isAtEdge = false
		if l.current != l.outside {
			l.setCounting(false)
		}
		return
	}
	if from := s.countFrom.Load(); l.current == l.outside && from > 0 && l.clock > from {
		l.setCounting(true)
		l.isAtEdge = l.turnIsOver
	}
}

// setEdge is called after an iteration with responses or failures. The side's first iteration of that kind since steadyFrom is the edge at
// which counting begins, the first one since sliceEnd that at which it ends.
func (l *loop) setEdge() {
	s := l.shared
	if l.clock >= l.steadyFrom && s.countFrom.CompareAndSwap(0, l.clock) {
		s.enterCPU()
	}
	if l.turnIsOver && s.countTo.CompareAndSwap(0, l.clock) {
		s.leaveCPU()
	}
}

// nextTurn ends the loop's turn, lets the other sides have theirs, and begins the next one as if no time had passed.
func (l *loop) nextTurn() {
	s := l.shared
	if g := &l.gap; g.underWay && g.since >= l.began {
		// While other sides have their turns a wait is no gap, unless the whole turn had no response.
		g.underWay = false
		s.gap.loopsUnderWay.Add(-1)
	}
	before := s.away
	l.readsLate = l.outstanding > 0
	l.endTurn()
	l.awaitTurn()
	l.joinTurn()
	if l.phase == warmedUp {
		l.beginWindow()
	} else {
		l.shift(s.away - before)
		if l.cycle != nil && s.cycleIsOver {
			l.endCycle(s.cycleCounts)
			if l.windowIsOver = l.allowance == 0 && l.outstanding == 0; l.plan.Duration > 0 {
				l.windowIsOver = l.phaseEnd <= l.steadyFrom
			}
		}
		l.startAll()
	}
	l.endSliceEarly()
	l.watchTurnsQueue()
	l.nextTimer = l.clock
}

// shift moves the loop's times by the time that was not under load. A time that is `never` stays far away.
func (l *loop) shift(by int64) {
	l.phaseEnd += by
	l.nextTick += by
	between := l.shared.between
	// The requests that are due in a ramp are made, and do not count.
	l.schedule.start += between - l.shared.ramp
	l.schedule.nextDue += between - l.shared.ramp
	l.sampleFrom += between
	l.nextSample += between
}

// hasMoreDue is called between turns at a rate. It tells whether the loop still has requests to make in its window.
func (l *loop) hasMoreDue() bool {
	if l.phase != measuring {
		return true
	}
	if l.plan.Requests > 0 {
		return l.allowance > 0
	}
	return l.phaseEnd > l.left
}

// endSliceEarly fits the turn to the rest of the window. A rest of less than a quarter of a turn gets no turn of its own.
func (l *loop) endSliceEarly() {
	switch {
	case l.shared.alone || l.phase != measuring:
	case l.plan.Duration > 0:
		if soon := l.shared.length / 4; l.phaseEnd < l.sliceEnd+soon {
			l.sliceEnd = l.phaseEnd
		}
	case l.allowance == 0 && l.shared.quota.Load() <= 0:
		l.sliceEnd = l.clock
	}
}

// turnIsDone is called in each iteration after sliceEnd. At first it ends what starts; it returns true when the drain is over.
func (l *loop) turnIsDone() bool {
	if !l.turnIsOver {
		l.turnIsOver = true
		l.isAtEdge = l.countsByAnswers()
		if l.isAtEdge && l.shared.inOneTurn && l.shared.countFrom.CompareAndSwap(0, l.steadyFrom) {
			l.shared.enterCPU() // No response came in the whole window
		}
		if l.growth.next < never {
			l.noteQueue()
		}
		if l.number == 0 && l.plan.Rate > 0 && l.shared.ramp > 0 {
			l.shared.leaveCPU()
		}
	}
	// Responses that have come by the end of the drain are read first: the loop itself may have been late.
	awaited := l.outstanding - max(0, l.older)
	if l.shared.isEmpty {
		awaited = l.outstanding
	}
	if end := l.drainEnd(); awaited > 0 && (l.clock < end || !l.sawNothing && l.clock < end+longestServerWork) {
		return false
	}
	// At a rate the window is over once the last cycle counts.
	l.windowIsOver = l.cycle == nil && l.phase == measuring && (l.plan.listed != nil || l.plan.Duration > 0 && l.sliceEnd >= l.phaseEnd)
	return true
}

// countsByAnswers tells whether the turn's window begins and ends with a response: in the closed model, after a ramp.
func (l *loop) countsByAnswers() bool {
	s := l.shared
	return !s.alone && l.plan.Rate == 0 && s.pace.ramp > 0 && l.phase == measuring
}

// drainEnd is until when the loop waits for outstanding responses, on the run's clock.
func (l *loop) drainEnd() int64 {
	p := &l.shared.pace
	if l.isAtEdge && l.shared.countTo.Load() == 0 {
		return l.sliceEnd + max(p.patience, longestDrain)
	}
	return min(l.sliceEnd+p.patience, max(l.sliceEnd, l.lastEnd)+p.quiet)
}

// endTurn gives the loop back to run.turn, which waits for all loops of the side.
func (l *loop) endTurn() {
	l.left, l.answered = l.turnEnded(), l.responses
	l.shared.back <- l
}

// turnEnded is when the time under load ended, on the run's clock: where responses begin and end a window, as long after steadyFrom as
// these are from each other; otherwise at the turn's end, or with the last response of a turn whose drain counts.
func (l *loop) turnEnded() int64 {
	s := l.shared
	switch {
	case s.alone:
		return l.clock
	case l.plan.listed != nil && l.phase == measuring:
		return max(l.steadyFrom, min(l.clock, l.steadyFrom+l.plan.span))
	case l.countsByAnswers():
		from, to := cmp.Or(s.countFrom.Load(), l.steadyFrom), cmp.Or(s.countTo.Load(), l.clock)
		return l.steadyFrom + max(0, to-from)
	case l.plan.Rate > 0 || s.pace.ramp > 0:
		return max(l.steadyFrom, min(l.clock, l.sliceEnd))
	case l.lastEnd > s.began:
		return l.lastEnd
	}
	return l.clock
}

// setCounting sets where events count: in the present second, in the present cycle, or (off) outside of the window.
func (l *loop) setCounting(on bool) {
	switch {
	case !on:
		l.current = l.outside
	case l.cycle != nil:
		l.current = &l.cycle.interval
	default:
		l.current = l.interval
	}
}

// awaitTurn waits for the next turn. Meanwhile it reads the responses that the drain has not waited for, and they count.
func (l *loop) awaitTurn() {
	if l.readsLate {
		l.spread = 0
		l.setCounting(l.phase != warmedUp && !l.countsByAnswers())
	}
	for l.readsLate && len(l.resume) == 0 {
		n := l.waitYielding(l.events[:eventsWithHandshakes], longestWait)
		l.clock = l.shared.now()
		l.handle(n)
		l.startQueued()
		if l.timeoutCheckFrom > 0 || l.clock >= l.nextTimeoutCheck {
			l.checkTimeouts()
		}
	}
	<-l.resume
	l.readsLate = false
}

// reopen opens connections that the server has closed meanwhile.
func (l *loop) reopen() {
	if !l.plan.KeepAlive || l.plan.divided {
		return
	}
	l.isReopening, l.spread = true, 0
	defer func() { l.isReopening = false }()
	left := len(l.conns) // Each slot once, in case the server closes what it accepts
	for deadline := l.clock + longestReopening; l.clock < deadline && !l.shared.stop.Load(); l.clock = l.shared.now() {
		n := l.poll(l.events[:eventsPerWait])
		l.handle(n)
		l.startQueued()
		if n > 0 {
			continue
		}
		isOpening := l.isOpening()
		if l.open == len(l.conns) && !isOpening {
			return
		}
		before := left
		for i := range l.conns {
			if c := &l.conns[i]; c.state == closed && !c.backingOff && before-left < startsPerIteration && left > 0 {
				c.connect()
				left--
			}
		}
		switch {
		case left < before:
			continue
		case !isOpening:
			return
		}
		l.handle(l.waitExactly(l.events[:eventsWithHandshakes], int64(time.Millisecond)))
	}
}

// isOpening tells whether a connection is being opened for which no attempt waits.
func (l *loop) isOpening() bool {
	for i := range l.conns {
		if c := &l.conns[i]; (c.state == connecting || c.state == handshaking) && c.session.underWay() == 0 {
			return true
		}
	}
	return false
}
