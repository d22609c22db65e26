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
		return min(l.clock, l.phaseEnd)
	}
	return l.clock
}

// beginWindow starts the measured window now.
func (l *loop) beginWindow() {
	l.phase = measuring
	l.shared.open(l.clock)
	l.openWindow()
	l.phaseEnd = l.shared.windowStart + int64(l.plan.Duration)
	l.nextTick, l.nextSample = l.clock+second, l.clock+threadSampleEvery
	l.sampleFrom, l.sampleBase = l.clock, 0
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
		l.schedule.begin(l.shared.windowStart)
	}
	l.startAll()
}

// openWindow sets all counts to zero: what was counted so far was warm-up.
func (l *loop) openWindow() {
	l.windowStart = l.clock
	l.quiet = quiet{since: l.clock}
	l.warmup, l.responses, l.failures = l.responses+l.failures, 0, 0
	l.current.Counts = Counts{}
	l.current.latency.reset()
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
		l.threadRps = append(l.threadRps, float64(l.responses-l.sampleBase)*1e9/float64(elapsed))
	}
	l.sampleFrom, l.sampleBase = l.clock, l.responses
	l.nextSample = l.clock + threadSampleEvery
}

// handOver gives the second that ends now to the collector. When the collector is behind, the second is left to grow
// and goes out with the next one: nothing is lost and the loop never waits.
func (l *loop) handOver() {
	select {
	case next := <-l.spare:
		done := l.current
		done.cpu = l.shared.readCPU()
		l.clock = done.cpu.at
		done.end, done.connections, done.measured = l.clock, l.open, true
		l.current = next
		l.shared.intervals <- done
	default:
	}
}

// noteUnanswered notes, of the attempts under way at the window's end, the ages of those that may be hung, and what has not
// even left.
func (l *loop) noteUnanswered() {
	look := func(due int64) {
		age := l.windowEnd - due
		l.noteWait(age, 1)
		if age > shortestHang {
			l.overdue = append(l.overdue, age)
		}
	}
	for i := range l.conns {
		l.conns[i].session.eachDue(look)
		l.conns[i].noteStuck(l.windowEnd)
	}
}

// finish closes the window, hands the last interval over and closes all connections.
func (l *loop) finish() {
	l.endCPU = l.shared.readCPU()
	l.clock = l.endCPU.at
	l.inFlight, l.windowEnd = l.outstanding, l.clock
	if l.phase == measuring {
		l.endMeasuring()
	} else {
		// Stopped during warm-up: the window is empty.
		l.openWindow()
	}
	last := l.current
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
	if l.plan.Requests > 0 && !l.shared.stop.Load() && l.responses+l.failures > 0 {
		// In count mode the window ends with the last response, not when the loop has noticed that it was the last.
		l.windowEnd = l.lastEnd
	}
	if window := float64(l.windowEnd - l.windowStart); window > 0 {
		for i := range l.conns {
			l.connRps = append(l.connRps, l.conns[i].rps(l.windowStart, l.windowEnd))
		}
		if len(l.threadRps) == 0 {
			l.threadRps = append(l.threadRps, float64(l.responses)*1e9/window)
		}
	}
	l.endSilence(l.windowEnd)
	l.noteUnanswered()
}
