package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

// opensAfter: of several loops that have drained, the last one sets the window's begin this much ahead: all have looked by then.
const opensAfter = longestWait + 10*int64(time.Millisecond)

// opening is how the loops of a run open the window together.
type opening struct {
	// drained is how many loops have drained; when all have, windowAt is when they open the window.
	drained  atomic.Int32
	windowAt atomic.Int64
	// The first loop that opens it sets its begin, and what CPU time the process had used by then.
	once        sync.Once
	opened      bool
	windowStart int64
	startCPU    cpuReading
}

// open: a loop opens the window.
func (s *shared) open(now int64) {
	s.once.Do(func() { s.opened, s.windowStart, s.startCPU = true, now, s.readCPU() })
}

// windowDue is when loops that have drained open the window, as far as that is known.
func (s *shared) windowDue() int64 {
	if at := s.windowAt.Load(); at > 0 {
		return at
	}
	return never
}

// isDrained tells whether nothing of a warm-up before a count is under way on this loop any more.
func (l *loop) isDrained() bool {
	if l.phase == draining && l.outstanding == 0 {
		l.phase = drained
		if others := l.plan.Threads - int(l.shared.drained.Add(1)); others == 0 {
			at := l.clock
			if l.plan.Threads > 1 {
				at += opensAfter
			}
			l.shared.windowAt.Store(at)
		}
	}
	return l.phase == drained
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

// cpuReading is the CPU time, in nanoseconds, that the process had used in the run's turns at some time of the run's clock, but
// for what was spun away, how long others had had their turns by then, and how many responses were for nobody.
type cpuReading struct{ at, used, away, settled int64 }

func (s *shared) readCPU() cpuReading {
	used := linux.ProcessCPU() - s.cpuAway - s.spun.Load()
	return cpuReading{at: s.now(), used: used, away: s.away, settled: s.settled}
}
