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
