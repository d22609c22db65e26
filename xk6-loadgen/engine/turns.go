package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
	shortestSlice, longestSlice = time.Millisecond, 10 * time.Second
	// drainLimit is how long the end of a slice waits for responses of a side that is not stopped.
	drainLimit = int64(time.Second)
	// idleLimit is how long a turn of the open model goes on until nothing is under way, so that the next one can settle.
	idleLimit = int64(5 * time.Millisecond)
	forEver   = time.Duration(never)
	// longestAwaiting bounds the mean length of turns while a side's connections are awaited.
	longestAwaiting = 100 * time.Millisecond
)

// Side is one of several loads that take turns.
type Side struct {
	Options
	// Processes are process groups, none of them another side's, that are stopped (SIGSTOP) while it is not the side's turn:
	// what is under way stays so. A side without any drains instead: at a slice's end no request starts, and those under way
	// are awaited, for a second at most.
	Processes []int
	// OnSecond is called once for each second under load, from a goroutine of the side's own. It may be nil.
	OnSecond func(Second)
}

// Turns say how sides take turns.
type Turns struct {
	// Slice is the mean length of a turn. Each is 75 to 125 % of it, drawn, so that nothing periodic meets the same side again.
	Slice time.Duration
	// Seed of what is drawn, arrivals included.
	Seed uint64
	// StartAt is when the first turn begins, whatever the sides' options say; zero: at once.
	StartAt time.Time
}

// turn is what the loops of a run know of its turns. It is written between two of them only, while none of the loops runs.
type turn struct {
	// sliceEnd is when the turn is over, on the run's clock.
	sliceEnd int64
	// away is how long others had their turns so far, cpuAway the CPU time that the process used meanwhile; left and cpuLeft are
	// the time since the epoch, and the process's CPU time, when the last turn ended. All in nanoseconds.
	away, left, cpuAway, cpuLeft int64
	// settled are the responses that were for nobody so far.
	settled int64
	// back carries loops whose turn is over, or that are through.
	back chan *loop
	// patience is how long a turn goes on after its slice while something is under way; with drains nothing is started then.
	patience int64
	drains   bool
	// begunAt is when all sides' connections had been answered, never before that is known; 0 where there are no other sides.
	begunAt int64
}

// Alternate loads several servers, one at a time: a random order of the sides, the same one backwards, and so on anew. All of
// a side's clocks run in its own turns only, so that its figures are those of a continuous load where its server is stopped. A
// side that drains has its pauses in them too: it makes fewer requests/s, by about one answer per slice, and with a rate what is
// due while it drains leaves late. A side that is through has no more turns; one that is alone has one without end, as with Run.
// The results are in the sides' order; StartedAt and EndedAt are the wall clock's, and so span the turns of the others too.
//
// No process group is left stopped when this function ends, however it does, or when one of its loops panics. Where the process
// ends otherwise in its midst (SIGKILL, or a panic elsewhere), whoever started it has to continue them.
// See Run for ctx and the errors, which name the side; beside these there is that of a process group that cannot be stopped.
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
		r := &run{plan: p, onSecond: side.OnSecond, processes: slices.Clone(side.Processes)}
		if len(sides) > 1 && p.Rate > 0 && len(side.Processes) > 0 {
			r.settler = settlerOf(p)
			connections += r.settler.plan.Connections
		}
		connections += p.Connections
		runs = append(runs, r)
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
	if t.Slice < shortestSlice || t.Slice > longestSlice {
		return fmt.Errorf("slice: must be %s to %s, got %s", shortestSlice, longestSlice, t.Slice)
	}
	// Nor can that of who started this process: nobody would be left to see to the servers where this one is killed.
	starters, _ := syscall.Getpgid(syscall.Getppid())
	var seen []int
	for i, side := range sides {
		for _, group := range side.Processes {
			switch {
			case group <= 1 || group == syscall.Getpgrp() || group == starters:
				return fmt.Errorf("sides[%d].processes: %d is no process group that can be stopped", i, group)
			case slices.Contains(seen, group):
				return fmt.Errorf("sides[%d].processes: group %d is named twice", i, group)
			}
			if err := syscall.Kill(-group, 0); err != nil {
				return fmt.Errorf("sides[%d].processes: group %d cannot be stopped: %w", i, group, err)
			}
			seen = append(seen, group)
		}
	}
	return nil
}

// takeTurns gives the sides their turns until all are through; one that is alone has one without end, and is never stopped.
func takeTurns(runs []*run, turns Turns) {
	if len(runs) == 1 {
		runs[0].turn(forEver)
		return
	}
	// Also when something panics here: a stopped server would stay for ever.
	defer continueAll(runs)
	for _, r := range runs {
		r.shared.begunAt = never
		r.signal(syscall.SIGSTOP)
	}
	random := rand.New(rand.NewPCG(turns.Seed, 0))
	for slices.ContainsFunc(runs, (*run).isUnderLoad) {
		order := random.Perm(len(runs))
		mirrored := slices.Clone(order)
		slices.Reverse(mirrored)
		for _, i := range append(order, mirrored...) {
			if runs[i].isUnderLoad() {
				slice := turns.Slice
				if slices.ContainsFunc(runs, (*run).isAwaited) {
					// Who waits for others waits no longer than for their next turns.
					slice = min(slice, longestAwaiting)
				} else {
					runs[i].begin()
				}
				runs[i].turn(time.Duration((0.75 + random.Float64()/2) * float64(slice)))
				// Also one that is through: what its server has left to do is not the others' to bear.
				runs[i].signal(syscall.SIGSTOP)
			}
		}
	}
}

// continueAll leaves no server stopped. No other signal of the runs is under way then: their turns are over, or wait for a loop.
func continueAll(runs []*run) {
	for _, r := range runs {
		r.signal(syscall.SIGCONT)
	}
}

// turn lets the side's loops run until the slice is over for all of them. Its clock runs while its server may: from just
// before the one signal until just before the other one.
func (r *run) turn(slice time.Duration) {
	r.settle(slice)
	s := r.shared
	s.cpuAway += linux.ProcessCPU() - s.cpuLeft
	s.away += int64(time.Since(s.epoch)) - s.left
	s.sliceEnd = s.now() + int64(slice)
	r.signal(syscall.SIGCONT)
	for _, l := range r.loops {
		if !l.through {
			l.resume <- struct{}{}
		}
	}
	for range r.running {
		if l := <-s.back; l.through {
			r.running--
		}
	}
	s.left, s.cpuLeft = int64(time.Since(s.epoch)), linux.ProcessCPU()
	if !r.isUnderLoad() {
		r.endSettling()
	}
}

func (r *run) isUnderLoad() bool { return r.running > 0 }

// isAwaited: the side's window has to wait for its connections, and so have the others': what disturbs one is to disturb all.
func (r *run) isAwaited() bool {
	return r.isUnderLoad() && r.plan.Warmup > 0 && r.plan.awaitsAll() && r.shared.reached.due() == never
}

// begin lets the side's loops go on, all at the same time, now that no side is awaited.
func (r *run) begin() {
	if r.shared.begunAt == never {
		r.shared.begunAt = meetingAt(r.shared.now(), r.plan.Threads)
	}
}

// signal is sent to all of the side's process groups. One that has ended is not for the load to tell: its connections do. It gets no
// more signals, since its number may come to be another's.
func (r *run) signal(signal syscall.Signal) {
	r.processes = slices.DeleteFunc(r.processes, func(group int) bool { return syscall.Kill(-group, signal) == syscall.ESRCH })
}

// turnEnd is when the loop has to come back at the latest.
func (l *loop) turnEnd() int64 {
	s := l.shared
	if l.clock >= s.sliceEnd && l.outstanding > 0 {
		return s.sliceEnd + s.patience
	}
	return s.sliceEnd
}

// endTurn ends the loop's turn, on a side that drains once nothing is under way, and waits for the next one. It returns whether
// there was one.
func (l *loop) endTurn() bool {
	s := l.shared
	l.turnIsOver = s.drains
	if l.clock < l.turnEnd() {
		return false
	}
	s.back <- l
	<-l.resume
	l.clock = s.now()
	l.rest.begin(l.clock)
	// Others may have been awaited, and are not any more.
	l.nextTimer = l.clock
	if l.turnIsOver {
		l.turnIsOver = false
		if l.plan.forNobody {
			// Each turn has a schedule of its own.
			l.schedule.begin(l.clock)
		}
		l.startAll()
	}
	return true
}
