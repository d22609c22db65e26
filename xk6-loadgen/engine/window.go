package engine

// shortestHang: no request is called hung that has waited for less, however fast the others were.
const shortestHang = second

// hangOfLatencies: nor one that has waited for less than so many times p99.9 of the latency. Where requests queue for longer than
// the load lasts, those at the queue's end are older than all that were answered, and have only not had their turn.
const hangOfLatencies = 2

// unsentUntil is up to when attempts of the open model were due.
func (l *loop) unsentUntil() int64 {
	switch {
	case l.plan.Requests > 0 && !l.shared.stop.Load():
		// All that were asked for have been made.
		return 0
	case l.plan.Duration > 0:
		return min(l.clock, l.phaseEnd, l.sliceEnd)
	}
	return min(l.clock, l.sliceEnd)
}

// beginWindow starts the measured window now.
func (l *loop) beginWindow() {
	s := l.shared
	from := max(l.clock, l.steadyFrom)
	l.phase = measuring
	s.open(from)
	l.openWindow(from)
	origin := s.windowStart + s.away
	l.phaseEnd = origin + int64(l.plan.Duration)
	l.nextTick, l.nextSample = from+second, from+threadSampleEvery
	l.sampleFrom, l.sampleBase = from, 0
	for i := range l.conns {
		c := &l.conns[i]
		c.responses, c.firstAt = 0, 0
		if l.plan.divided {
			c.left = share(l.plan.Requests, l.plan.Connections, l.connection(i))
			l.allowance += c.left
		}
	}
	if l.plan.Rate > 0 {
		// Each loop makes those that its schedule has: the others have no part in what it could not send in time.
		l.allowance = share(l.plan.Requests, l.plan.Threads, l.number)
		l.schedule.begin(origin)
		if !s.alone {
			l.startCycles()
		}
	}
	l.startAll()
}

// openWindow sets all counts to zero: what was counted so far was warm-up.
func (l *loop) openWindow(from int64) {
	l.windowStart = from - l.shared.away
	l.quiet = quiet{since: l.clock}
	l.warmup, l.responses, l.failures = l.responses+l.failures, 0, 0
	l.interval.Counts, l.outside.Counts = Counts{}, Counts{}
	l.interval.latency.reset()
	l.connectTimes.reset()
	l.firstByteTimes.reset()
	if l.sendDelays != nil {
		l.sendDelays.reset()
		l.waits.reset()
	}
	clear(l.bucketCounts)
	l.example = ""
}

// sampleThread notes this thread's responses per second since the last sample, as wrk does.
func (l *loop) sampleThread() {
	if elapsed := l.clock - l.sampleFrom; elapsed > 0 {
		l.threadRps = append(l.threadRps, float64(l.counted()-l.sampleBase)*1e9/float64(elapsed))
	}
	l.sampleFrom, l.sampleBase = l.clock, l.counted()
	l.nextSample = l.clock + threadSampleEvery
}

// counted are the responses of the window.
func (l *loop) counted() int64 { return l.responses - l.outside.ResponseTotal() }

// handOver gives the second that ends now to the collector. When the collector is behind, the second is left to grow
// and goes out with the next one: nothing is lost and the loop never waits.
func (l *loop) handOver() {
	select {
	case next := <-l.spare:
		done := l.interval
		l.clock = l.shared.now()
		done.cpu = l.shared.readCPU(l.clock)
		done.end, done.connections, done.measured = done.cpu.at, l.open, true
		l.interval = next
		if l.current == done {
			l.current = next
		}
		l.shared.intervals <- done
	default:
	}
}

// noteUnanswered notes, of the attempts under way at the window's end, the ages of those that may be hung, and what has not
// even left.
func (l *loop) noteUnanswered() {
	look := func(due int64) {
		age := l.clock - due
		l.noteWait(age, 1)
		if age > shortestHang {
			l.overdue = append(l.overdue, age)
		}
	}
	for i := range l.conns {
		l.conns[i].session.eachDue(look)
		l.conns[i].noteStuck(l.clock)
	}
}

// finish closes the window, hands the last interval over and closes all connections.
func (l *loop) finish() {
	l.clock = l.shared.now()
	l.endCPU = l.shared.readCPU(l.turnEnded())
	l.inFlight, l.windowEnd = l.outstanding, l.endCPU.at
	l.leaveCycles()
	if l.phase == measuring {
		l.endMeasuring()
	} else {
		// Stopped during warm-up: the window is empty.
		l.openWindow(l.turnEnded())
	}
	if s := l.shared; s.alone {
		s.ending.Lock()
		s.server.own = s.server.processes.CPU() - s.server.last
		s.ending.Unlock()
	}
	l.warmup += l.outside.Requests
	last := l.interval
	last.end, last.last, last.connections, last.cpu, last.measured = l.windowEnd, true, l.open, l.endCPU, l.phase == measuring
	for i := range l.conns {
		l.conns[i].close()
	}
	l.shared.intervals <- last
}

// endMeasuring notes what is known only at the window's end.
func (l *loop) endMeasuring() {
	most := never
	if l.plan.Requests > 0 {
		most = l.allowance
	}
	l.unsent = l.schedule.missed(l.unsentUntil(), most, func(due, count int64) { l.noteWait(l.clock-due, count) })
	if l.plan.Requests > 0 && !l.shared.stop.Load() && l.responses+l.failures > 0 && (l.shared.alone || l.plan.Rate == 0) {
		// In count mode the window ends with the last response, not when the loop has noticed that it was the last.
		l.windowEnd = max(l.lastEnd, l.steadyFrom) - l.shared.away
	}
	if window := float64(l.windowEnd - l.windowStart); window > 0 {
		for i := range l.conns {
			l.connRps = append(l.connRps, l.conns[i].rps(l.windowStart, l.windowEnd))
		}
		if len(l.threadRps) == 0 {
			l.threadRps = append(l.threadRps, float64(l.counted())*1e9/window)
		}
	}
	l.endSilence(l.clock)
	l.noteUnanswered()
}
