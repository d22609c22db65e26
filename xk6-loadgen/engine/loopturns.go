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

func (s turnState) starts() bool { return s == opening || s == steady }

// isAtEdge tells whether counting begins or ends with one of the next responses.
func (s turnState) isAtEdge() bool { return s == opening || s == concluding }

// turnEvent is an event that may change a turnState.
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
		l.turn.state = over
		return
	}
	switch l.turn.state {
	case resting, listening:
		if event == turnComes {
			l.turn.state = joining
		}
	case joining:
		if event == allReady {
			l.turn.state = steady
			if l.window.phase != unbegun && l.isByResponses() {
				l.turn.state = opening
			}
			l.counts.set(l.turn.state == steady)
		}
	case opening:
		switch {
		case event == timeIsUp:
			l.closeTurn()
		case event == polled && l.isPast(&s.turn.countFrom) && !l.isPast(&s.turn.countTo):
			l.turn.state = steady
			l.counts.set(true)
		}
	case steady:
		if event == timeIsUp {
			l.closeTurn()
		}
	case concluding:
		switch {
		case event == turnDone:
			l.leaveTurn()
		case event == polled && l.isPast(&s.turn.countTo):
			l.turn.state = awaiting
			l.counts.set(false)
		case event == polled && l.isPast(&s.turn.countFrom):
			l.counts.set(true) // The window's first response comes after sliceEnd
		}
	case awaiting:
		if event == turnDone {
			l.leaveTurn()
		}
	}
}

func (l *loop) closeTurn() {
	l.turn.state = awaiting
	if l.countsByAnswers() {
		l.turn.state = concluding
		if l.shared.turn.inOneTurn && l.shared.turn.countFrom.CompareAndSwap(0, l.turn.steadyFrom) {
			l.shared.enterCPU() // No response came in the whole window
		}
	}
	if l.growth.next < never {
		l.noteQueue()
	}
	if l.number == 0 && l.plan.Rate > 0 && l.shared.turn.ramp > 0 {
		l.shared.leaveCPU()
	}
}

func (l *loop) leaveTurn() {
	l.turn.state = resting
	if l.counts.outstanding > 0 {
		l.turn.state = listening
	}
}

// isPast tells whether an edge is set, and was before the loop's last poll.
func (l *loop) isPast(edge *atomic.Int64) bool {
	at := edge.Load()
	return at > 0 && l.clock > at
}

// loopTurn is a loop's part in the turns of its side.
type loopTurn struct {
	resume chan struct{} // resume begins a turn; closed, it ends a loop that has not begun.
	state  turnState
	// Requests that start before recordFrom have no latency. At a rate those due before dueFrom do not count. See turn for the others.
	began, steadyFrom, sliceEnd, recordFrom, dueFrom int64
	// older attempts began in earlier turns. left is when the time under load ended, answered the responses by the turn's begin or end.
	older, left, answered int64
	// waited is how long the thread waited for a core in the turn, known when it is over.
	waited      int64
	waitIsKnown bool
	sawNothing  bool // the last poll and wait found no events
}

// records tells whether latencies from this start on count: of requests of earlier turns, or from this turn's window.
func (t *loopTurn) records(start int64) bool { return start < t.began || start >= t.recordFrom }

func (t *loopTurn) endBy(at int64) { t.sliceEnd = min(t.sliceEnd, at) }

// joinTurn begins the turn together with the side's other loops. The last one to be ready sets the turn's times, and each copies them.
func (l *loop) joinTurn() {
	s := l.shared
	l.advanceTurn(turnComes)
	l.clock = s.now()
	if l.window.phase == measuring || l.window.phase == warmedUp {
		l.reopen()
	}
	l.turn.answered, l.turn.older = l.counts.responses, l.counts.outstanding
	s.gate.pass(
		func() { s.beginTurn(l.window.phase == warmedUp || l.window.phase == unbegun && l.plan.Warmup == 0) },
		func() { l.poller.pause(10 * time.Microsecond) },
	)
	l.coreWait.Read()
	l.clock, l.turn.began, l.turn.steadyFrom, l.turn.sliceEnd = s.turn.began, s.turn.began, s.turn.steadyFrom, s.turn.sliceEnd
	l.starts.restart(s.turn.pace.spread)
	l.model.beginTurn()
	l.advanceTurn(allReady)
	l.turn.recordFrom, l.turn.dueFrom = 0, 0
	switch {
	case s.alone || l.window.phase == unbegun:
	case l.plan.Rate > 0:
		l.turn.recordFrom, l.turn.dueFrom = l.turn.steadyFrom, l.turn.steadyFrom
	case l.turn.state == opening:
		l.turn.recordFrom = l.turn.steadyFrom
	default:
		l.turn.recordFrom = never // The first requests of a turn meet no queue
	}
}

// setEdge is called after an iteration with responses or failures. The side's first iteration of that kind since steadyFrom is the edge at
// which counting begins, the first one since sliceEnd that at which it ends.
func (l *loop) setEdge() {
	s := l.shared
	if l.clock >= l.turn.steadyFrom && s.turn.countFrom.CompareAndSwap(0, l.clock) {
		s.enterCPU()
	}
	if l.turn.state == concluding && s.turn.countTo.CompareAndSwap(0, l.clock) {
		s.leaveCPU()
	}
}

// nextTurn ends the loop's turn, lets the other sides have theirs, and begins the next one as if no time had passed.
func (l *loop) nextTurn() {
	s := l.shared
	l.gap.leave(l.turn.began)
	before := s.turn.away
	l.advanceTurn(turnDone)
	l.endTurn()
	l.awaitTurn()
	l.joinTurn()
	if l.window.phase == warmedUp {
		l.beginWindow()
	} else {
		l.shift(s.turn.away - before)
		if l.cycle != nil && s.cycle.isOver {
			l.endCycle(s.cycle.counts)
			isOver := l.share.left == 0 && l.counts.outstanding == 0
			if l.plan.Duration > 0 {
				isOver = l.window.phaseEnd <= l.turn.steadyFrom
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
	l.window.phaseEnd += by
	l.window.nextTick += by
	between := l.shared.turn.between
	// The requests that are due in a ramp are made, and do not count.
	l.model.shift(between - l.shared.turn.ramp)
	l.samples.shift(between)
}

// hasMoreDue is called between turns at a rate. It tells whether the loop still has requests to make in its window.
func (l *loop) hasMoreDue() bool {
	if l.window.phase != measuring {
		return true
	}
	if l.plan.Requests > 0 {
		return l.share.left > 0
	}
	return l.window.phaseEnd > l.turn.left
}

// endSliceEarly fits the turn to the rest of the window. A rest of less than a quarter of a turn gets no turn of its own.
func (l *loop) endSliceEarly() {
	switch {
	case l.shared.alone || l.window.phase != measuring:
	case l.plan.Duration > 0:
		if soon := l.shared.turn.length / 4; l.window.phaseEnd < l.turn.sliceEnd+soon {
			l.turn.sliceEnd = l.window.phaseEnd
		}
	case l.share.left == 0 && l.shared.quota.Load() <= 0:
		l.turn.endBy(l.clock)
	}
}

// turnIsDone is called in each iteration after sliceEnd. It tells whether the drain is over.
func (l *loop) turnIsDone() bool {
	l.advanceTurn(timeIsUp)
	// Responses that have come by the end of the drain are read first: the loop itself may have been late.
	awaited := l.counts.outstanding - max(0, l.turn.older)
	if l.shared.turn.isEmpty {
		awaited = l.counts.outstanding
	}
	end := l.drainEnd()
	return awaited <= 0 || l.clock >= end && (l.turn.sawNothing || l.clock >= end+longestServerWork)
}

// wasLastTurn tells whether the window is over with the turn that is done. In cycles it is over once the last one counts, see nextTurn.
func (l *loop) wasLastTurn() bool {
	return l.cycle == nil && l.window.phase == measuring && l.plan.Duration > 0 && l.turn.sliceEnd >= l.window.phaseEnd
}

// isByResponses tells whether the windows of turns begin and end with a response: in the closed model, after a ramp.
func (l *loop) isByResponses() bool {
	return !l.shared.alone && l.plan.Rate == 0 && l.shared.turn.pace.ramp > 0
}

// countsByAnswers tells whether isByResponses is true of the present turn, which is no warm-up.
func (l *loop) countsByAnswers() bool { return l.window.phase == measuring && l.isByResponses() }

// drainEnd returns the time, on the run's clock, until which the loop waits for outstanding responses.
func (l *loop) drainEnd() int64 {
	p := &l.shared.turn.pace
	if l.turn.state == concluding && l.shared.turn.countTo.Load() == 0 {
		return l.turn.sliceEnd + max(p.patience, longestDrain)
	}
	if l.window.phase == warmedUp {
		// Answers that take longer than a stretch come in its drain, and the pace is chosen by their latencies.
		return l.turn.sliceEnd + max(p.patience, 2*l.warmup.slowest)
	}
	return min(l.turn.sliceEnd+p.patience, max(l.turn.sliceEnd, l.counts.lastEnd)+p.quiet)
}

// endTurn gives the loop back to run.turn, which waits for all loops of the side.
func (l *loop) endTurn() {
	l.turn.left, l.turn.answered = l.turnEnded(), l.counts.responses
	l.turn.waited, l.turn.waitIsKnown = l.coreWait.Read()
	l.shared.gate.back <- l
}

// turnEnded is when the time under load ended, on the run's clock: where responses begin and end a window, as long after steadyFrom as
// these are from each other; otherwise at the turn's end, or with the last response of a turn whose drain counts.
func (l *loop) turnEnded() int64 {
	s := l.shared
	switch {
	case s.alone:
		return l.clock
	case l.countsByAnswers():
		from, to := cmp.Or(s.turn.countFrom.Load(), l.turn.steadyFrom), cmp.Or(s.turn.countTo.Load(), l.clock)
		return l.turn.steadyFrom + max(0, to-from)
	case l.plan.Rate > 0 || s.turn.pace.ramp > 0:
		return max(l.turn.steadyFrom, min(l.clock, l.turn.sliceEnd))
	case l.counts.lastEnd > s.turn.began:
		return l.counts.lastEnd
	}
	return l.clock
}

// awaitTurn waits for the next turn. Meanwhile it reads the responses that the drain has not waited for, and they count.
func (l *loop) awaitTurn() {
	if l.turn.state == listening {
		l.starts.spread = 0
		l.counts.set(l.window.phase != warmedUp && !l.countsByAnswers())
	}
	for l.turn.state == listening && len(l.turn.resume) == 0 {
		n := l.poller.waitYielding(l.events[:eventsWithHandshakes], longestWait)
		l.clock = l.shared.now()
		l.handle(n)
		l.startQueued()
		if l.timeouts.from > 0 || l.clock >= l.timeouts.next {
			l.checkTimeouts()
		}
	}
	<-l.turn.resume
}

// reopen opens connections that the server has closed meanwhile.
func (l *loop) reopen() {
	if !l.plan.KeepAlive || l.plan.divided {
		return
	}
	l.starts.spread = 0
	left := len(l.conns) // Each slot once, in case the server closes what it accepts
	for deadline := l.clock + longestReopening; l.clock < deadline && !l.shared.stop.Load(); l.clock = l.shared.now() {
		n := l.poller.poll(l.events[:eventsPerWait])
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
		l.handle(l.poller.wait(l.events[:eventsWithHandshakes], int64(time.Millisecond)))
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
