package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// meetsAfter: of several loops the one that comes last sets the begin this much ahead: all have looked by then.
const meetsAfter = longestWait + 10*int64(time.Millisecond)

// meeting is how the loops of a run begin something together: when all have come.
type meeting struct {
	come atomic.Int32
	at   atomic.Int64
}

func (m *meeting) arrive(now int64, loops int) {
	if int(m.come.Add(1)) == loops {
		m.at.Store(meetingAt(now, loops))
	}
}

// meetingAt is when so many loops can begin something together that may do so now.
func meetingAt(now int64, loops int) int64 {
	if loops > 1 {
		return now + meetsAfter
	}
	return now
}

// due is when they begin, as far as that is known.
func (m *meeting) due() int64 {
	if at := m.at.Load(); at > 0 {
		return at
	}
	return never
}

// opening is how the loops of a run open the window.
type opening struct {
	// reached are loops whose kept connections have been answered, drained those of whose warm-up nothing is under way.
	reached, drained meeting
	// The first loop that opens it sets its begin, in time under load, and what CPU time the process had used by then.
	once        sync.Once
	opened      bool
	windowStart int64
	startCPU    cpuReading
	// ending is held by a loop that reads the server's CPU time at its end.
	ending sync.Mutex
}

// open: a loop opens the window.
func (s *shared) open(at int64) {
	s.once.Do(func() {
		s.opened, s.startCPU = true, s.readCPU(at)
		s.windowStart = s.startCPU.at
		if s.alone {
			s.server.last = s.server.processes.CPU()
		}
	})
}

const (
	// reachPatience: connections that are not answered are not awaited any more once none of them has got further for so long.
	reachPatience = 2 * int64(time.Second)
	// longestReach: nor where they do so without an end.
	longestReach = 2 * int64(time.Minute)
)

// looksAgain: in a warm-up that lasts longer for them.
const looksAgain = int64(time.Millisecond)

// awaitsAll tells whether the window begins once all kept connections have had an answer, or an error, be the warm-up over or not: many
// handshakes take a busy server long. Not where other processes have parts of the load: theirs go by the clock.
func (p *plan) awaitsAll() bool {
	return p.KeepAlive && p.Stripe.isWhole()
}

// begin starts the warm-up, at a rate only then: the first requests of all connections, all at once, would be a queue that a busy
// server takes long to work off.
func (l *loop) begin() {
	l.nextTick, l.nextSample, l.lastStep = never, never, l.clock
	switch {
	case l.plan.Rate > 0 && l.plan.awaitsAll():
		l.phase, l.phaseEnd = reaching, never
	case l.plan.Rate == 0 && !l.shared.alone:
		l.phase, l.phaseEnd = solo, never
		if l.number == 0 {
			l.startSoon(&l.conns[0])
		}
		return
	default:
		l.beginWarmup(l.clock)
	}
	l.startAll()
}

// endSolo lets all connections begin once the first one has made its requests alone.
func (l *loop) endSolo() {
	s := l.shared
	if l.number == 0 && (l.responses+l.failures >= soloRequests || l.clock >= s.began+soloLimit) {
		s.probe.solo = soloLimit
		if l.interval.latency.count > 0 {
			s.probe.solo = l.interval.latency.min
		}
		s.probe.from = l.readProbe()
		s.soloDone.Store(true)
	}
	if s.soloDone.Load() {
		l.beginWarmup(l.clock)
		l.startAll()
	}
}

// beginWarmup begins the warm-up at this time, and the schedule of a rate with it.
func (l *loop) beginWarmup(at int64) {
	l.phase, l.phaseEnd = warming, at+int64(l.plan.Warmup)
	l.schedule.begin(at)
}

// meet has a loop wait for the others where all are to go on together.
func (l *loop) meet() {
	switch {
	case !l.arrived && (l.unreached == 0 || l.clock > min(l.lastStep+reachPatience, l.began+longestReach)):
		l.arrived = true
		l.shared.reached.arrive(l.clock, l.plan.Threads)
	case l.phase == draining && l.outstanding == 0:
		l.phase = drained
		l.shared.drained.arrive(l.clock, l.plan.Threads)
	}
	switch {
	case l.phase == reaching && l.clock >= l.shared.reached.due():
		l.beginWarmup(l.shared.reached.due())
	case l.phase == drained && l.clock >= l.shared.drained.due():
		l.beginWindow()
	}
}

// startClock begins the run's time.
func (s *shared) startClock() {
	// Two clocks are read one after the other: again, should the thread have been interrupted between them.
	const soon, tries = 20_000, 10
	for range tries {
		s.monotonic = linux.Monotonic()
		s.epoch = time.Now()
		if linux.Monotonic()-s.monotonic < soon {
			return
		}
	}
}

// cpuReading is the CPU time, in nanoseconds, that the process had used in the run's turns after so much time under load, but for
// what was spun away; and how much time was not under load by then.
type cpuReading struct{ at, used, away int64 }

// readCPU reads it at this time of the run's clock, which is about now.
func (s *shared) readCPU(at int64) cpuReading {
	return cpuReading{at: at - s.away, used: s.usedCPU() - s.cpuAway.Load(), away: s.away}
}

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
