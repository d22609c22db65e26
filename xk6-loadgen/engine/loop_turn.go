package engine

import (
	"syscall"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// A loop's part in its side's turns, whose order and length are those of turns.go.

// joinTurn begins the loop's turn together with the side's other loops, its connections opened again.
func (l *loop) joinTurn() {
	s := l.shared
	l.clock = s.now()
	if l.phase == measuring || l.phase == warmedUp {
		l.reopen()
		if l.number == 0 {
			s.awaitIdle()
		}
	}
	l.answered, l.older = l.responses, l.outstanding
	if s.ready.Add(1) == s.running {
		s.beginTurn(l.phase == warmedUp || l.phase == unbegun && l.plan.Warmup == 0)
		s.going.Store(true)
	}
	for !s.going.Load() {
		linux.Sleep(int64(10 * time.Microsecond))
	}
	l.clock, l.began, l.steadyFrom, l.sliceEnd = s.began, s.began, s.steadyFrom, s.sliceEnd
	l.turnIsOver, l.started, l.spread, l.recordFrom, l.stood = false, 0, s.pace.spread, 0, 0
	if !s.alone && l.plan.Rate == 0 && l.phase != unbegun {
		// The first requests of a turn meet no queue.
		l.recordFrom = never
	}
	l.setCounting(s.pace.ramp == 0)
}

// nextTurn waits for the loop's next turn, and begins it.
func (l *loop) nextTurn() {
	s := l.shared
	l.leaveSilence()
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
			l.windowIsOver = l.madeAll()
		}
		l.startAll()
	}
	l.endSliceEarly()
	l.nextTimer = l.clock
}

// shift moves what goes by the time under load, of which so much did not count, and the schedule of a rate to this turn.
func (l *loop) shift(by int64) {
	for _, at := range []*int64{&l.phaseEnd, &l.nextTick} {
		if *at < never {
			*at += by
		}
	}
	l.schedule.shift(l.shared.between)
	l.sampleFrom += l.shared.between
	if l.nextSample < never {
		l.nextSample += l.shared.between
	}
}

// endSliceEarly has the turn end with the window, where that ends within it or soon after it, and at once where all requests are made.
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

// madeAll tells whether nothing is left to be made at a rate.
func (l *loop) madeAll() bool {
	if l.plan.Duration > 0 {
		return l.phaseEnd <= l.began
	}
	return l.allowance == 0 && l.outstanding == 0
}

// turnIsDone tells whether the loop's turn is over and what was under way is answered, or awaited no longer.
func (l *loop) turnIsDone() bool {
	if !l.turnIsOver {
		l.turnIsOver = true
		if s := l.shared; s.pace.ramp > 0 {
			l.setCounting(false)
			if l.number == 0 {
				s.leaveCPU()
			}
		}
	}
	// What has come by the end of the drain is read first: the loop itself may have been kept from it.
	if end := l.drainEnd(); l.outstanding > max(0, l.older) && (l.clock < end || !l.sawNothing && l.clock < end+longestSelf) {
		return false
	}
	// At a rate it is over once its last cycle counts.
	l.windowIsOver = l.cycle == nil && l.phase == measuring && l.plan.Duration > 0 && l.sliceEnd >= l.phaseEnd
	return true
}

// drainEnd is how long those under way are awaited at a turn's end.
func (l *loop) drainEnd() int64 {
	p := &l.shared.pace
	return min(l.sliceEnd+p.patience, max(l.sliceEnd, l.lastEnd)+p.quiet)
}

// turnEnd is when the loop has something to do for its turn's end.
func (l *loop) turnEnd() int64 {
	if l.clock >= l.sliceEnd {
		return l.drainEnd()
	}
	return l.sliceEnd
}

// endTurn gives the turn back.
func (l *loop) endTurn() {
	l.left, l.answered = l.turnEnded(), l.responses
	l.shared.back <- l
}

// turnEnded is when the loop's time under load ended. A server at its limit works at full rate while its queue drains, up to the
// last answer; what a server waits for, and what is late at a rate, is not under load any more.
func (l *loop) turnEnded() int64 {
	s := l.shared
	switch {
	case s.alone:
		return l.clock
	case l.plan.Rate > 0 || s.pace.ramp > 0:
		return max(l.steadyFrom, min(l.clock, l.sliceEnd))
	case l.lastEnd > s.began:
		return l.lastEnd
	}
	return l.clock
}

// setCounting says whether what ends from now on is in the figures.
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

// wakeUp begins a loop's turn, wherever it waits for it.
func (l *loop) wakeUp() {
	if l.readsLate {
		// First, so that nothing is left to be read once the turn begins.
		syscall.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) //nolint:errcheck // an eventfd takes it
	}
	l.resume <- struct{}{}
}

// awaitTurn waits for the loop's next turn. Answers that come late are read meanwhile; they count.
func (l *loop) awaitTurn() {
	if !l.readsLate {
		<-l.resume
		return
	}
	l.spread = 0
	// Those of the warm-up are in no figure.
	l.setCounting(l.phase != warmedUp)
	for {
		select {
		case <-l.resume:
			var count [8]byte
			syscall.Read(l.wake, count[:]) //nolint:errcheck // it does not block
			l.readsLate = false
			return
		default:
		}
		// The Go scheduler is told, so that the processor is the others' meanwhile.
		n, _ := syscall.EpollWait(l.epoll, l.events[:eventsWithHandshakes], int(longestWait/int64(time.Millisecond)))
		l.clock = l.shared.now()
		l.handle(n)
		l.startSome()
		if l.sweepFrom > 0 || l.clock >= l.nextSweep {
			l.sweep()
		}
	}
}

// reopen opens again what the server has closed meanwhile, before the turn begins.
func (l *loop) reopen() {
	if !l.plan.KeepAlive || l.plan.divided {
		return
	}
	l.isReopening, l.spread = true, 0
	defer func() { l.isReopening = false }()
	// Each slot once: a server that closes what it accepts is for the turn to find out.
	left := len(l.conns)
	for deadline := l.clock + longestReopening; l.clock < deadline && !l.shared.stop.Load(); l.clock = l.shared.now() {
		n := max(0, linux.EpollWait(l.epoll, l.events[:eventsPerWait], 0))
		l.handle(n)
		l.startSome()
		if n > 0 {
			continue
		}
		if l.open == len(l.conns) && !l.isOpening() {
			return
		}
		opened := 0
		for i := range l.conns {
			if c := &l.conns[i]; c.state == closed && !c.paused && opened < startsPerTurn && left > 0 {
				c.connect()
				opened++
				left--
			}
		}
		if opened == 0 {
			if !l.isOpening() {
				return
			}
			l.handle(linux.EpollWaitExact(l.epoll, l.events[:eventsWithHandshakes], int64(time.Millisecond)))
		}
	}
}

// isOpening tells whether a connection is being opened that nothing is under way on.
func (l *loop) isOpening() bool {
	for i := range l.conns {
		if c := &l.conns[i]; (c.state == connecting || c.state == handshaking) && c.session.underWay() == 0 {
			return true
		}
	}
	return false
}
