package engine

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// shared is the state that the loops of one side share.
type shared struct {
	epoch time.Time // epoch and stop are read in every iteration
	stop  atomic.Bool
	// quota is the number of attempts not handed out yet. Cache lines of its own keep draws from slowing down the reads of epoch and stop.
	_           [cacheLinesBytes]byte
	quota       atomic.Int64
	_           [cacheLinesBytes]byte
	spun        atomic.Int64 // how long loops polled in vain, in nanoseconds
	_           [cacheLinesBytes]byte
	intervals   chan *interval // intervals carries finished seconds to the collector.
	monotonic   int64          // the epoch on CLOCK_MONOTONIC, in nanoseconds
	gap         sharedGap
	alone       bool // there are no other sides, so the one turn has no end
	hasOwnCores bool // the server's processes are known, and may use none of the generator's cores
	// firstBodies are the lengths of the first bodies by class of status, plus one; 0: none has come.
	firstBodies [statusClasses]atomic.Int64
	loops       []*loop
	gate        gate
	turn        turn
	cycle       sideCycle
	cpu         cpuLedger
	server      serverUse
	opening     windowOpening
	probe       probe
	warmth      warmth
	hopeless    hopeless
	memory      struct {
		sync.Once
		bytes int64
	}
}

// now is the run's clock: monotonic nanoseconds since epoch, the same for all loops of a side. It is no system call (vDSO).
func (s *shared) now() int64 { return int64(time.Since(s.epoch)) }

// takeQuota draws up to n attempts of those that no loop has drawn yet. It returns how many there were, 0 at the end.
func (s *shared) takeQuota(n int64) int64 {
	left := s.quota.Add(-n)
	return max(0, min(n, left+n))
}

// startClock sets the epoch, and the same instant on CLOCK_MONOTONIC, on which other processes place the window.
func (s *shared) startClock() {
	const soon, tries = 20_000, 10 // Two clocks are read one after the other: again, if interrupted between them
	for range tries {
		s.monotonic = linux.Monotonic()
		s.epoch = time.Now()
		if linux.Monotonic()-s.monotonic < soon {
			return
		}
	}
}

// gate lets the loops of a side begin a turn together, and collects them at its end.
type gate struct {
	running int32        // running loops are not through.
	ready   atomic.Int32 // ready loops have opened their connections.
	going   atomic.Bool  // the last loop to be ready has set the turn's times
	back    chan *loop   // back carries loops whose turn is over, or that are through.
}

// close holds the loops of the next turn, of which there are so many.
func (g *gate) close(running int) {
	g.running = int32(running)
	g.ready.Store(0)
	g.going.Store(false)
}

// pass waits for the side's other loops. The last one to be ready begins the turn.
func (g *gate) pass(begin, pause func()) {
	if g.ready.Add(1) == g.running {
		begin()
		g.going.Store(true)
	}
	for !g.going.Load() {
		pause()
	}
}

// probe is what the first requests of a warm-up without a rate tell, see probeRequests.
type probe struct {
	latency int64        // without a queue; 0: not known
	doneAt  atomic.Int64 // when all connections begin, on the run's clock; 0: not known yet
}

// sideCycle is the present cycle of a side at a rate. It is written between two turns.
type sideCycle struct {
	time, cpu      int64 // under load so far
	isOver, counts bool  // isOver: a cycle ended before this turn; counts: it counts.
}

// cpuReading is CPU time in nanoseconds, without spinning, after `at` of time under load; away is the time so far that was not.
type cpuReading struct{ at, used, away int64 }

// cpuLedger separates the CPU time of the process in the side's windows from the rest. All are nanoseconds.
type cpuLedger struct {
	away     atomic.Int64 // outside of the time under load so far
	from, to atomic.Int64 // at the bounds of the present turn's window; 0 before them
	left     int64        // when the last turn ended
}

// enter begins what counts, with so much used by now.
func (c *cpuLedger) enter(used int64) {
	c.from.Store(used)
	c.away.Add(used - c.left)
}

// endTurn returns what the turn has used within its window, which is over by now.
func (c *cpuLedger) endTurn(used int64) int64 {
	from := c.from.Load()
	if from == 0 {
		return 0
	}
	c.left = cmp.Or(c.to.Load(), used)
	return c.left - from
}

func (c *cpuLedger) restart() {
	c.from.Store(0)
	c.to.Store(0)
}

// counted is the CPU time within windows when so much is used: in a ramp or a drain, that of the last bound.
func (c *cpuLedger) counted(used int64) int64 {
	if c.from.Load() == 0 {
		used = c.left // In a ramp
	} else {
		used = cmp.Or(c.to.Load(), used)
	}
	return used - c.away.Load()
}

// usedCPU is the process's CPU time in nanoseconds, less the time that loops have polled in vain.
func (s *shared) usedCPU() int64 { return linux.ProcessCPU() - s.spun.Load() }

// enterCPU is called when CPU time begins to count in a turn. leaveCPU is called if it stops counting before the turn's end.
func (s *shared) enterCPU() { s.cpu.enter(s.usedCPU()) }
func (s *shared) leaveCPU() { s.cpu.to.Store(s.usedCPU()) }

// readCPU reads the CPU time under load until `at`, on the run's clock.
func (s *shared) readCPU(at int64) cpuReading {
	used := s.usedCPU()
	if !s.alone {
		used = s.cpu.counted(used)
	}
	return cpuReading{at: at - s.turn.away, used: used, away: s.turn.away}
}
