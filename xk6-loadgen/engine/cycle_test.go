package engine

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

func TestACycleCountsOrIsMadeAgain(t *testing.T) {
	o := options(nobody)
	o.Rate, o.Requests, o.Buckets = 100, 50, []time.Duration{ms}
	o.Mix = []Request{{Target: "/a"}, {Target: "/b", Status: 201}}
	l := idleLoop(t, o)
	l.share.left = 40
	l.startCycles()
	ofPageB := &l.plan.requests[slices.IndexFunc(l.plan.requests, func(r request) bool { return r.page == 1 })]
	respond := func(times int) {
		for range times {
			l.counts.outstanding++
			l.response(&attempt{start: l.clock, request: ofPageB, expected: ofPageB.expected}, l.clock, 200, 1, 1, 1)
			l.model.noteSent(l.clock)
		}
	}
	respond(7)
	l.endCycle(false)
	if l.counts.interval.Requests != 0 || l.share.left != 47 || l.counts.warmup != 7 {
		t.Errorf("left out: %d requests, %d to make, %d beside", l.counts.interval.Requests, l.share.left, l.counts.warmup)
	}
	respond(3)
	l.endCycle(true)
	respond(2)
	l.leaveCycles()
	if l.counts.interval.Requests != 5 || l.counts.interval.latency.count != 5 || l.tally.sendDelays.count != 5 || l.tally.bucketCounts[0] != 5 || l.share.left != 47 || l.cycle != nil || l.tally.pages.figures(l.plan.pages)[1].Unexpected != 5 {
		t.Errorf("%d requests, %d latencies, %d send delays, buckets %v, %d to make, pages %v", l.counts.interval.Requests, l.counts.interval.latency.count, l.tally.sendDelays.count, l.tally.bucketCounts, l.share.left, l.tally.pages.figures(l.plan.pages))
	}
}

// What is due while no connection is free waits for the server, not for the generator.
func TestOnlyTheGeneratorStandsStill(t *testing.T) {
	o := options(nobody)
	o.Rate, o.Duration = 100, time.Second
	for idleSince, want := range map[int64]int64{0: 30e6, 95e6: 5e6} {
		l := idleLoop(t, o)
		m := l.model.(*openModel)
		l.clock, m.idleSince, m.due = 100e6, idleSince, 70e6
		if m.noteStandstill(); m.standstill() != want {
			t.Errorf("free since %d: stalled for %d ns, want %d", idleSince, m.standstill(), want)
		}
	}
}

func TestCyclesInWhichTheGeneratorStalledAreLeftOut(t *testing.T) {
	o := options(nobody)
	o.Rate, o.Duration = 100, time.Second
	l := idleLoop(t, o)
	r := &run{plan: l.plan, shared: l.shared, loops: []*loop{l}}
	c := newCycles([]*run{r})
	for number, step := range []struct {
		stalled int64
		counts  bool
	}{
		{1e6, true}, {6e6, false}, {0, true}, {6e6, true}, {0, true}, {6e6, false},
	} {
		l.model.(*openModel).stalled, r.shared.cycle.time, r.shared.turn.away = step.stalled, 5, 0
		c.observe(r, []*run{r})
		c.end([]*run{r})
		if s := r.shared; s.cycle.counts != step.counts || (s.turn.away == 0) != step.counts || s.cycle.time != 0 {
			t.Errorf("cycle %d: counts %v, %d ns away", number, s.cycle.counts, s.turn.away)
		}
	}
	if c.all != 6 || c.stalled != 3 || c.leftOut != 2 {
		t.Errorf("%d cycles, %d stalled, %d left out", c.all, c.stalled, c.leftOut)
	}
}

func TestTheCountOfARateIsMadeWhateverIsLeftOut(t *testing.T) {
	t.Parallel()
	a, b := serve(t, always(ok)), serve(t, always(ok))
	sides := sidesOf(func(side *Side) { side.Rate, side.Requests, side.Warmup = 500, 200, 20*ms }, a.url, b.url)
	for i, r := range alternate(t, 20*ms, sides...) {
		seen := []*testServer{a, b}[i].requests.Load()
		if r.Requests != 200 || r.Requests+r.WarmupRequests != seen || r.InFlight != 0 || r.Turns.StoodStill < 0 || r.Turns.StoodStill > 1 {
			t.Errorf("side %d: %d requests, %d beside, %d in flight, the server saw %d; stalled in %g of the turns", i, r.Requests, r.WarmupRequests, r.InFlight, seen, r.Turns.StoodStill)
		}
	}
}

// What is left out is made again, at the same rate: no figure shows it.
func TestWhatIsLeftOutLeavesNoGap(t *testing.T) {
	defer func(before int64) { longestStandstill = before }(longestStandstill)
	longestStandstill = -1
	tried(t, func() string {
		sides := sidesOf(func(side *Side) {
			side.Rate, side.Duration, side.Warmup = 500, 400*ms, 20*ms
		}, serve(t, always(ok)).url, serve(t, always(ok)).url)
		for i, r := range alternate(t, 20*ms, sides...) {
			if made := r.Requests + r.InFlight + r.Unsent; r.Turns.StoodStill < 0.8 || made < 190 || made > 210 || r.Seconds < 0.399 || r.Seconds > 0.401 || r.WarmupRequests < 20 {
				return fmt.Sprintf("side %d: %d requests, %d in flight, %d unsent in %g s, %d beside; stalled in %g of the turns", i, r.Requests, r.InFlight, r.Unsent, r.Seconds, r.WarmupRequests, r.Turns.StoodStill)
			}
			if g := r.QueueGrowth; g == nil || g.PerSecond < -50 || g.PerSecond > 50 {
				return fmt.Sprintf("side %d: the queue grows by %+v", i, g)
			}
		}
		return ""
	})
}

func TestATurnHasWhatTheServersCoresDid(t *testing.T) {
	o := options(nobody)
	o.Duration = time.Second
	l := idleLoop(t, o)
	r := &run{plan: l.plan, shared: l.shared, loops: []*loop{l}}
	c := newCycles([]*run{r})
	if c.observe(r, []*run{r}); r.shared.server.cores != (CoreUse{}) {
		t.Errorf("of an unknown server: %+v", r.shared.server.cores)
	}
	c.serverCores = linux.Cores()
	r.shared.server.processes = linux.NewProcessTree([]int{os.Getpid()})
	c.read([]*run{r})
	const work = 200 * ms
	for until := linux.ProcessCPU() + int64(work); linux.ProcessCPU() < until; {
	}
	c.observe(r, []*run{r})
	if u := r.shared.server.cores; u.Processes < work.Seconds()/2 || u.Processes > (u.Seconds+0.02)*float64(len(c.serverCores)) || u.Interrupts < 0 || u.Servers < work.Seconds() {
		t.Errorf("%+v", u)
	}
}
