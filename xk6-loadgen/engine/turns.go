//gosec:disable G104 G115 G404 -- an error changes nothing there, the numbers are small, random orders, not secrets
package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

const (
	shortestSlice, longestSlice = time.Millisecond, 10 * time.Second
	forEver                     = time.Duration(never)
	// longestServerWork bounds the wait for the server's own work after a turn, longestWarmWork after the warm-up, which tells how much there
	// is; see worksAnyway for servers that use muchIdleCPU of a core without load, over leastIdleTime or more.
	longestServerWork, longestWarmWork = int64(100 * time.Millisecond), second
	muchIdleCPU, leastIdleTime         = 0.1, int64(10 * time.Millisecond)
)

// Side is one of several loads that take turns.
type Side struct {
	Options
	CPUOf    []int        // CPUOf are the server's processes, whose CPU time is read with that of their descendants; empty: not known.
	OnSecond func(Second) // OnSecond, which may be nil, is called for each second under load, from a goroutine of the side's own
}

// Turns say in which order and how long several sides take turns.
type Turns struct {
	// Slice is the mean length of a turn, without ramp and drain; each is a random 75 to 125 % of it. Zero: chosen by choosePace.
	Slice time.Duration
	First int // First is the place of the side, from 1, that is warmed up first and has the first turn; zero: any.
	// WarmTogether warms all sides up at the same time: for servers that leave their cores and the generator's idle.
	WarmTogether bool
	Seed         uint64    // Seed of the rest of the order, the lengths and the arrivals.
	StartAt      time.Time // when the first turn begins; zero: at once
}

// TurnFigures are of a side's turns within its window.
type TurnFigures struct {
	Count           int64
	SliceMs, RampMs float64 // SliceMs is the mean length asked for, RampMs the longest ramp before a turn.
	Responses       int64   // Responses in the turns, with those of ramps and drains.
	Waits           bool    // the server spends its time waiting, see pace
	StoodStill      float64 // the share of cycles in which the generator stalled
}

// ServerCPU is the CPU time of the server's processes within the side's window.
type ServerCPU struct {
	Seconds   float64 // Seconds in the side's own turns, for TurnFigures.Responses.
	IdleShare float64 // CPU seconds per second of the other sides' turns
	Gain      float64 // responses per CPU time after the turn in which the window's middle was, as a multiple of those before; 0: not known
	Cores     CoreUse // Cores is zero for a load that is alone, and if the servers' cores are not theirs alone.
}

// CoreUse is what the server's cores did in its turns, and before each of them since the one before, in seconds.
type CoreUse struct {
	Seconds               float64
	Processes, Interrupts float64 // Processes are all; Interrupts may be in Processes as well.
	Servers               float64 // the part of Processes that was the sides' servers'
	Stolen                float64 // what the host gave others of these cores
	Waits                 *CoreWaits
}

// CoreWaits are how long threads that could run waited for a core in the side's turns, in seconds; nil where the kernel does not count that.
type CoreWaits struct {
	Server    float64 // a sum over the server's threads, which also wait for each other
	Generator float64 // the mean of the loops, with what the host gave others of their cores
}

// turn is what the loops of a side know of its turns. It is written between two turns. Times are the run's clock.
type turn struct {
	inOneTurn    bool // the side's window is one turn
	isEmpty      bool // all requests of a rate have been made, and the turn only awaits responses
	pace         pace
	length, ramp int64 // length and ramp of the turn that begins.

	// From steadyFrom to sliceEnd the turn is under load; between is the time since the last turn.
	began, steadyFrom, sliceEnd, between int64
	// Without a rate, a window after a ramp begins with the first response since steadyFrom, at countFrom, and ends with the first one since
	// sliceEnd, at countTo; 0: not yet. So a pause of the server is within a window, even if it is longer than a turn.
	countFrom, countTo atomic.Int64
	away, left         int64 // away is the time so far that was not under load; left is when the time under load last ended.
	count              int64
	// workAfter is the CPU time that the server used after the warm-up, until it had nothing to do. hasMoreWork: it was still at it after
	// longestWarmWork.
	workAfter   int64
	hasMoreWork bool
}

// serverUse is the CPU time of the server's processes, in nanoseconds. A load that is alone has only own, and last at the window's begin.
type serverUse struct {
	processes              *linux.ProcessTree // nil where they are not known
	last, lastAt, answered int64              // last and lastAt are the last reading, answered the responses by then
	own, idle, idleTime    int64
	ownAnswered            int64
	half, halfAnswered     int64 // half and halfAnswered are own and ownAnswered after the turn in which the window's middle was; 0: before it
	cores                  CoreUse
	waited                 int64 // waited is the last reading of the threads' wait
	waits                  CoreWaits
	waitsAreUnknown        bool
}

// Alternate loads several servers, one at a time: a random order of the sides, the same one backwards, and so on. Responses that come
// after a turn and its drain are read in the others' turns. The warm-up is a side's first turn; a side that is through has no more.
// Results are in the sides' order; their Window's StartedAt and EndedAt include the others' turns. See Run for ctx and the errors, which name the side.
func Alternate(ctx context.Context, sides []Side, turns Turns) ([]Result, error) {
	switch {
	case len(sides) == 0:
		return nil, errors.New("sides: give the options of one load or more")
	case len(sides) > 1 && !linux.HasExactWait():
		return nil, errors.New("alternate: needs Linux 5.11 or later, for waits shorter than a millisecond")
	case turns.Slice != 0 && (turns.Slice < shortestSlice || turns.Slice > longestSlice):
		return nil, fmt.Errorf("slice: must be %s to %s, got %s", shortestSlice, longestSlice, turns.Slice)
	case turns.First < 0 || turns.First > len(sides):
		return nil, fmt.Errorf("first: must be the place of a side, 1 to %d, got %d", len(sides), turns.First)
	}
	runs := make([]*run, 0, len(sides))
	defer func() {
		for _, r := range runs {
			r.plan.network.close()
		}
	}()
	connections := 0 // All sides have theirs open at once
	for i, side := range sides {
		side.seed, side.StartAt = turns.Seed, turns.StartAt // All sides have the same arrivals
		p, err := newPlan(ctx, side.Options)
		if err != nil {
			return nil, fmt.Errorf("sides[%d].%w", i, err)
		}
		runs = append(runs, &run{plan: p, onSecond: side.OnSecond, cpuOf: side.CPUOf})
		connections += p.Connections
	}
	if err := checkFiles(connections); err != nil {
		return nil, fmt.Errorf("sides: all together: %w", err)
	}
	return start(ctx, runs, turns)
}

// takeTurns gives all sides a warm-up each, then turns until every side is through. It returns what it saw of the machine between them.
func takeTurns(runs []*run, turns Turns) *cycles {
	if len(runs) == 1 {
		runs[0].turn(forEver, 0)
		return &cycles{}
	}
	random := newRandom(turns.Seed)
	order := orderFrom(random, len(runs), turns.First)
	var warming sync.WaitGroup
	for _, i := range order {
		warming.Go(func() {
			if r := runs[i]; r.plan.Warmup > 0 {
				r.turn(forEver, 0)
			}
			runs[i].choosePace()
		})
		if !turns.WarmTogether {
			warming.Wait()
		}
	}
	warming.Wait()
	slice := settlePaces(runs, turns.Slice)
	c, atRate := newCycles(runs), slices.ContainsFunc(runs, func(r *run) bool { return r.plan.Rate > 0 })
	for ; slices.ContainsFunc(runs, (*run).isUnderLoad); order = random.Perm(len(runs)) {
		for n := range 2 * len(order) {
			i := order[min(n, 2*len(order)-1-n)]
			// Each side draws numbers even when it is through, so that one side's turns do not depend on another's.
			length, part := time.Duration((0.75+random.Float64()/2)*float64(slice)), random.Float64()
			if runs[i].isUnderLoad() {
				runs[i].turn(length, part)
				if atRate || c.serverCores != nil {
					c.observe(runs[i], runs)
				}
				if !atRate && turns.Slice == 0 {
					slice = runs[i].grow(slice)
				}
			}
		}
		if atRate {
			c.end(runs)
		}
	}
	return c
}

// newRandom is a generator whose numbers have nothing in common from seed to seed: runs have small seeds that follow each other.
func newRandom(seed uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.New(rand.NewChaCha8(key))
}

// orderFrom is a random order of the sides that begins with the place `first`, from 1; 0: with any.
func orderFrom(random *rand.Rand, sides, first int) []int {
	order := random.Perm(sides)
	if first > 0 {
		at := slices.Index(order, first-1)
		order[0], order[at] = order[at], order[0]
	}
	return order
}

func (r *run) isUnderLoad() bool { return r.running > 0 }

// turn runs the side's loops until the turn is over for all of them, and the server has done its work. part is 0 to 1, see pace.
func (r *run) turn(length time.Duration, part float64) {
	s := r.shared
	s.turn.length = int64(length)
	s.turn.ramp = s.turn.pace.ramp + int64(part*float64(s.turn.pace.step))
	isRepeated := s.cycle.isOver && !s.cycle.counts
	s.turn.isEmpty = r.plan.Rate > 0 && !isRepeated && !slices.ContainsFunc(r.loops, (*loop).hasMoreDue)
	if s.turn.isEmpty {
		s.turn.ramp = 0
	}
	s.turn.countFrom.Store(0)
	s.turn.countTo.Store(0)
	if !s.alone {
		s.bookIdle() // Before connections are opened again, which is work of this side's load
	}
	s.cpu.restart()
	s.gate.close(r.running)
	for _, l := range r.loops {
		if l.turn.state == over {
			continue
		}
		isReading := l.turn.state == listening // Read first: once it resumes, the loop may change it
		l.turn.resume <- struct{}{}
		if isReading {
			l.poller.wake() // Afterwards, since the loop waits again if it has not been told to resume
		}
	}
	left := int64(0)
	for range r.running {
		l := <-s.gate.back
		if l.turn.state == over {
			r.running--
		}
		left = max(left, l.turn.left)
	}
	if s.turn.left = left; s.alone {
		return
	}
	s.cycle.time += max(0, s.turn.left-s.turn.steadyFrom)
	s.cycle.isOver = false
	s.cycle.cpu += s.cpu.endTurn(s.usedCPU())
	if length == forEver {
		before := s.server.processes.LivingCPU()
		s.turn.hasMoreWork = !s.awaitIdle(longestWarmWork)
		s.turn.workAfter = s.server.processes.LivingCPU() - before
	} else {
		s.awaitIdle(longestServerWork)
	}
	s.bookTurn()
	if r.plan.Rate == 0 {
		s.bookHalf(int64(r.plan.Duration))
	}
}

// beginTurn begins the turn for all loops of the side; the last one that is ready calls it. opens: the turn opens the window.
func (s *shared) beginTurn(opens bool) {
	if s.alone {
		s.turn.began = s.now()
		s.turn.steadyFrom, s.turn.sliceEnd = s.turn.began, never
		return
	}
	s.server.answered = s.answered()
	if s.turn.ramp == 0 {
		s.enterCPU()
	}
	s.turn.began = s.now()
	s.turn.steadyFrom = s.turn.began + s.turn.ramp
	s.turn.sliceEnd = never
	if s.turn.length < never {
		s.turn.sliceEnd = s.turn.steadyFrom + s.turn.length
		if !s.turn.isEmpty {
			s.turn.count++
		}
	}
	s.turn.between = s.turn.steadyFrom - s.turn.left
	s.turn.away += s.turn.between
	if opens {
		s.server = serverUse{processes: s.server.processes, last: s.server.last, lastAt: s.server.lastAt, waited: s.server.waited}
		s.turn.count, s.cycle.time, s.cycle.cpu = 1, 0, 0
	}
}

// bookIdle books the CPU time that the server used since its last turn.
func (s *shared) bookIdle() {
	u := &s.server
	used, at := u.processes.CPU(), s.now()
	u.idle += used - u.last
	u.idleTime += at - u.lastAt
	u.last, u.lastAt = used, at
	u.waited, _ = u.processes.Waited()
}

// bookTurn books the CPU time that the server used in the turn that ends.
func (s *shared) bookTurn() {
	u := &s.server
	used, answered := u.processes.CPU(), s.answered()
	u.own += used - u.last
	u.ownAnswered += answered - u.answered
	u.last, u.lastAt, u.answered = used, s.now(), answered
	s.bookWaits()
}

// bookHalf notes the CPU time of the first half of a window of this length; 0: the length is not known.
func (s *shared) bookHalf(window int64) {
	u := &s.server
	if inWindow := s.turn.left - s.turn.away - s.opening.windowStart; u.half == 0 && s.opening.opened && window > 0 && inWindow >= window/2 {
		u.half, u.halfAnswered = u.own, u.ownAnswered
	}
}

// gain is ServerCPU.Gain.
func (u *serverUse) gain() float64 {
	used, answered := u.own-u.half, u.ownAnswered-u.halfAnswered
	if u.half == 0 || u.halfAnswered == 0 || used == 0 {
		return 0
	}
	return float64(answered) / float64(used) * float64(u.half) / float64(u.halfAnswered)
}

// bookWaits books how long the server's threads and the loops waited for a core in the turn that ends.
func (s *shared) bookWaits() {
	u := &s.server
	before := u.waited
	after, known := u.processes.Waited()
	u.waited, u.waitsAreUnknown = after, u.waitsAreUnknown || !known
	u.waits.Server += float64(after-before) / 1e9
	for _, l := range s.loops {
		u.waits.Generator += float64(l.turn.waited) / 1e9 / float64(len(s.loops))
		u.waitsAreUnknown = u.waitsAreUnknown || !l.turn.waitIsKnown
		l.turn.waited = 0 // A loop that is over has no more
	}
}

// answered is the number of responses by the begin or end of the turn.
func (s *shared) answered() (count int64) {
	for _, l := range s.loops {
		count += l.turn.answered
	}
	return count
}

// figures are of the window. turns is nil for a load that is alone, cpu where the server's processes are not known.
func (s *shared) figures() (turns *TurnFigures, cpu *ServerCPU) {
	u := &s.server
	if !s.alone {
		p := &s.turn.pace
		turns = &TurnFigures{Count: s.turn.count, Responses: u.ownAnswered, Waits: p.waits, SliceMs: inMs(int64(p.slice)), RampMs: inMs(p.ramp + p.step)}
	}
	if u.processes != nil {
		cpu = &ServerCPU{Seconds: float64(u.own) / 1e9, IdleShare: float64(u.idle) / float64(max(1, u.idleTime)), Gain: u.gain(), Cores: u.cores}
		if !u.waitsAreUnknown {
			cpu.Cores.Waits = &u.waits
		}
	}
	return turns, cpu
}

// awaitIdle waits until the server has finished work that its answers left, which belongs to the turn, for no longer than the limit. A server
// that works between turns in any case gets no longer than the turn. It returns whether the server came to rest.
func (s *shared) awaitIdle(limit int64) bool {
	u := &s.server
	u.processes.FindThreads()
	if u.worksAnyway() {
		limit = min(limit, longestServerWork, s.turn.length)
	}
	for end := s.now() + limit; u.processes != nil && u.processes.IsRunning(); linux.Sleep(int64(100 * time.Microsecond)) {
		if s.now() >= end || s.stop.Load() {
			return false
		}
	}
	return true
}

// worksAnyway tells whether the server uses CPU time without load: what it does after its answers may not be for them.
func (u *serverUse) worksAnyway() bool {
	return u.idleTime >= leastIdleTime && float64(u.idle) > muchIdleCPU*float64(u.idleTime)
}
