package engine

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDurationModeCountsWhatTheServerAnswered(t *testing.T) {
	t.Parallel()
	for _, warmup := range []time.Duration{0, 200 * time.Millisecond} {
		s := serve(t, always(ok))
		o := options(s.url)
		o.Duration, o.Warmup, o.Connections = 1600*time.Millisecond, warmup, 10
		r := load(t, o)
		// The server reads every request before the engine's sockets are closed, or never.
		if total := r.Requests + r.WarmupRequests + r.InFlight; s.requests.Load() > total || s.requests.Load() < total-r.InFlight {
			t.Errorf("the server saw %d, the engine %d + %d + %d", s.requests.Load(), r.Requests, r.WarmupRequests, r.InFlight)
		}
		if r.Requests == 0 || (warmup > 0) != (r.WarmupRequests > 0) || r.ErrorTotal() != 0 {
			t.Errorf("requests %d, warm-up %d, errors %d (%s)", r.Requests, r.WarmupRequests, r.ErrorTotal(), r.ErrorExample)
		}
		if r.Seconds < 1.6 || !r.Window.EndedAt.Equal(r.seconds[len(r.seconds)-1].End) {
			t.Errorf("%f s from %s to %s", r.Seconds, r.Window.StartedAt, r.Window.EndedAt)
		}
		// A thread that was kept from its core at the end of the first second hands out both as one.
		if n := len(r.seconds); n == 0 || n > 2 {
			t.Errorf("%d seconds handed out, want 2", n)
		}
		if r.CPUSeconds <= 0 {
			t.Errorf("CPU seconds %f", r.CPUSeconds)
		}
	}
}

func TestBodiesOfEveryFraming(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		answer func(*testServer, net.Conn)
		method string
		body   int64
		class  int
	}{
		"length beyond the buffer": {always("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + big), "GET", 1 << 20, 0},
		"chunked":                  {always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + big + "\r\n0\r\n\r\n"), "GET", 1 << 20, 0},
		"until close":              {once("HTTP/1.1 200 OK\r\n\r\n" + big), "GET", 1 << 20, 0},
		"HTTP/1.0 until close":     {once("HTTP/1.0 200 OK\r\n\r\nhello"), "GET", 5, 0},
		"204":                      {always("HTTP/1.1 204 No Content\r\n\r\n"), "GET", 0, 0},
		"304":                      {always("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), "GET", 0, 1},
		"404":                      {always("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"), "GET", 2, 2},
		"503":                      {once("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"), "GET", 2, 3},
		"HEAD":                     {always("HTTP/1.1 200 OK\r\nContent-Length: 612\r\n\r\n"), "HEAD", 0, 0},
		"1xx first":                {always("HTTP/1.1 103 Early Hints\r\n\r\n" + ok), "GET", 5, 0},
		"slow bytes": {func(s *testServer, c net.Conn) {
			for r := bufio.NewReader(c); s.readRequest(r); {
				for i := range len(ok) {
					if _, err := c.Write([]byte{ok[i]}); err != nil {
						return
					}
				}
			}
		}, "GET", 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.answer)
			o := options(s.url)
			o.Requests, o.Method = 40, test.method
			r := load(t, o)
			if r.Responses[test.class] != 40 || r.BodyBytes != 40*test.body {
				t.Errorf("responses %v, body %d bytes, errors %v: %s", r.Responses, r.BodyBytes, r.Errors, r.ErrorExample)
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
				if name == "silent" && (r.InFlight != 4 || r.Requests != 0) {
					t.Errorf("in flight %d, requests %d", r.InFlight, r.Requests)
				}
			}
			slices.Sort(late)
			if late[2] > 100*time.Millisecond {
				t.Errorf("ended %s after it was told to", late)
			}
		})
	}
}

func TestStopDuringWarmupLeavesAnEmptyWindow(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Duration, o.Warmup = time.Second, time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		waitFor(t, func() bool { return s.requests.Load() > 100 })
		cancel()
	}()
	r := loadWithin(t, ctx, o)
	if r.Requests != 0 || r.WarmupRequests < 90 || r.RPS != 0 || s.requests.Load() > r.WarmupRequests+r.InFlight {
		t.Errorf("requests %d, in flight %d, warm-up %d", r.Requests, r.InFlight, r.WarmupRequests)
	}
}

func TestAStallShowsAsLatency(t *testing.T) {
	const stall = 120 * time.Millisecond
	s := serve(t, func(s *testServer, c net.Conn) {
		r := bufio.NewReader(c)
		for s.readRequest(r) {
			if s.requests.Load() == 50 {
				time.Sleep(stall)
			}
			io.WriteString(c, ok)
		}
	})
	o := options(s.url)
	o.Connections, o.Requests = 1, 100
	r := load(t, o)
	if r.LatencyMs.Max < 120 || r.LatencyMs.P50 > 60 || r.LatencyMs.P999 < 119.9 {
		t.Errorf("max %f, p50 %f, p999 %f ms", r.LatencyMs.Max, r.LatencyMs.P50, r.LatencyMs.P999)
	}
}

func TestPerConnectionAndPerThreadRates(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Connections, o.Duration = 10, 550*time.Millisecond
	r := load(t, o)
	if sum := r.PerConnectionRPS.Mean * 10; sum < 0.999*r.RPS || sum > 1.001*r.RPS {
		t.Errorf("connections make %f requests/s, all together %f", sum, r.RPS)
	}
	// What came after the last sample, in less than 100 ms, is in none.
	if thread := r.PerThreadRPS; thread.Min*(r.Seconds-0.1) > float64(r.Responses[0]) || thread.Max < r.RPS/2 || thread.Mean < thread.Min || thread.Mean > thread.Max {
		t.Errorf("the thread makes %+v requests/s, all together %f", thread, r.RPS)
	}
}

func TestNothingIsAllocatedPerRequest(t *testing.T) {
	o := options(serve(t, always(ok)).url)
	o.Connections, o.Warmup, o.Requests = 10, 50*time.Millisecond, 20_000
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

// waitFor returns when the condition holds; it fails the test when that takes longer than patient.
func waitFor(t *testing.T, condition func() bool) {
	for deadline := time.Now().Add(patient); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("waited %s in vain", patient)
			return
		}
	}
}
