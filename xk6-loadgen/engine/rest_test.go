package engine

import (
	"context"
	"testing"
	"time"
)

func TestWhereALoopRests(t *testing.T) {
	for _, one := range []struct {
		url      string
		protocol Protocol
		rate     float64
		percent  int64
	}{
		{"https://127.0.0.1:1/", H2, 0, restPercentTLS},
		{"https://127.0.0.1:1/", HTTP11, 0, restPercentTLS},
		{"http://127.0.0.1:1/", H2C, 0, restPercentH2C},
		{"http://127.0.0.1:1/", HTTP11, 0, 0},
		{"https://127.0.0.1:1/", H2, 1000, 0},
		{"http://127.0.0.1:1/", H2C, 1000, 0},
	} {
		o := options(one.url)
		o.Protocol, o.Rate, o.Duration = one.protocol, one.rate, time.Second
		p, err := newPlan(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := newRest(p).percent; got != one.percent {
			t.Errorf("%s at %v requests/s of %s: %d percent, not %d", one.protocol, one.rate, one.url, got, one.percent)
		}
	}
}

func TestARestIsOwedUntilItIsWorthIt(t *testing.T) {
	const microsecond = int64(time.Microsecond)
	at := 7 * second
	r := rest{percent: 40}
	r.begin(at)
	works := func(microseconds int64) int64 {
		at += microseconds * microsecond
		return r.due(at) / microsecond
	}
	waits := func(microseconds int64) {
		at += microseconds * microsecond
		r.begin(at)
	}
	rests := func(microseconds int64) {
		from := at
		at += microseconds * microsecond
		r.rested(from, at)
	}
	expect := func(got, want int64) {
		t.Helper()
		if got != want {
			t.Fatalf("a rest of %d µs is due, not of %d", got, want)
		}
	}
	expect(works(20), 0)
	waits(1000) // is not work
	expect(works(10), 12)
	rests(16) // 4 too long
	expect(works(30), 0)
	expect(works(5), 10)
	rests(10)
	// However long the work, and the rest: neither has an effect for long.
	expect(works(1_000_000), longestRest/microsecond)
	rests(1_000_000)
	expect(works(49), 0)
	expect(works(1), 10)

	none := rest{}
	none.begin(at)
	expect(none.due(at+second), 0)
}

func TestALoopRestsBeforeItWaits(t *testing.T) {
	for protocol, rests := range map[Protocol]bool{H2C: true, HTTP11: false} {
		o := options("http://127.0.0.1:9/")
		o.Protocol, o.Requests = protocol, 1
		l := idleLoop(t, o)
		l.rest.begin(l.shared.now() - second)
		l.wait(l.events[:])
		// The longest rest was due. A signal may have ended it early, but some of it was taken off.
		if rested := l.rest.owed != 0 && l.rest.owed < longestRest; rested != rests {
			t.Errorf("%s: a rest of %d ns is owed after a wait", protocol, l.rest.owed)
		}
	}
}
