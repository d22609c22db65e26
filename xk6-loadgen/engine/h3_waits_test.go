package engine

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"
)

// Workers serve one request after the other, each in the same time, and a request waits for the worker that is free first. All of them
// are always at work: what they take is known, however late a busy machine sends an answer.
func TestH3AServersWaitingIsMeasured(t *testing.T) {
	t.Parallel()
	const service, workers, requests = 5 * time.Millisecond, 2, 1000
	const most = workers / 0.005 // answers a second
	closed := func(o *Options) {
		o.Connections, o.Streams, o.Requests = 8, 50, 0 // a second's work, should the load be kept from its core
		o.Warmup, o.Duration = 1500*time.Millisecond, 4*time.Second
	}
	open := func(o *Options) { // at twice what they can do, so that each request waits longer than the last
		o.Connections, o.Streams, o.Requests, o.Rate = 1, 100, requests, 2*most
	}
	for name, test := range map[string]struct {
		change                 func(*Options)
		rate, meanMs, medianMs float64 // 0: not looked at
	}{
		"closed": {closed, most, 1000 * 400 / most, 0},
		"open":   {open, 0, 0, 5 + 1000*(requests-1)/2*(1/most-1/(2*most))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The race detector, beside other tests, may leave the load too little of its core.
			for attempt := 1; ; attempt++ {
				var mutex sync.Mutex
				var began time.Time // with the first request
				var free [workers]time.Time
				s := serveH3(t, nil, func(st *h3PeerStream) {
					mutex.Lock()
					first := &free[0]
					for i := range free {
						if free[i].Before(*first) {
							first = &free[i]
						}
					}
					now := time.Now()
					if began.IsZero() {
						began = now
					}
					if first.Before(now) {
						*first = now
					}
					*first = first.Add(service)
					done := *first
					mutex.Unlock()
					time.Sleep(time.Until(done)) // what is measured
					answer200(st)
				})
				o := h3Options(s.url)
				test.change(&o)
				from := time.Now()
				r := load(t, context.Background(), o)
				medianMs := test.medianMs
				if medianMs > 0 {
					medianMs += began.Sub(from).Seconds() * 1000 // the handshake, for which all wait that are due
				}
				var wrong []string
				for _, f := range []struct {
					name          string
					got, expected float64
				}{{"rate", r.RPS, test.rate}, {"mean", r.LatencyMs.Mean, test.meanMs}, {"median", r.LatencyMs.P50, medianMs}} {
					if f.expected > 0 && math.Abs(f.got/f.expected-1) > 0.05 {
						wrong = append(wrong, fmt.Sprintf("%s: %g instead of %g; errors %v: %s", f.name, f.got, f.expected, r.Errors, r.ErrorExample))
					}
				}
				if len(wrong) == 0 {
					return
				}
				if t.Log(wrong); attempt == 10 {
					t.FailNow()
				}
			}
		})
	}
}
