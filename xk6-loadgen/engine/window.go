package engine

import "bakeoff.invalid/xk6-loadgen/internal/linux"

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
	l.openWindow()
	l.phaseEnd = l.clock + int64(l.plan.Duration)
	l.nextTick, l.nextSample = l.clock+second, l.clock+threadSampleEvery
	l.sampleFrom, l.sampleBase = l.clock, 0
	for i := range l.conns {
		c := &l.conns[i]
		c.responses, c.firstAt = 0, 0
		if l.plan.divided {
			// Slot i of loop n is connection i·threads + n: the connections that get one more are spread over the loops.
			c.left = share(l.plan.Requests, l.plan.Connections, i*l.plan.Threads+l.number)
			l.allowance += c.left
		}
	}
	if l.plan.Rate > 0 {
		// Each loop makes those that its schedule has: the others have no part in what it could not send in time.
		l.allowance = share(l.plan.Requests, l.plan.Threads, l.number)
		l.schedule.begin(l.clock)
	}
	l.startAll()
}

// openWindow sets all counts to zero: what was counted so far was warm-up.
func (l *loop) openWindow() {
	if l.shared.windowOpen.CompareAndSwap(false, true) {
		l.shared.windowCPU.Store(linux.ProcessCPU())
	}
	l.windowStart = l.clock
	l.warmup, l.requests = l.requests, 0
	l.current.Counts = Counts{}
	l.current.latency.reset()
	l.connectTimes.reset()
	l.firstByteTimes.reset()
	if l.sendDelays != nil {
		l.sendDelays.reset()
	}
	clear(l.bucketCounts)
	l.example = ""
}

// sampleThread notes this thread's requests/s since the last sample, as wrk does.
func (l *loop) sampleThread() {
	if elapsed := l.clock - l.sampleFrom; elapsed > 0 {
		l.threadRps = append(l.threadRps, float64(l.requests-l.sampleBase)*1e9/float64(elapsed))
	}
	l.sampleFrom, l.sampleBase = l.clock, l.requests
	l.nextSample = l.clock + threadSampleEvery
}

// handOver gives the second that ends now to the collector. When the collector is behind, the second is left to grow
// and goes out with the next one: nothing is lost and the loop never waits.
func (l *loop) handOver() {
	select {
	case next := <-l.spare:
		done := l.current
		done.end, done.connections, done.cpu = l.clock, l.open, linux.ProcessCPU()
		l.current = next
		l.shared.intervals <- done
	default:
	}
}

// finish closes the window, hands the last interval over and closes all connections.
func (l *loop) finish() {
	l.clock = l.shared.now()
	l.inFlight = l.outstanding
	if l.phase != measuring {
		// Stopped during warm-up: the window is empty.
		l.openWindow()
	}
	l.windowEnd = l.clock
	if l.phase == measuring {
		l.unsent = l.schedule.dueBefore(l.unsentUntil()) - l.schedule.taken
		if l.plan.Requests > 0 {
			l.unsent = min(l.unsent, l.allowance)
		}
	}
	if l.plan.Requests > 0 && !l.shared.stop.Load() && l.requests > 0 {
		// In count mode the window ends with the last response, not when the loop has noticed that it was the last.
		l.windowEnd = l.lastEnd
	}
	if window := float64(l.windowEnd - l.windowStart); window > 0 && l.phase == measuring {
		for i := range l.conns {
			l.connRps = append(l.connRps, l.conns[i].rps(l.windowStart, l.windowEnd))
		}
		if len(l.threadRps) == 0 {
			l.threadRps = append(l.threadRps, float64(l.requests)*1e9/window)
		}
	}
	l.endCPU = linux.ProcessCPU()
	last := l.current
	last.end, last.last, last.connections, last.cpu = l.windowEnd, true, l.open, l.endCPU
	for i := range l.conns {
		l.conns[i].close()
	}
	l.shared.intervals <- last
}
