package engine

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A request is hung after shortestHang, and after hangOfLatencies times p99.9. A younger one may be at the end of a long queue.
	shortestHang      = second
	hangOfLatencies   = 2
	threadSampleEvery = int64(100 * time.Millisecond) // how often wrk samples requests/s per thread
	// Loops go on this long after the last one arrived: by then each has seen that, as none waits longer than longestWait.
	barrierDelay = longestWait + 10*int64(time.Millisecond)
	// The window no longer waits for connections without a response once none has got further for reachPatience, or after longestReach.
	reachPatience = 2 * time.Second
	longestReach  = 120 * second
	recheckEvery  = int64(time.Millisecond) // how often a warm-up checks whether it may end
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

// measurement is a loop's phase, and what it counts and records. Times are nanoseconds: windowStart and windowEnd under load, others of the
// run's clock.
type measurement struct {
	phase                            phase
	phaseEnd, windowStart, windowEnd int64
	// unreached slots have ended no attempt; at lastProgress one got further. arrived: other loops need not wait for this one.
	unreached    int
	lastProgress int64
	arrived      bool

	// interval is the present second. Events are counted in current: the interval, a cycle's, or outside, at the edges of turns.
	current, interval, outside   *interval
	spare                        chan *interval
	responses, failures, lastEnd int64 // responses and failures of the phase so far; lastEnd is when the last one ended
	warmup, inFlight             int64
	overdue                      []int64 // overdue are the ages of the attempts under way at the window's end that may be hung
	gap                          loopGap
	endCPU                       cpuReading
	tally
	stretch                stretch
	warmupBegan            int64
	growth                 queueGrowth
	unsent                 int64
	sampleFrom, sampleBase int64
	threadRps, connRps     []float64
	example                string
}

// tally is what a loop records of the whole window, or of a cycle.
type tally struct {
	connectTimes, firstByteTimes *recorder
	// tcpTimes and handshakeTimes are the two parts of connectTimes with TLS over TCP, otherwise nil.
	tcpTimes, handshakeTimes *recorder
	// sendDelays and waits (of requests without a response, since they were due) are nil in the closed model.
	sendDelays, waits *recorder
	bucketCounts      []int64       // bucketCounts has one more than the plan has buckets
	pages             *pageRecorder // pages is nil for a single one
}

// newTally makes only the recorders that the plan needs: each takes about 260 KB. The others are nil.
func newTally(p *plan) tally {
	t := tally{connectTimes: newRecorder(), firstByteTimes: newRecorder(), bucketCounts: make([]int64, len(p.Buckets)+1), pages: newPages(p)}
	if p.Rate > 0 {
		t.sendDelays, t.waits = newRecorder(), newRecorder()
	}
	if p.isTLSOverTCP() {
		t.tcpTimes, t.handshakeTimes = newRecorder(), newRecorder()
	}
	return t
}

// recorders are all of them, some nil, in an order that add relies on.
func (t *tally) recorders() [6]*recorder {
	return [6]*recorder{t.connectTimes, t.firstByteTimes, t.tcpTimes, t.handshakeTimes, t.sendDelays, t.waits}
}

func (t *tally) add(other *tally) {
	others := other.recorders()
	for i, r := range t.recorders() {
		r.merge(others[i])
	}
	addEach(t.bucketCounts, other.bucketCounts)
	t.pages.add(other.pages)
}

func (t *tally) reset() {
	for _, r := range t.recorders() {
		r.reset()
	}
	clear(t.bucketCounts)
	t.pages.reset()
}

// interval is about a second of one loop. The loop owns it until handOver, then the collector, which gives it back by spare.
type interval struct {
	loop        *loop
	end         int64
	cpu         cpuReading // read at the end
	last        bool
	measured    bool // the loop has opened the window
	connections int
	Counts
	latency *recorder
}

// newMeasurement makes two intervals, one in use and one spare, so that seconds allocate nothing.
func newMeasurement(l *loop, connections int) measurement {
	m := measurement{
		unreached: connections, spare: make(chan *interval, 2), tally: newTally(l.plan),
		interval: &interval{loop: l, latency: newRecorder()}, outside: &interval{latency: newRecorder()},
	}
	m.current = m.interval
	m.spare <- &interval{loop: l, latency: newRecorder()}
	return m
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

// due is when all go on, on the run's clock; never as long as a loop is missing.
func (b *barrier) due() int64 { return cmp.Or(b.at.Load(), never) }

// windowOpening is what a side's loops share to open the window together.
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
	s.once.Do(func() {
		s.opened, s.startCPU = true, s.readCPU(at)
		s.windowStart = s.startCPU.at
		if s.alone {
			s.server.last = s.server.processes.CPU()
		}
	})
}

// cpuReading is CPU time in nanoseconds, without spinning, after `at` of time under load; away is the time so far that was not.
type cpuReading struct{ at, used, away int64 }

// readCPU reads the CPU time under load until `at`, on the run's clock. In a ramp or a drain it is that of the window's last bound.
func (s *shared) readCPU(at int64) cpuReading {
	used := s.usedCPU()
	switch {
	case s.alone:
	case s.cpuFrom.Load() == 0:
		used = s.cpuLeft // In a ramp
	default:
		used = cmp.Or(s.cpuTo.Load(), used)
	}
	return cpuReading{at: at - s.away, used: used - s.cpuAway.Load(), away: s.away}
}

// awaitsAll tells whether the window waits for each kept connection's first response, since handshakes keep a server busy. Several processes
// open their windows by the clock.
func (p *plan) awaitsAll() bool { return p.KeepAlive && p.Segment.isWhole() }

// begin starts the warm-up. At a rate all connections make a first request before it, since all at once would be a long queue.
func (l *loop) begin() {
	l.nextTick, l.nextSample, l.lastProgress = never, never, l.clock
	switch {
	case l.plan.Rate > 0 && l.plan.awaitsAll():
		l.phase, l.phaseEnd = reaching, never
	case l.plan.Rate == 0 && (!l.shared.alone || l.plan.Warmup > 0 && l.plan.Segment.isWhole()):
		l.phase, l.phaseEnd = probing, never
		if l.number == 0 {
			l.enqueue(&l.conns[0])
		}
		return
	default:
		l.beginWarmup(l.clock)
	}
	l.startAll()
}

// endProbing notes the latency without a queue, and lets all connections begin.
func (l *loop) endProbing() {
	s := l.shared
	if l.number == 0 && (l.responses+l.failures >= probeRequests || l.clock >= s.began+probeLimit) {
		s.probeLatency = probeLimit
		if l.interval.latency.count > 0 {
			s.probeLatency = l.interval.latency.min
		}
		s.probeDone.Store(true)
	}
	if s.probeDone.Load() {
		if s.probeLatency < probeLimit {
			// The answers of a server that waits would all come at once otherwise, wave after wave, and a window would have a wave more or less.
			l.began, l.started, l.spread = l.clock, 0, s.probeLatency
		}
		l.beginWarmup(l.clock)
		l.startAll()
	}
}

// beginWarmup begins the warm-up. Its first half, in which connections open, is not judged.
func (l *loop) beginWarmup(at int64) {
	l.phase = warming
	l.beginStretch(0, at, at+int64(l.plan.Warmup)/2)
	l.warmupBegan = at
	l.schedule.begin(at)
}

// advancePhase makes the transitions that depend on time or on other loops. In the window it takes the samples that are due instead.
func (l *loop) advancePhase() {
	switch l.phase {
	case probing:
		l.endProbing()
	case warming:
		if l.stretch.isMarking() {
			l.mark()
		}
		switch {
		case l.clock < l.phaseEnd:
		case l.plan.awaitsAll() && l.clock < l.shared.reached.due():
			l.phaseEnd = min(l.clock+recheckEvery, l.shared.reached.due())
		case !l.endStretch():
		case !l.shared.alone:
			l.phase = warmedUp
			l.endTurnBy(l.clock)
		case l.plan.Requests > 0:
			l.phase = draining
		default:
			l.beginWindow()
		}
	case measuring:
		if l.clock >= l.growth.next {
			l.noteQueue()
		}
		if l.clock >= l.nextSample && l.turnState.starts() {
			if elapsed := l.clock - l.sampleFrom; elapsed > 0 {
				l.threadRps = append(l.threadRps, float64(l.counted()-l.sampleBase)*1e9/float64(elapsed))
			}
			l.sampleFrom, l.sampleBase = l.clock, l.counted()
			l.nextSample = l.clock + threadSampleEvery
		}
		// finish hands over the last second, since the last response of a number of requests may be read late.
		if l.clock >= l.nextTick && l.turnState.starts() && (l.plan.Duration == 0 || l.clock < l.phaseEnd) && !l.ended() {
			l.handOver()
			origin := l.windowStart + l.shared.away
			l.nextTick = origin + ((l.clock-origin)/second+1)*second
		}
	}
	if !l.arrived && (l.unreached == 0 || l.clock > min(l.lastProgress+int64(cmp.Or(l.plan.patience, reachPatience)), l.began+longestReach)) {
		l.arrived = true
		l.shared.reached.arrive(l.clock, l.plan.Threads)
	} else if l.phase == draining && l.outstanding == 0 {
		l.phase = drained
		l.shared.drained.arrive(l.clock, l.plan.Threads)
	}
	if l.phase == reaching && l.clock >= l.shared.reached.due() {
		l.beginWarmup(l.shared.reached.due())
	} else if l.phase == drained && l.clock >= l.shared.drained.due() {
		l.beginWindow()
	}
}

// beginWindow opens the window: counts begin at 0, shares of a number of requests are dealt out, the schedule begins anew. Attempts under
// way go on, and count when they end.
func (l *loop) beginWindow() {
	s := l.shared
	from := max(l.clock, l.steadyFrom)
	l.phase = measuring
	s.open(from)
	l.resetCounts(from)
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
		// Each loop makes the requests of its own schedule: another one could not send in time what this one misses.
		l.allowance = share(l.plan.Requests, l.plan.Threads, l.number)
		l.schedule.listed, l.schedule.span = l.plan.listed, l.plan.span
		l.schedule.begin(origin - s.ramp)
		if s.alone {
			l.watchQueue(from, from+l.plan.window())
		} else if l.plan.listed == nil {
			l.startCycles()
		}
	}
	l.startAll()
}

// resetCounts leaves out what was counted so far: the warm-up.
func (l *loop) resetCounts(from int64) {
	l.windowStart = from - l.shared.away
	l.gap = loopGap{since: l.clock}
	l.hasAnswered = l.hasAnswered || l.responses > 0
	l.warmup, l.responses, l.failures = l.responses+l.failures, 0, 0
	l.interval.Counts, l.outside.Counts = Counts{}, Counts{}
	l.interval.latency.reset()
	l.tally.reset()
	l.example = ""
}

// counted is how many responses are in the window's counts, which those at the edges of turns are not.
func (l *loop) counted() int64 { return l.responses - l.outside.ResponseTotal() }

// handOver sends the second to the collector, and goes on with a spare interval. If there is none the second grows: a loop never waits.
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

// finish ends the loop's window, closes its connections and sends its last interval. Attempts under way become InFlight.
func (l *loop) finish() {
	s := l.shared
	l.clock = s.now()
	l.endCPU = s.readCPU(l.turnEnded())
	l.inFlight, l.windowEnd = l.outstanding, l.endCPU.at
	l.leaveCycles()
	if l.phase == measuring {
		l.endMeasuring()
	} else {
		l.resetCounts(l.turnEnded()) // Stopped during the warm-up: the window is empty
	}
	if s.alone {
		s.ending.Lock()
		s.server.own = s.server.processes.CPU() - s.server.last
		s.ending.Unlock()
	}
	l.warmup += l.outside.Requests
	last := l.interval
	last.end, last.last, last.connections, last.cpu, last.measured = l.windowEnd, true, l.open, l.endCPU, l.phase == measuring
	if l.phase == measuring {
		s.memory.Do(func() { s.memory.bytes = s.server.processes.Memory() }) // Others wait, and keep their connections
	}
	for i := range l.conns {
		l.conns[i].close()
	}
	s.intervals <- last
}

// endMeasuring records what had no response by the window's end: requests that did not leave, and the waits of those under way.
func (l *loop) endMeasuring() {
	isCount, stopped := l.plan.Requests > 0, l.shared.stop.Load()
	most, dueUntil := never, min(l.clock, l.sliceEnd)
	switch {
	case isCount && !stopped && l.plan.listed == nil:
		most, dueUntil = l.allowance, 0 // All requests were made
	case isCount:
		most = l.allowance
	}
	if l.plan.Duration > 0 {
		dueUntil = min(dueUntil, l.phaseEnd)
	}
	l.unsent = l.schedule.missed(dueUntil, most, func(due, count int64) { l.noteWait(l.clock-due, count) })
	if isCount && !stopped && l.responses+l.failures > 0 && (l.shared.alone || l.plan.Rate == 0) {
		// A count's window ends with the last response, not when the loop noticed that it was the last.
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
	l.endGap(l.clock)
	for i := range l.conns {
		c := &l.conns[i]
		c.session.eachDue(func(due int64) {
			age := l.clock - due
			l.noteWait(age, 1)
			if age > shortestHang {
				l.overdue = append(l.overdue, age)
			}
		})
		for _, d := range c.departures.waiting {
			l.sendDelays.record(l.clock - d.due) // A server that reads nothing has requests that have not left
		}
	}
}
