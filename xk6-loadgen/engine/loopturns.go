package engine

import (
	"cmp"
	"sync/atomic"
	"time"
)

// longestReopening bounds how long a turn waits for connections that the server has closed meanwhile.
const longestReopening = second

// turnState is a loop's place in the turns of its side. Requests start while it is opening or steady, and in no other state.
//
//	                    ┌─► opening ──polled──┐             ┌─► concluding ──polled──┐
//	joining ──allReady──┤                     ├──timeIsUp───┤                        ├──► awaiting ──turnDone──► listening or resting
//	   ▲                └─────────► steady ◄──┘             └────────────────────────┘                                    │
//	   └──────────────────────────────────────────────────────────────────────────────────────────────turnComes───────────┘
//
// Only turns of isByResponses are opening and concluding. Time that is up ends an opening turn as well, and a concluding turn may be done
// without a response. A loop that is through is over, whatever its state was.
type turnState uint8

const (
	resting    turnState = iota // Other sides have their turns, and nothing is under way.
	listening                   // Other sides have their turns. The loop reads responses that the drain has not waited for; wake ends that.
	joining                     // The loop opens what the server has closed, and waits for the side's other loops.
	opening                     // The window begins with one of the next responses, see setEdge.
	steady                      // Events count. (At a rate those of the ramp do not: see dueFrom.)
	concluding                  // Nothing starts, and the window ends with one of the next responses, see setEdge.
	awaiting                    // Nothing starts, and responses are awaited, see drainEnd.
	over                        // The loop's window is over, or the loop has been stopped.
)

// starts tells whether requests may start.
func (s turnState) starts() bool { return s == opening || s == steady }

// isAtEdge tells whether counting begins or ends with one of the next responses.
func (s turnState) isAtEdge() bool { return s == opening || s == concluding }

// turnEvent is what may change a turnState.
type turnEvent uint8

const (
	turnComes turnEvent = iota // The side's next turn has come.
	allReady                   // The side's loops are ready, and the turn's times are set.
	polled                     // A poll has returned at l.clock. Its events are not handled yet: they come after a response that was an edge.
	timeIsUp                   // l.clock has reached sliceEnd.
	turnDone                   // Responses are awaited no longer, see turnIsDone.
	loopDone                   // The loop is through.
)

// advanceTurn makes the transition that an event causes, if it causes one. No other function changes the state.
func (l *loop) advanceTurn(event turnEvent) {
	s := l.shared
	if event == loopDone {
		l.turnState = over
		return
	}
	switch l.turnState {
	case resting, listening:
		if event == turnComes {
			l.turnState = joining
		}
	case joining:
		if event == allReady {
			l.turnState = steady
			if l.phase != unbegun && l.isByResponses() {
				l.turnState = opening
			}
			l.setCounting(l.turnState == steady)
		}
	case opening:
		switch {
		case event == timeIsUp:
			l.closeTurn()
		case event == polled && l.isPast(&s.countFrom) && !l.isPast(&s.countTo):
			l.turnState = steady
			l.setCounting(true)
		}
	case steady:
		if event == timeIsUp {
			l.closeTurn()
		}
	case concluding:
		switch {
		case event == turnDone:
			l.leaveTurn()
		case event == polled && l.isPast(&s.countTo):
			l.turnState = awaiting
			l.setCounting(false)
		case event == polled && l.isPast(&s.countFrom):
			l.setCounting(true) // The window's first response comes after sliceEnd
		}
	case awaiting:
		if event == turnDone {
			l.leaveTurn()
		}
	}
}

// closeTurn ends what starts.
func (l *loop) closeTurn() {
	l.turnState = awaiting
	if l.countsByAnswers() {
		l.turnState = concluding
		if l.shared.inOneTurn && l.shared.countFrom.CompareAndSwap(0, l.steadyFrom) {
			l.shared.enterCPU() // No response came in the whole window
		}
	}
	if l.growth.next < never {
		l.noteQueue()
	}
	if l.number == 0 && l.plan.Rate > 0 && l.shared.ramp > 0 {
		l.shared.leaveCPU()
	}
}

// leaveTurn lets the other sides have their turns.
func (l *loop) leaveTurn() {
	l.turnState = resting
	if l.outstanding > 0 {
		l.turnState = listening
	}
}

// isPast tells whether an edge is set, and was before the loop's last poll.
func (l *loop) isPast(edge *atomic.Int64) bool {
	at := edge.Load()
	return at > 0 && l.clock > at
}

// loopTurn is a loop's part in the turns of its side.
type loopTurn struct {
	resume    chan struct{} // resume begins a turn; closed, it ends a loop that has not begun.
	turnState turnState
	wakeFD    int // an eventfd in the loop's epoll
	// Latencies of requests that start before recordFrom are left out. At a rate requests that are due before dueFrom do not count. See turn
	// for the others.
	began, steadyFrom, sliceEnd, recordFrom, dueFrom int64
	started                                          int // started connections have begun in this turn, which they do one after the other over spread
	spread                                           int64
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
	l.advanceTurn(turnComes)
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
	l.started, l.spread, l.standstill = 0, s.pace.spread, 0
	l.advanceTurn(allReady)
	l.recordFrom, l.dueFrom = 0, 0
	switch {
	case s.alone || l.phase == unbegun:
	case l.plan.Rate > 0:
		l.recordFrom, l.dueFrom = l.steadyFrom, l.steadyFrom
	case l.turnState == opening:
		l.recordFrom = l.steadyFrom
	default:
		l.recordFrom = never // The first requests of a turn meet no queue
	}
}

// setEdge is called after an iteration with responses or failures. The side's first iteration of that kind since steadyFrom is the edge at
// which counting begins, the first one since sliceEnd that at which it ends.
func (l *loop) setEdge() {
	s := l.shared
	if l.clock >= l.steadyFrom && s.countFrom.CompareAndSwap(0, l.clock) {
		s.enterCPU()
	}
	if l.turnState == concluding && s.countTo.CompareAndSwap(0, l.clock) {
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
	l.advanceTurn(turnDone)
	l.endTurn()
	l.awaitTurn()
	l.joinTurn()
	if l.phase == warmedUp {
		l.beginWindow()
	} else {
		l.shift(s.away - before)
		if l.cycle != nil && s.cycleIsOver {
			l.endCycle(s.cycleCounts)
			isOver := l.allowance == 0 && l.outstanding == 0
			if l.plan.Duration > 0 {
				isOver = l.phaseEnd <= l.steadyFrom
			}
			if isOver {
				l.advanceTurn(loopDone)
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
		l.endTurnBy(l.clock)
	}
}

// endTurnBy has the turn end at this time, unless it ends before.
func (l *loop) endTurnBy(at int64) { l.sliceEnd = min(l.sliceEnd, at) }

// turnIsDone is called in each iteration after sliceEnd. It tells whether the drain is over.
func (l *loop) turnIsDone() bool {
	l.advanceTurn(timeIsUp)
	// Responses that have come by the end of the drain are read first: the loop itself may have been late.
	awaited := l.outstanding - max(0, l.older)
	if l.shared.isEmpty {
		awaited = l.outstanding
	}
	end := l.drainEnd()
	return awaited <= 0 || l.clock >= end && (l.sawNothing || l.clock >= end+longestServerWork)
}

// wasLastTurn tells whether the window is over with the turn that is done. In cycles it is over once the last one counts, see nextTurn.
func (l *loop) wasLastTurn() bool {
	return l.cycle == nil && l.phase == measuring && (l.plan.listed != nil || l.plan.Duration > 0 && l.sliceEnd >= l.phaseEnd)
}

// isByResponses tells whether the windows of turns begin and end with a response: in the closed model, after a ramp.
func (l *loop) isByResponses() bool {
	return !l.shared.alone && l.plan.Rate == 0 && l.shared.pace.ramp > 0
}

// countsByAnswers tells whether isByResponses is true of the present turn, which is no warm-up.
func (l *loop) countsByAnswers() bool { return l.phase == measuring && l.isByResponses() }

// drainEnd is until when the loop waits for outstanding responses, on the run's clock.
func (l *loop) drainEnd() int64 {
	p := &l.shared.pace
	if l.turnState == concluding && l.shared.countTo.Load() == 0 {
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
	if l.turnState == listening {
		l.spread = 0
		l.setCounting(l.phase != warmedUp && !l.countsByAnswers())
	}
	for l.turnState == listening && len(l.resume) == 0 {
		n := l.waitYielding(l.events[:eventsWithHandshakes], longestWait)
		l.clock = l.shared.now()
		l.handle(n)
		l.startQueued()
		if l.timeoutCheckFrom > 0 || l.clock >= l.nextTimeoutCheck {
			l.checkTimeouts()
		}
	}
	<-l.resume
}

// reopen opens connections that the server has closed meanwhile.
func (l *loop) reopen() {
	if !l.plan.KeepAlive || l.plan.divided {
		return
	}
	l.spread = 0
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
