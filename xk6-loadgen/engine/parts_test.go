package engine

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Parts of a loop that have rules of their own. Times are small numbers on a clock of the test's.

func TestAPassOverTheSlotsIsMadeInPiecesAndThenWaits(t *testing.T) {
	const slots = 2*slotsPerTimeoutCheck + 1
	passes := timeoutsAfter(2 * time.Second)
	passes.next = 100
	checked := []int{}
	for clock := int64(100); passes.due(clock) <= clock; clock++ {
		from, to := passes.step(clock, slots)
		for i := from; i < to; i++ {
			checked = append(checked, i)
		}
		if to-from > 1000 {
			t.Fatalf("%d slots at once", to-from)
		}
	}
	if len(checked) != slots || !slices.IsSorted(checked) || checked[slots-1] != slots-1 {
		t.Errorf("%d slots were checked, want each of %d once", len(checked), slots)
	}
	// A hundredth of the time-out after the pass's begin.
	if want := 100 + int64(20*ms); passes.next != want {
		t.Errorf("the next pass begins at %d, want %d", passes.next, want)
	}
	if passes.bringForward(never, 100) || !passes.bringForward(101, 100) || passes.next != 100+shortestTimeoutCheckInterval {
		t.Errorf("brought forward to %d, want the shortest interval after the clock", passes.next)
	}
	for timeout, want := range map[time.Duration]int64{ms: shortestTimeoutCheckInterval, time.Hour: longestTimeoutCheckInterval} {
		if got := timeoutsAfter(timeout).interval; got != want {
			t.Errorf("a time-out of %s is checked every %d ns, want %d", timeout, got, want)
		}
	}
}

func TestStartsAreSpreadOverTheBeginOfATurn(t *testing.T) {
	const slots = 10
	conns := make([]conn, slots)
	s := starts{ring: newConnRing(slots)}
	for i := range conns {
		s.push(&conns[i])
		s.push(&conns[i]) // once is enough
	}
	if s.ring.len != slots {
		t.Fatalf("%d slots wait, want %d", s.ring.len, slots)
	}
	s.restart(1000)
	for _, step := range []struct {
		since int64
		room  int
	}{{0, 1}, {0, 0}, {99, 0}, {100, 1}, {399, 2}, {999, 6}, {1000, startsPerIteration}} {
		room := s.room(step.since, slots)
		if room != step.room {
			t.Fatalf("%d ns after the begin %d may start, want %d", step.since, room, step.room)
		}
		for range min(room, s.ring.len) {
			if c := s.pop(); c != &conns[s.begun-1] {
				t.Fatal("a slot started out of turn")
			}
		}
	}
}

func TestTheWindowWaitsForConnectionsThatGetFurther(t *testing.T) {
	const patience = 100 * time.Nanosecond
	for name, c := range map[string]struct {
		do   func(r *reach)
		at   int64
		want bool
	}{
		"none has got further for long enough": {func(*reach) {}, 101, true},
		"some may still":                       {func(*reach) {}, 100, false},
		"one has just got further":             {func(r *reach) { r.progress(50) }, 150, false},
		"one has a response":                   {func(r *reach) { r.reached(50) }, 150, false},
		"all have":                             {func(r *reach) { r.reached(1); r.reached(2) }, 2, true},
		"for as long as it may":                {func(r *reach) { r.progress(2 * longestReach) }, longestReach + 1, true},
	} {
		r := newReach(2, patience)
		c.do(&r)
		if got := r.arrives(c.at, 0); got != c.want {
			t.Errorf("%s: %t at %d", name, got, c.at)
		}
		if c.want && r.arrives(c.at, 0) {
			t.Errorf("%s: arrives twice", name)
		}
	}
	if r := newReach(1, 0); !r.reached(1) {
		t.Errorf("%+v is not the last slot", r)
	}
}

func TestTheWindowWaitsLongerForConnectionsOfASlowServer(t *testing.T) {
	const wait = 4 * second
	r := newReach(3, 0)
	if r.progress(second); r.arrives(second+wait, 0) {
		t.Error("it does not wait for the first response")
	}
	r.reached(second + wait)
	// The others may wait behind the first one.
	if r.arrives(second+3*wait, 0) {
		t.Error("it does not wait as long again for the second response")
	}
	r.reached(second + 3*wait)
	if !r.arrives(second+5*wait+1, 0) {
		t.Error("it waits for the third response without end")
	}
	if r := newReach(2, 0); r.reached(1) || !r.arrives(int64(reachPatience)+2, 0) {
		t.Error("it waits as long for those of a fast server")
	}
	if r := newReach(2, 0); !r.arrives(int64(firstPatience)+1, 0) {
		t.Error("it waits without end for the first response")
	}
}

func TestTheProbeAwaitsOneAnswerOfASlowServer(t *testing.T) {
	for _, c := range []struct {
		ended, waited int64
		want          bool
	}{
		{probeRequests - 1, probeLimit - 1, false},
		{probeRequests, 1, true},
		{1, probeLimit, true},
		{0, longestProbe - 1, false},
		{0, longestProbe, true},
	} {
		if got := isProbed(c.ended, c.waited); got != c.want {
			t.Errorf("%d requests after %v: %t", c.ended, time.Duration(c.waited), got)
		}
	}
}

func TestAGapIsOneOfAllLoops(t *testing.T) {
	var shared sharedGap
	a, b := loopGap{shared: &shared}, loopGap{shared: &shared}
	longest := func(what string, want int64) {
		t.Helper()
		if got := shared.longest.Load(); got != want {
			t.Errorf("%s: the longest gap is %d, want %d", what, got, want)
		}
	}
	const ms = int64(time.Millisecond)
	a.restart(0)
	b.restart(0)
	a.setUnderWay(true, 10*ms) // Before, nothing was under way
	a.responded(1, 30*ms, 30*ms)
	longest("with one loop", 20*ms)
	b.setUnderWay(true, 35*ms)
	b.responded(1, 60*ms, 60*ms)
	longest("since the other loop's response", 30*ms)
	a.responded(2, 80*ms, 80*ms) // b had one at 60
	longest("with a response of the other loop in it", 30*ms)
	b.setUnderWay(false, 90*ms)
	a.responded(3, 125*ms, 125*ms)
	longest("until the response", 45*ms)
	a.leave(125 * ms)
	b.setUnderWay(true, 500*ms)
	b.end(510 * ms)
	longest("after a time with nothing under way", 45*ms)
}

func TestALoopGivesUpOnlyWithoutAnyHope(t *testing.T) {
	lost := hope{began: 100, after: 50, failing: 2}
	for name, c := range map[string]struct {
		change    func(h *hope)
		clock     int64
		responses int64
		want      bool
	}{
		"all fail for long enough": {func(*hope) {}, 150, 0, true},
		"not for long":             {func(*hope) {}, 149, 0, false},
		"one does not fail":        {func(h *hope) { h.failing = 1 }, 150, 0, false},
		"there was a response":     {func(*hope) {}, 150, 1, false},
		"in the warm-up":           {func(h *hope) { h.hasAnswered = true }, 150, 0, false},
		"it has given up":          {func(h *hope) { h.isLost = true }, 150, 0, false},
	} {
		h := lost
		c.change(&h)
		if got := h.isGone(c.clock, 2, c.responses); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestLoopsDrawChunksOfTheQuota(t *testing.T) {
	var from shared
	from.quota.Store(10)
	a, b := loopShare{chunk: 4}, loopShare{chunk: 4}
	if !a.take(&from) || a.left != 3 || from.quota.Load() != 6 {
		t.Errorf("a chunk of 4 left the loop %d, and all %d", a.left, from.quota.Load())
	}
	taken := 1
	for a.take(&from) {
		taken++
		if b.take(&from) {
			taken++
		}
	}
	for b.take(&from) {
		taken++
	}
	if taken != 10 {
		t.Errorf("%d of 10 were taken", taken)
	}
}

func TestSamplesAreRatesOfTheirOwnTime(t *testing.T) {
	var s samples
	s.restart(second, 3*second)
	s.take(second, 0) // no time, no sample
	s.take(2*second, 100)
	s.shift(5 * second) // other sides' turns
	s.take(7*second+second/2, 150)
	if want := []float64{100, 100}; !slices.Equal(s.perSecond, want) {
		t.Errorf("%v, want %v", s.perSecond, want)
	}
	if s.next != 7*second+second/2+threadSampleEvery {
		t.Errorf("the next one is due at %d", s.next)
	}
	if s.half != second+second/2 || s.byHalf != 150 {
		t.Errorf("the window's middle was over after %d, with %d responses", s.half, s.byHalf)
	}
}

func TestCPUTimeIsReadAfterTheMiddleOfTheWindow(t *testing.T) {
	s := &shared{}
	s.opening.opened, s.opening.windowStart = true, second
	turn := func(seconds float64, used, answered int64) {
		s.turn.left += int64(seconds * 1e9)
		s.server.own, s.server.ownAnswered = s.server.own+used, s.server.ownAnswered+answered
		s.bookHalf(second)
	}
	s.turn.left, s.turn.away = 3*second, 2*second // the turns of others
	turn(0.4, 400, 10)
	turn(0.2, 200, 5)
	if gain := s.server.gain(); gain != 0 {
		t.Errorf("a gain of %g without a second half", gain)
	}
	turn(0.2, 100, 5)
	turn(0.2, 200, 10)
	if gain := s.server.gain(); gain != 2 {
		t.Errorf("a gain of %g, by arithmetic 2", gain)
	}
}

func TestGrowthIsReadOverFourParts(t *testing.T) {
	var g queueGrowth
	g.watch(1000, 1400)
	queue := int64(5)
	for at := int64(1000); at <= 1500; at += 10 {
		if at >= g.next {
			g.note(at, queue, at)
			queue += 2
		}
	}
	if want := (queuePart{100, 2, 100}); len(g.parts) != queueParts || slices.ContainsFunc(g.parts, func(p queuePart) bool { return p != want }) || g.next != never {
		t.Errorf("%v, next at %d", g.parts, g.next)
	}
	g.keep()
	g.watch(2000, 2400)
	g.note(2000, 0, 0)
	g.note(2100, 9, 9)
	if g.drop(); len(g.parts) != queueParts {
		t.Errorf("%d parts after a cycle that does not count", len(g.parts))
	}
}

func TestLatenciesOfARampAreLeftOut(t *testing.T) {
	turn := loopTurn{began: 100, recordFrom: 150, sliceEnd: 300}
	for start, want := range map[int64]bool{99: true, 100: false, 149: false, 150: true} {
		if turn.records(start) != want {
			t.Errorf("a request that starts at %d in a turn from 100, with a ramp until 150: %t", start, !want)
		}
	}
	turn.endBy(400)
	if turn.endBy(250); turn.sliceEnd != 250 {
		t.Errorf("ends at %d", turn.sliceEnd)
	}
}

func TestAWokenPollerEndsItsWait(t *testing.T) {
	for name, p := range map[string]poller{
		"epoll": &epoll{isWoken: true}, "epoll that yields": &epoll{isWoken: true, yields: true}, "bell": newBell(),
	} {
		t.Run(name, func(t *testing.T) {
			must(t, p.open())
			defer p.close()
			events := make([]syscall.EpollEvent, 4)
			if n := p.poll(events); n != 0 {
				t.Fatalf("%d events before any", n)
			}
			go p.wake()
			n := 0
			for end := time.Now().Add(time.Minute); n == 0 && time.Now().Before(end); { // A signal, such as the Go scheduler's, ends a wait too
				n = p.wait(events, int64(time.Minute))
			}
			if n != 1 || events[0].Fd != noSlot {
				t.Errorf("%d events, of slot %d", n, events[0].Fd)
			}
			if n := p.poll(events); n != 0 {
				t.Errorf("%d events of one call", n)
			}
		})
	}
}

func TestLoopsPassTheGateTogether(t *testing.T) {
	const loops = 4
	var g gate
	g.close(loops)
	var begun, early atomic.Int32
	var all sync.WaitGroup
	for range loops {
		all.Go(func() {
			g.pass(func() { begun.Add(1) }, runtime.Gosched)
			if begun.Load() != 1 {
				early.Add(1)
			}
		})
	}
	all.Wait()
	if begun.Load() != 1 || early.Load() > 0 {
		t.Errorf("the turn began %d times, and %d loops went on before", begun.Load(), early.Load())
	}
}

func TestCPUTimeCountsWithinWindows(t *testing.T) {
	c := cpuLedger{left: 100}
	want := func(what string, used, want int64) {
		t.Helper()
		if got := c.counted(used); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	c.away.Store(100) // before the first turn
	want("in the ramp", 150, 0)
	c.enter(160)
	want("in the window", 200, 40)
	c.to.Store(210)
	want("in the drain", 250, 50)
	if got := c.endTurn(270); got != 50 {
		t.Errorf("the turn's window took %d", got)
	}
	c.restart()
	want("in the next ramp", 500, 50)
	c.enter(600)
	if got := c.endTurn(700); got != 100 {
		t.Errorf("a turn without a drain took %d", got)
	}
	c.restart()
	if got := c.endTurn(800); got != 0 {
		t.Errorf("a turn that never counted took %d", got)
	}
	want("afterwards", 900, 150)
}
