package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
	shortestSlice, longestSlice = time.Millisecond, 10 * time.Second
	forEver                     = time.Duration(never)
	// longestReopening bounds how long a turn waits for connections that the server has closed meanwhile.
	longestReopening = second
	// longestSelf bounds how long a turn waits for what the server does by itself.
	longestSelf = int64(100 * time.Millisecond)
	// muchIdleCPU is the share of a core from which waiting for that would cost more than it is worth.
	muchIdleCPU = 0.1
)

// Side is one of several loads that take turns.
type Side struct {
	Options
	// CPUOf are the server's processes, whose CPU time is read together with that of their descendants. Empty: it is not known.
	CPUOf []int
	// OnSecond is called once for each second under load, from a goroutine of the side's own. It may be nil.
	OnSecond func(Second)
}

// Turns say how sides take turns.
type Turns struct {
	// Slice is the mean length of a turn, without its ramp and its drain. Each is 75 to 125 % of it, drawn, so that nothing periodic
	// meets the same side again. Zero: it is chosen for the servers (see pace).
	Slice time.Duration
	// Seed of what is drawn, arrivals included.
	Seed uint64
	// StartAt is when the first turn begins, whatever the sides' options say; zero: at once.
	StartAt time.Time
}

// TurnFigures say what turns a side had within its window.
type TurnFigures struct {
	Count int64
	// SliceMs is the mean length asked for, RampMs what each turn has before it.
	SliceMs, RampMs float64
	// Responses in them, those of ramps and drains too.
	Responses int64
	// Waits: the server spends its answers waiting, see pace.
	Waits bool
	// StoodStill is the share of the turns in which the generator stood still, see cycle.
	StoodStill float64
}

// ServerCPU is what the server's processes used within the side's window.
type ServerCPU struct {
	// Seconds in the side's own turns, for TurnFigures.Responses.
	Seconds float64
	// IdleShare is CPU seconds per second while others had their turns.
	IdleShare float64
}

// turn is what the loops of a side know of its turns. It is written while all of them are between two turns.
type turn struct {
	// alone: there are no other sides, so that the one turn has no end.
	alone bool
	pace  pace
	// length and ramp of the turn that begins.
	length, ramp int64
	// running loops are not through. Those that are ready have opened their connections again; the last one begins the turn for all,
	// which going says.
	running int32
	ready   atomic.Int32
	going   atomic.Bool
	loops   []*loop
	// back carries loops whose turn is over, or that are through.
	back chan *loop

	// All times are the run's clock. From steadyFrom to sliceEnd the turn is under load; between is how long others had theirs before.
	began, steadyFrom, sliceEnd, between int64
	// away is the time until now that was not under load; left is when the time under load stood still last.
	away, left int64
	// cpuAway is the CPU time that the process used while its time was not under load, cpuLeft what it had used when that began.
	cpuAway atomic.Int64
	cpuLeft int64
	count   int64
	server  serverUse
	// cycleTime is the time under load of the cycle under way, cycleCPU the CPU time in it, cpuBegan what had been used when the turn
	// began. cycleIsOver: a cycle ended before this turn, and counts or not.
	cycleTime                int64
	cycleCPU, cpuBegan       int64
	cycleIsOver, cycleCounts bool
}

// serverUse is the CPU time of the server's processes, in nanoseconds. Of a load that is alone it is last, at the window's begin, and own.
type serverUse struct {
	// processes is nil where they are not known.
	processes *linux.ProcessTree
	// last and lastAt are of the last reading, answered what had been answered by then.
	last, lastAt, answered int64
	own, idle, idleTime    int64
	ownAnswered            int64
}

// Alternate loads several servers, one at a time: a random order of the sides, the same one backwards, and so on anew. Nothing is
// stopped: when a turn is over no request starts, and the next side begins once those under way are answered, or have been awaited
// for as long as pace says. Those that take longer are read in the others' turns, and count with their whole time. A side's time
// under load stands still while others have their turns, and with it its rate.
//
// Each side with a warm-up has its first turn for it, by which pace is chosen. A side that is through has no more turns; one that
// is alone has one without end, as with Run. The results are in the sides' order; StartedAt and EndedAt span the others' turns too.
// See Run for ctx and the errors, which name the side.
func Alternate(ctx context.Context, sides []Side, turns Turns) ([]Result, error) {
	if err := turns.check(sides); err != nil {
		return nil, err
	}
	runs := make([]*run, 0, len(sides))
	defer func() {
		for _, r := range runs {
			r.plan.close()
		}
	}()
	// Those of all sides are open at once.
	connections := 0
	for i, side := range sides {
		// The same arrivals for all sides: what differs is how they are met.
		side.seed, side.StartAt = turns.Seed, turns.StartAt
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

func (t Turns) check(sides []Side) error {
	if len(sides) == 0 {
		return errors.New("sides: give the options of one load or more")
	}
	if len(sides) > 1 && !linux.HasExactWait() {
		return errors.New("alternate: needs Linux 5.11 or later, for waits shorter than a millisecond")
	}
	if t.Slice != 0 && (t.Slice < shortestSlice || t.Slice > longestSlice) {
		return fmt.Errorf("slice: must be %s to %s, got %s", shortestSlice, longestSlice, t.Slice)
	}
	return nil
}

// takeTurns gives the sides their turns until all are through; one that is alone has one without end.
func takeTurns(runs []*run, turns Turns) *cycles {
	if len(runs) == 1 {
		runs[0].turn(forEver, 0)
		return &cycles{}
	}
	random := rand.New(rand.NewPCG(turns.Seed, 0))
	for _, i := range random.Perm(len(runs)) {
		if r := runs[i]; r.plan.Warmup > 0 {
			r.turn(forEver, 0)
		}
		runs[i].choosePace()
	}
	slice := turns.Slice
	if slice == 0 {
		for _, r := range runs {
			slice = max(slice, r.shared.pace.slice)
		}
	}
	for _, r := range runs {
		r.shared.pace.slice = slice
	}
	c, atRate := newCycles(runs), slices.ContainsFunc(runs, func(r *run) bool { return r.plan.Rate > 0 })
	for slices.ContainsFunc(runs, (*run).isUnderLoad) {
		order := random.Perm(len(runs))
		mirrored := slices.Clone(order)
		slices.Reverse(mirrored)
		for _, i := range append(order, mirrored...) {
			// Drawn for all, so that a side's turns do not depend on whether another one is through.
			length, part := time.Duration((0.75+random.Float64()/2)*float64(slice)), random.Float64()
			if runs[i].isUnderLoad() {
				runs[i].turn(length, part)
				if atRate {
					c.look(runs[i])
				} else if turns.Slice == 0 {
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

func (r *run) isUnderLoad() bool { return r.running > 0 }

// turn lets the side's loops run until the turn is over for all of them. The ramp is longer by a part, 0 to 1, of an answer: answers come
// in step with a turn's begin, and the window must not.
func (r *run) turn(length time.Duration, part float64) {
	s := r.shared
	s.length, s.running = int64(length), int32(r.running)
	s.ramp = s.pace.ramp + int64(part*float64(s.pace.spread))
	s.ready.Store(0)
	s.going.Store(false)
	for _, l := range r.loops {
		if !l.through {
			l.wakeUp()
		}
	}
	left := int64(0)
	for range r.running {
		l := <-s.back
		if l.through {
			r.running--
		}
		left = max(left, l.left)
	}
	s.left = left
	if s.alone {
		return
	}
	s.cycleTime += max(0, s.left-s.steadyFrom)
	s.cycleIsOver = false
	if s.pace.ramp == 0 {
		s.leaveCPU()
	}
	s.cycleCPU += s.cpuLeft - s.cpuBegan
	s.readServer(true)
}

// usedCPU is what the process has used, but for spinning.
func (s *shared) usedCPU() int64 { return linux.ProcessCPU() - s.spun.Load() }

// leaveCPU: what the process uses from now on is not under load.
func (s *shared) leaveCPU() { s.cpuLeft = s.usedCPU() }

// enterCPU: from now on it is.
func (s *shared) enterCPU() {
	s.cpuBegan = s.usedCPU()
	s.cpuAway.Add(s.cpuBegan - s.cpuLeft)
}

// beginTurn begins the turn for all loops of the side, of which this one is the last that is ready.
func (s *shared) beginTurn(opens bool) {
	if s.alone {
		s.began = s.now()
		s.steadyFrom, s.sliceEnd = s.began, never
		return
	}
	s.readServer(false)
	if s.ramp == 0 {
		s.enterCPU()
	}
	s.began = s.now()
	s.steadyFrom = s.began + s.ramp
	s.sliceEnd = never
	if s.length < never {
		s.sliceEnd = s.steadyFrom + s.length
		s.count++
	}
	s.between = s.steadyFrom - s.left
	s.away += s.between
	if opens {
		// What it used before belongs to no window.
		s.server = serverUse{processes: s.server.processes, last: s.server.last, lastAt: s.server.lastAt}
		s.count, s.cycleTime, s.cycleCPU = 1, 0, 0
	}
}

// readServer notes what the server used since the last reading: in the side's own turn, or while others had theirs.
func (s *shared) readServer(own bool) {
	u := &s.server
	used, at, answered := u.processes.CPU(), s.now(), int64(0)
	for _, l := range s.loops {
		answered += l.answered
	}
	if own {
		u.own += used - u.last
		u.ownAnswered += answered - u.answered
	} else {
		u.idle += used - u.last
		u.idleTime += at - u.lastAt
	}
	u.last, u.lastAt, u.answered = used, at, answered
}

// figures are nil where they are not known.
func (t *turn) figures() (turns *TurnFigures, cpu *ServerCPU) {
	u := &t.server
	if !t.alone {
		turns = &TurnFigures{
			Count: t.count, Responses: u.ownAnswered, Waits: t.pace.waits,
			SliceMs: float64(t.pace.slice) / nanosecondsPerMillisecond, RampMs: float64(t.pace.ramp) / nanosecondsPerMillisecond,
		}
	}
	if u.processes != nil {
		cpu = &ServerCPU{Seconds: float64(u.own) / 1e9, IdleShare: float64(u.idle) / float64(max(1, u.idleTime))}
	}
	return turns, cpu
}

// awaitIdle waits until the server is done with what it does by itself: it began in the others' turns, and is not the load's. A server
// that does much by itself is not awaited for longer than its turn.
func (s *shared) awaitIdle() {
	u := &s.server
	limit := longestSelf
	if float64(u.idle) > muchIdleCPU*float64(u.idleTime) {
		limit = min(limit, s.length)
	}
	for end := s.now() + limit; u.processes != nil && u.processes.IsRunning() && s.now() < end && !s.stop.Load(); {
		linux.Sleep(int64(100 * time.Microsecond))
	}
}

// A loop's part in its side's turns, whose order and length are those of turns.go.

// joinTurn begins the loop's turn together with the side's other loops, its connections opened again.
func (l *loop) joinTurn() {
	s := l.shared
	l.clock = s.now()
	if l.phase == measuring || l.phase == warmedUp {
		l.reopen()
		if l.number == 0 {
			s.awaitIdle()
		}
	}
	l.answered, l.older = l.responses, l.outstanding
	if s.ready.Add(1) == s.running {
		s.beginTurn(l.phase == warmedUp || l.phase == unbegun && l.plan.Warmup == 0)
		s.going.Store(true)
	}
	for !s.going.Load() {
		linux.Sleep(int64(10 * time.Microsecond))
	}
	l.clock, l.began, l.steadyFrom, l.sliceEnd = s.began, s.began, s.steadyFrom, s.sliceEnd
	l.turnIsOver, l.started, l.spread, l.recordFrom, l.stood = false, 0, s.pace.spread, 0, 0
	if !s.alone && l.plan.Rate == 0 && l.phase != unbegun {
		// The first requests of a turn meet no queue.
		l.recordFrom = never
	}
	l.setCounting(s.pace.ramp == 0)
}

// nextTurn waits for the loop's next turn, and begins it.
func (l *loop) nextTurn() {
	s := l.shared
	l.leaveSilence()
	before := s.away
	l.readsLate = l.outstanding > 0
	l.endTurn()
	l.awaitTurn()
	l.joinTurn()
	if l.phase == warmedUp {
		l.beginWindow()
	} else {
		l.shift(s.away - before)
		if l.cycle != nil && s.cycleIsOver {
			l.endCycle(s.cycleCounts)
			l.windowIsOver = l.madeAll()
		}
		l.startAll()
	}
	l.endSliceEarly()
	l.nextTimer = l.clock
}

// shift moves what goes by the time under load, of which so much did not count, and the schedule of a rate to this turn.
func (l *loop) shift(by int64) {
	for _, at := range []*int64{&l.phaseEnd, &l.nextTick} {
		if *at < never {
			*at += by
		}
	}
	l.schedule.shift(l.shared.between)
	l.sampleFrom += l.shared.between
	if l.nextSample < never {
		l.nextSample += l.shared.between
	}
}

// endSliceEarly has the turn end with the window, where that ends within it or soon after it, and at once where all requests are made.
func (l *loop) endSliceEarly() {
	switch {
	case l.shared.alone || l.phase != measuring:
	case l.plan.Duration > 0:
		if soon := l.shared.length / 4; l.phaseEnd < l.sliceEnd+soon {
			l.sliceEnd = l.phaseEnd
		}
	case l.allowance == 0 && l.shared.quota.Load() <= 0:
		l.sliceEnd = l.clock
	}
}

// madeAll tells whether nothing is left to be made at a rate.
func (l *loop) madeAll() bool {
	if l.plan.Duration > 0 {
		return l.phaseEnd <= l.began
	}
	return l.allowance == 0 && l.outstanding == 0
}

// turnIsDone tells whether the loop's turn is over and what was under way is answered, or awaited no longer.
func (l *loop) turnIsDone() bool {
	if !l.turnIsOver {
		l.turnIsOver = true
		if s := l.shared; s.pace.ramp > 0 {
			l.setCounting(false)
			if l.number == 0 {
				s.leaveCPU()
			}
		}
	}
	// What has come by the end of the drain is read first: the loop itself may have been kept from it.
	if end := l.drainEnd(); l.outstanding > max(0, l.older) && (l.clock < end || !l.sawNothing && l.clock < end+longestSelf) {
		return false
	}
	// At a rate it is over once its last cycle counts.
	l.windowIsOver = l.cycle == nil && l.phase == measuring && l.plan.Duration > 0 && l.sliceEnd >= l.phaseEnd
	return true
}

// drainEnd is how long those under way are awaited at a turn's end.
func (l *loop) drainEnd() int64 {
	p := &l.shared.pace
	return min(l.sliceEnd+p.patience, max(l.sliceEnd, l.lastEnd)+p.quiet)
}

// turnEnd is when the loop has something to do for its turn's end.
func (l *loop) turnEnd() int64 {
	if l.clock >= l.sliceEnd {
		return l.drainEnd()
	}
	return l.sliceEnd
}

// endTurn gives the turn back.
func (l *loop) endTurn() {
	l.left, l.answered = l.turnEnded(), l.responses
	l.shared.back <- l
}

// turnEnded is when the loop's time under load ended. A server at its limit works at full rate while its queue drains, up to the
// last answer; what a server waits for, and what is late at a rate, is not under load any more.
func (l *loop) turnEnded() int64 {
	s := l.shared
	switch {
	case s.alone:
		return l.clock
	case l.plan.Rate > 0 || s.pace.ramp > 0:
		return max(l.steadyFrom, min(l.clock, l.sliceEnd))
	case l.lastEnd > s.began:
		return l.lastEnd
	}
	return l.clock
}

// setCounting says whether what ends from now on is in the figures.
func (l *loop) setCounting(on bool) {
	switch {
	case !on:
		l.current = l.outside
	case l.cycle != nil:
		l.current = &l.cycle.interval
	default:
		l.current = l.interval
	}
}

// wakeUp begins a loop's turn, wherever it waits for it.
func (l *loop) wakeUp() {
	if l.readsLate {
		// First, so that nothing is left to be read once the turn begins.
		syscall.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) //nolint:errcheck // an eventfd takes it
	}
	l.resume <- struct{}{}
}

// awaitTurn waits for the loop's next turn. Answers that come late are read meanwhile; they count.
func (l *loop) awaitTurn() {
	if !l.readsLate {
		<-l.resume
		return
	}
	l.spread = 0
	// Those of the warm-up are in no figure.
	l.setCounting(l.phase != warmedUp)
	for {
		select {
		case <-l.resume:
			var count [8]byte
			syscall.Read(l.wake, count[:]) //nolint:errcheck // it does not block
			l.readsLate = false
			return
		default:
		}
		// The Go scheduler is told, so that the processor is the others' meanwhile.
		n, _ := syscall.EpollWait(l.epoll, l.events[:eventsWithHandshakes], int(longestWait/int64(time.Millisecond)))
		l.clock = l.shared.now()
		l.handle(n)
		l.startSome()
		if l.sweepFrom > 0 || l.clock >= l.nextSweep {
			l.sweep()
		}
	}
}

// reopen opens again what the server has closed meanwhile, before the turn begins.
func (l *loop) reopen() {
	if !l.plan.KeepAlive || l.plan.divided {
		return
	}
	l.isReopening, l.spread = true, 0
	defer func() { l.isReopening = false }()
	// Each slot once: a server that closes what it accepts is for the turn to find out.
	left := len(l.conns)
	for deadline := l.clock + longestReopening; l.clock < deadline && !l.shared.stop.Load(); l.clock = l.shared.now() {
		n := max(0, linux.EpollWait(l.epoll, l.events[:eventsPerWait], 0))
		l.handle(n)
		l.startSome()
		if n > 0 {
			continue
		}
		if l.open == len(l.conns) && !l.isOpening() {
			return
		}
		opened := 0
		for i := range l.conns {
			if c := &l.conns[i]; c.state == closed && !c.paused && opened < startsPerTurn && left > 0 {
				c.connect()
				opened++
				left--
			}
		}
		if opened == 0 {
			if !l.isOpening() {
				return
			}
			l.handle(linux.EpollWaitExact(l.epoll, l.events[:eventsWithHandshakes], int64(time.Millisecond)))
		}
	}
}

// isOpening tells whether a connection is being opened that nothing is under way on.
func (l *loop) isOpening() bool {
	for i := range l.conns {
		if c := &l.conns[i]; (c.state == connecting || c.state == handshaking) && c.session.underWay() == 0 {
			return true
		}
	}
	return false
}
