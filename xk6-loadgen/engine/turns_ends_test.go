package engine

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestASideWaitsForTheOthersConnections(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 200} {
		a, b := serve(t, always(ok)), serve(t, firstStalls())
		sides := []Side{{Options: options(a.url)}, {Options: options(b.url)}}
		for i := range sides {
			sides[i].Rate, sides[i].Connections, sides[i].Warmup, sides[i].Duration = rate, 2, 20*ms, 200*ms
			sides[i].patience = 0
		}
		r := alternate(t, 5*ms, sides...)
		begin, end := slices.MaxFunc([]time.Time{r[0].Window.StartedAt, r[1].Window.StartedAt}, time.Time.Compare), slices.MinFunc([]time.Time{r[0].Window.EndedAt, r[1].Window.EndedAt}, time.Time.Compare)
		if !begin.Before(end) {
			t.Errorf("rate %g: one window begins at %v, when the other one has ended, at %v", rate, begin, end)
		}
	}
}

func TestLongTurnsDoNotMakeTheWarmupLong(t *testing.T) {
	t.Parallel()
	sides := sidesOf(func(side *Side) {
		side.Warmup, side.Duration = 20*ms, 50*ms
	}, serve(t, always(ok)).url, serve(t, always(ok)).url, serve(t, always(ok)).url)
	began := time.Now()
	// Nobody waits through a turn of its own, which would take 30 s for all.
	if alternate(t, 10*time.Second, sides...); time.Since(began) > 8*time.Second {
		t.Errorf("three sides of 70 ms took %v", time.Since(began))
	}
}

func TestNothingIsWaitedForThatMayNotStartInThisTurn(t *testing.T) {
	o := options(nobody)
	o.Rate, o.Duration = 1000, time.Minute
	l := idleLoop(t, o)
	l.beginWarmup(0)
	l.window.phaseEnd = int64(o.Duration)
	if !l.model.(*openModel).mayStart() {
		t.Error("nothing may start within a turn")
	}
	l.turn.state = awaiting
	if l.model.(*openModel).mayStart() {
		t.Error("something may start in a turn that is over, so that the loop looks for events without a pause")
	}
}

func TestSidesWarmUpTogether(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // until each side has been asked
	sides := sidesOf(func(side *Side) {
		side.Connections, side.Duration, side.Warmup = 2, 50*ms, 50*ms
	}, "", "", "")
	for i := range sides {
		all.Add(1)
		first := sync.OnceFunc(all.Done)
		sides[i].URL = serve(t, answersAfter(func(*testServer, net.Conn) bool {
			first()
			all.Wait()
			return true
		})).url
	}
	results, err := Alternate(context.Background(), sides, Turns{Seed: 1, WarmTogether: true})
	if err != nil {
		t.Fatal(err) // one after the other, the first side has no answer
	}
	for i, r := range results {
		if r.Continuous == nil || r.Responses[0] == 0 || r.Turns.Count < 1 {
			t.Errorf("side %d: %+v", i, r)
		}
	}
}
