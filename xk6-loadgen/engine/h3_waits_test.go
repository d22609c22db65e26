package engine

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"
)

// Workers serve one request after the other, each in the same time, and a request waits for the worker that is free first. All of them
// are always at work: what they take is known, however late a busy machine sends an answer. One that is too late gets slower workers.
func TestH3AServersWaitingIsMeasured(t *testing.T) {
	t.Parallel()
	const workers, requests = 2, 1000
	for name, isOpen := range map[string]bool{"closed": false, "open": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for service := 5 * time.Millisecond; ; service *= 2 {
				most := workers / service.Seconds() // answers a second
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
				if isOpen { // at twice what they can do, so that each request waits longer than the last
					o.Connections, o.Streams, o.Requests, o.Rate = 1, 100, requests, 2*most
				} else {
					o.Connections, o.Streams, o.Requests = 8, 50, 0 // work for 200 times the service, should the load be kept from its core
					o.Warmup, o.Duration = 300*service, 800*service
				}
				from := time.Now()
				r := load(t, o)
				figures := [][2]float64{{r.RPS, most}, {r.LatencyMs.Mean, 1000 * 400 / most}}
				if isOpen {
					handshakeMs := began.Sub(from).Seconds() * 1000 // for which all wait that are due
					figures = [][2]float64{{r.LatencyMs.P50, handshakeMs + 1000*service.Seconds() + 1000*(requests-1)/2*(1/most-1/o.Rate)}}
				}
				if !slices.ContainsFunc(figures, func(f [2]float64) bool { return math.Abs(f[0]/f[1]-1) > 0.05 }) {
					return
				}
				if t.Logf("with a service of %s: %v, each beside what is expected; errors %v: %s", service, figures, r.Errors, r.ErrorExample); service > 50*time.Millisecond {
					t.FailNow()
				}
			}
		})
	}
}
