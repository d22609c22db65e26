package engine

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A request is hung after shortestHang, and after hangOfLatencies times p99.9. A younger one may be at the end of a long queue.
	shortestHang    = second
	hangOfLatencies = 2
	// Loops go on this long after the last one arrived: by then each has seen that, as none waits longer than longestWait.
	barrierDelay = longestWait + 10*int64(time.Millisecond)
	recheckEvery = int64(time.Millisecond) // how often a warm-up checks whether it may end
)

// phase is a loop's place in the load. The package comment has a picture of the transitions, advancePhase makes most of them.
type phase int

const (
	unbegun  phase = iota
	probing        // requests are made one at a time, see probeRequests
	reaching       // before the load of a rate, each connection makes its first request
	warming
	warmedUp // the first turn was the warm-up, the next one opens the window
	draining // the requests of the warm-up are awaited, so that a count is exact
	drained  // nothing is under way. Once all loops are drained they open the window together.
	measuring
)

// window is a loop's place in the load, and the bounds of its window in nanoseconds under load. Other times are the run's clock.
type window struct {
	phase    phase
	phaseEnd int64
	start    int64
	nextTick int64 // when the next second is handed over
}

// loopOutcome holds a loop's facts at its window's end, besides its counts and its tally.
type loopOutcome struct {
	end      int64 // under load
	endCPU   cpuReading
	inFlight int64
	overdue  []int64 // overdue are the ages of the attempts under way that may be hung.
	unsent   int64
	connRps  []float64
	// rpsByHalf is of the window's halves, the first of which ends with a sample; zero where they are not known.
	rpsByHalf [2]float64
}

// barrier holds loops that arrive at different times, so that they go on at the same one.
type barrier struct {
	arrived atomic.Int32
	at      atomic.Int64
}

// arrive is called once by each loop. The last one sets when all go on.
func (b *barrier) arrive(now int64, loops int) {
	if int(b.arrived.Add(1)) == loops {
		if loops > 1 {
			now += barrierDelay
		}
		b.at.Store(now)
	}
}

// due returns the time, on the run's clock, at which all go on; never as long as a loop is missing.
func (b *barrier) due() int64 { return cmp.Or(b.at.Load(), never) }

// windowOpening is the state that a side's loops share to open the window together.
type windowOpening struct {
	// reached counts loops whose kept connections have had a response, drained those whose warm-up has drained.
	reached, drained barrier
	// The first loop sets the window's begin, in time under load, and the process's CPU time by then.
	once        sync.Once
	opened      bool
	windowStart int64
	startCPU    cpuReading
	ending      sync.Mutex // held by a loop that reads the server's CPU time at its end
}

// open opens the window for all loops of a side. The first loop to call it sets the begin.
func (s *shared) open(at int64) {
	s.opening.once.Do(func() {
		s.opening.opened, s.opening.startCPU = true, s.readCPU(at)
		s.opening.windowStart = s.opening.startCPU.at
		if s.alone {
			s.server.last = s.server.processes.CPU()
		}
	})
}

// awaitsAll tells whether the window waits for each kept connection's first response. Several processes open their windows by the clock.
func (p *plan) awaitsAll() bool { return p.KeepAlive && p.Segment.IsWhole() }

// begin starts the warm-up. At a rate all connections make a first request before it, since all at once would be a long queue.
func (l *loop) begin() {
	l.window.nextTick, l.samples.next = never, never
	l.reach.progress(l.clock)
	switch {
	case l.plan.Rate > 0 && l.plan.awaitsAll():
		l.window.phase, l.window.phaseEnd = reaching, never
	case l.plan.Rate == 0 && (!l.shared.alone || l.plan.Segment.IsWhole()):
		l.window.phase, l.window.phaseEnd = probing, never
		if l.number == 0 {
			l.starts.push(&l.conns[0])
		}
		return
	default:
		l.beginWarmup(l.clock)
	}
	l.startAll()
}

// isProbed tells whether probing is over, with so many requests ended after this time. One answer of a slow server is enough.
func isProbed(ended, waited int64) bool {
	return ended >= probeRequests || ended > 0 && waited >= probeLimit || waited >= longestProbe
}

// endProbing notes the latency without a queue, and lets the connections of all loops begin at the same time.
func (l *loop) endProbing() {
	s := l.shared
	if l.number == 0 && s.probe.doneAt.Load() == 0 && isProbed(l.counts.ended(), l.clock-s.turn.began) {
		if l.counts.interval.latency.count > 0 {
			s.probe.latency = l.counts.interval.latency.min
		}
		doneAt := l.clock
		if l.plan.Threads > 1 {
			doneAt += barrierDelay
		}
		s.probe.doneAt.Store(doneAt)
	}
	doneAt := s.probe.doneAt.Load()
	if doneAt == 0 || l.clock < doneAt {
		return
	}
	l.reach.progress(l.clock)
	if s.probe.latency > 0 {
		// The answers of a server that waits would all come at once otherwise, wave after wave, and a window would have a wave more or less.
		l.turn.began = doneAt
		l.starts.restart(s.probe.latency)
	}
	l.beginWarmup(doneAt)
	l.startAll()
}

// beginWarmup begins the warm-up. Its first part, in which connections open, is not judged.
func (l *loop) beginWarmup(at int64) {
	l.window.phase = warming
	l.beginStretch(0, at, at+max(l.plan.unjudgedWarmup(), l.starts.spread))
	l.warmup.began = at
	l.model.begin(at)
}

// advancePhase makes the transitions that depend on time or on other loops. In the window it takes the samples that are due instead.
func (l *loop) advancePhase() {
	switch l.window.phase {
	case probing:
		l.endProbing()
	case warming:
		if l.warmup.stretch.isMarking() {
			l.mark()
		}
		switch {
		case l.clock < l.window.phaseEnd:
		case l.plan.awaitsAll() && l.clock < l.shared.opening.reached.due():
			l.window.phaseEnd = min(l.clock+recheckEvery, l.shared.opening.reached.due())
		case !l.endStretch():
		case !l.shared.alone:
			l.window.phase = warmedUp
			l.turn.endBy(l.clock)
		case l.plan.Requests > 0 && l.plan.Rate == 0:
			l.window.phase = draining
		default:
			l.beginWindow()
		}
	case measuring:
		if l.clock >= l.growth.next {
			l.noteQueue()
		}
		if l.clock >= l.samples.next && l.turn.state.starts() {
			l.samples.take(l.clock, l.counts.inWindow())
			l.stamp(len(l.samples.perSecond)%stampedSampleIn == 1)
		}
		if l.clock >= l.window.nextTick && l.turn.state.starts() {
			// finish hands over the last second: the last response of a number of requests may be read late, and those of a rate may leave
			// after the window's end.
			isByChance := l.plan.Arrivals == PoissonArrivals && l.share.left > 0 // its last request may be due after N/rate
			hasNoEnd := l.plan.Duration == 0 && (l.plan.Rate == 0 || isByChance)
			if (hasNoEnd || l.clock < l.window.phaseEnd) && !l.ended() {
				l.handOver()
			}
			origin := l.window.start + l.shared.turn.away
			l.window.nextTick = origin + ((l.clock-origin)/second+1)*second
		}
	}
	if l.reach.arrives(l.clock, l.turn.began) {
		l.shared.opening.reached.arrive(l.clock, l.plan.Threads)
	} else if l.window.phase == draining && l.counts.outstanding == 0 {
		l.window.phase = drained
		l.shared.opening.drained.arrive(l.clock, l.plan.Threads)
	}
	if l.window.phase == reaching && l.clock >= l.shared.opening.reached.due() {
		l.beginWarmup(l.shared.opening.reached.due())
	} else if l.window.phase == drained && l.clock >= l.shared.opening.drained.due() {
		l.beginWindow()
	}
}

// beginWindow opens the window: counts, shares of a number of requests and times begin anew. Attempts under way count when they end.
func (l *loop) beginWindow() {
	s := l.shared
	from := max(l.clock, l.turn.steadyFrom)
	l.window.phase = measuring
	s.open(from)
	l.resetCounts(from)
	origin := s.opening.windowStart + s.turn.away
	l.window.phaseEnd = origin + l.plan.window()
	l.window.nextTick = from + second
	l.samples.restart(from, int64(l.plan.Duration))
	for i := range l.conns {
		c := &l.conns[i]
		c.responses, c.firstAt = 0, 0
	}
	l.model.beginWindow(origin)
	switch {
	case l.plan.Rate == 0:
	case s.alone:
		if l.plan.Requests > 0 {
			l.turn.dueFrom = origin // The requests of the warm-up are no part of the count
		}
		l.watchQueue(from, l.window.phaseEnd)
	default:
		l.startCycles()
	}
	l.startAll()
}

// resetCounts leaves out what was counted so far: the warm-up.
func (l *loop) resetCounts(from int64) {
	l.window.start = from - l.shared.turn.away
	l.gap.restart(l.clock)
	l.hope.hasAnswered = l.hope.hasAnswered || l.counts.responses > 0
	l.counts.reset()
	l.tally.reset()
}

// handOver sends the second to the collector, and goes on with a spare interval. If there is none the second grows: a loop never waits.
func (l *loop) handOver() {
	done := l.counts.nextSecond()
	if done == nil {
		return
	}
	l.clock = l.shared.now()
	done.cpu = l.shared.readCPU(l.clock)
	done.end, done.connections, done.measured = done.cpu.at, l.open, true
	l.shared.intervals <- done
}

// ended tells whether the loop is through: it was stopped, its window is over, or all of its requests are answered.
func (l *loop) ended() bool {
	if l.shared.stop.Load() {
		return true
	}
	if l.window.phase != measuring {
		return false
	}
	if l.turn.state == over {
		return true
	}
	if l.cycle != nil || l.plan.Duration > 0 {
		return l.shared.alone && l.clock >= l.window.phaseEnd
	}
	if l.shared.alone && l.plan.Rate > 0 && l.clock < l.window.phaseEnd {
		return false
	}
	return l.counts.outstanding == 0 && l.share.left == 0 && l.shared.quota.Load() <= 0
}

// finish ends the loop's window, closes its connections and sends its last interval. Attempts under way become InFlight.
func (l *loop) finish() {
	s := l.shared
	l.clock = s.now()
	l.outcome.endCPU = s.readCPU(l.turnEnded())
	l.outcome.inFlight, l.outcome.end = l.counts.outstanding, l.outcome.endCPU.at
	l.leaveCycles()
	if l.window.phase == measuring {
		l.endMeasuring()
	} else {
		l.resetCounts(l.turnEnded()) // Stopped during the warm-up: the window is empty
	}
	if s.alone {
		s.opening.ending.Lock()
		s.server.own = s.server.processes.CPU() - s.server.last
		s.opening.ending.Unlock()
	}
	l.counts.warmup += l.counts.outside.Requests
	last := l.counts.interval
	last.end, last.last, last.connections, last.cpu, last.measured = l.outcome.end, true, l.open, l.outcome.endCPU, l.window.phase == measuring
	if l.window.phase == measuring {
		s.memory.Do(func() { s.memory.bytes = s.server.processes.Memory() }) // Others wait, and keep their connections
	}
	for i := range l.conns {
		l.conns[i].close()
	}
	s.intervals <- last
}

// endMeasuring records what had no response by the window's end: requests that did not leave, and the waits of those under way.
func (l *loop) endMeasuring() {
	dueUntil := min(l.clock, l.turn.sliceEnd)
	if l.plan.Duration > 0 {
		dueUntil = min(dueUntil, l.window.phaseEnd)
	}
	l.outcome.unsent = l.model.missed(dueUntil)
	switch isWhole := l.plan.Requests > 0 && !l.shared.stop.Load() && l.counts.ended() > 0; {
	case isWhole && l.plan.Rate == 0:
		// A count's window ends with the last response, not when the loop noticed that it was the last.
		l.outcome.end = max(l.counts.lastEnd, l.turn.steadyFrom) - l.shared.turn.away
	case isWhole && l.shared.alone:
		// The window of a rate ends one interval after its last request was due: one late answer would make fewer requests/s of all.
		l.outcome.end = l.window.phaseEnd
	}
	if l.shared.alone && l.growth.next < never {
		l.noteQueue()
	}
	if window := float64(l.outcome.end - l.window.start); window > 0 {
		for i := range l.conns {
			l.outcome.connRps = append(l.outcome.connRps, l.conns[i].rps(l.window.start, l.outcome.end))
		}
		if len(l.samples.perSecond) == 0 {
			l.samples.perSecond = append(l.samples.perSecond, float64(l.counts.inWindow())*1e9/window)
		}
		if s := &l.samples; s.half > 0 && int64(window) > s.half {
			l.outcome.rpsByHalf = [2]float64{float64(s.byHalf) * 1e9 / float64(s.half), float64(l.counts.inWindow()-s.byHalf) * 1e9 / (window - float64(s.half))}
		}
	}
	l.gap.end(l.clock)
	for i := range l.conns {
		c := &l.conns[i]
		c.session.eachDue(func(due int64) {
			age := l.clock - due
			l.noteWait(age, 1)
			if age > shortestHang {
				l.outcome.overdue = append(l.outcome.overdue, age)
			}
		})
		for _, d := range c.departures.waiting {
			l.tally.sendDelays.record(l.clock - d.due) // A server that reads nothing has requests that have not left
		}
	}
}

const (
	// The window no longer waits for connections without a response once none has got further for reachPatience, or for twice the time that
	// the first response took. Without any response it waits for firstPatience. It never waits for longer than longestReach.
	reachPatience = 2 * time.Second
	firstPatience = 10 * time.Second
	longestReach  = 120 * second
)

// reach tells whether all of a loop's slots have ended an attempt, for which the window waits (awaitsAll).
type reach struct {
	unreached    int   // unreached slots have ended none.
	lastProgress int64 // when one of these last got further, such as by a handshake
	arrived      bool  // Other loops need not wait for this one.
	patience     int64
	later        int64 // the least patience once a slot is reached; 0 from then on
}

// newReach waits for so many slots: for firstPatience and reachPatience, unless the options say otherwise.
func newReach(slots int, patience time.Duration) reach {
	return reach{unreached: slots, patience: int64(cmp.Or(patience, firstPatience)), later: int64(cmp.Or(patience, reachPatience))}
}

// progress notes that a slot without a response got further, so that it is waited for anew.
func (r *reach) progress(clock int64) { r.lastProgress = clock }

// reached notes the first response or error of a slot. It tells whether that was the last slot.
func (r *reach) reached(clock int64) (isLast bool) {
	if r.later > 0 {
		r.patience, r.later = max(r.later, 2*(clock-r.lastProgress)), 0
	}
	r.lastProgress = clock
	r.unreached--
	return r.unreached == 0
}

// arrives is true once: when all slots are reached, or are waited for no longer. began is the turn's begin.
func (r *reach) arrives(clock, began int64) bool {
	if r.arrived || r.unreached > 0 && clock <= min(r.lastProgress+r.patience, began+longestReach) {
		return false
	}
	r.arrived = true
	return true
}
