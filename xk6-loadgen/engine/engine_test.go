package engine

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestBodiesOfEveryFraming(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		answer handler
		body   int64
	}{
		"chunked":              {always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + big + "\r\n0\r\n\r\n"), 1 << 20},
		"until close":          {once("HTTP/1.1 200 OK\r\n\r\n" + big), 1 << 20},
		"HTTP/1.0 until close": {once("HTTP/1.0 200 OK\r\n\r\nhello"), 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.answer)
			o := options(s.url)
			o.Requests = 40
			r := load(t, o)
			if r.Responses[0] != 40 || r.BodyTotal() != 40*test.body {
				t.Error(r)
			}
		})
	}
}

func TestStopsWithin100msAndKeepsItsCounts(t *testing.T) {
	for name, connections := range map[string]int{"busy": 4, "silent": 4, "still connecting": 3000} {
		t.Run(name, func(t *testing.T) {
			answer := always(ok)
			if name == "silent" {
				answer = stallsAfter("")
			}
			// Other work on the machine can only delay it: the middle one of a few runs tells.
			var late []time.Duration
			for range 5 {
				s := serve(t, answer)
				o := options(s.url)
				o.Duration, o.Threads, o.Connections = time.Minute, 2, connections
				ctx, cancel := context.WithCancel(context.Background())
				var cancelled time.Time
				go func() {
					waitFor(t, func() bool { return s.requests.Load() >= 4 })
					cancelled = time.Now()
					cancel()
				}()
				r := loadWithin(t, ctx, o)
				late = append(late, r.Window.EndedAt.Sub(cancelled))
			}
			slices.Sort(late)
			if late[2] > 100*ms {
				t.Errorf("ended %s after it was told to", late)
			}
		})
	}
}

func TestStopDuringWarmupLeavesAnEmptyWindow(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Warmup = time.Minute
	r := loadUntil(t, o, func() bool { return s.requests.Load() > 100 })
	if r.Requests != 0 || r.WarmupRequests < 90 || r.RPS != 0 || s.requests.Load() > r.WarmupRequests+r.InFlight {
		t.Error(r)
	}
}

func TestNothingIsAllocatedPerRequest(t *testing.T) {
	o := options(serve(t, always(ok)).url)
	o.Connections, o.Warmup, o.Requests = 10, 50*ms, 20_000
	wantFewAllocations(t, o)
	o.URL, o.KeepAlive, o.Protocol = serveOneByOne(t), false, HTTP10
	wantFewAllocations(t, o)
}

func wantFewAllocations(t *testing.T, o Options) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	load(t, o)
	runtime.ReadMemStats(&after)
	// Set-up, the test server's connections and the result take a few hundred; one per request would be 20,000.
	if n := after.Mallocs - before.Mallocs; n > 4000 {
		t.Errorf("%d allocations for 20,000 requests", n)
	}
}

func waitFor(t *testing.T, condition func() bool) {
	for deadline := time.Now().Add(patient); !condition(); time.Sleep(ms) {
		if time.Now().After(deadline) {
			t.Errorf("waited %s in vain", patient)
			return
		}
	}
}
