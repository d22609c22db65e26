package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCountModeMakesExactlyThatManyRequests(t *testing.T) {
	for _, test := range []struct {
		requests             int64
		connections, threads int
		keepAlive            bool
	}{{1, 1, 1, true}, {1, 4, 2, true}, {1000, 1, 1, true}, {10_007, 100, 1, true}, {10_007, 13, 3, true}, {5, 100, 2, true}, {2003, 10, 2, false}} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			s := serve(t, always(ok))
			o := options(s.url)
			o.Requests, o.Connections, o.Threads, o.KeepAlive = test.requests, test.connections, test.threads, test.keepAlive
			r := load(t, context.Background(), o)
			if got := s.requests.Load(); got != test.requests {
				t.Errorf("the server saw %d requests", got)
			}
			if r.Responses[0] != test.requests || r.InFlight != 0 || r.WarmupRequests != 0 {
				t.Errorf("responses %v, in flight %d, warm-up %d", r.Responses, r.InFlight, r.WarmupRequests)
			}
			if r.BodyBytes != 5*test.requests || r.HeaderBytes != 38*test.requests || r.ReceivedBytes != 43*test.requests {
				t.Errorf("body %d, headers %d, received %d bytes", r.BodyBytes, r.HeaderBytes, r.ReceivedBytes)
			}
			sent := int64(len(encodeRequest(o, mustParse(t, s.url))))
			if r.SentBytes != sent*test.requests {
				t.Errorf("sent %d bytes, want %d", r.SentBytes, sent*test.requests)
			}
			if !test.keepAlive && s.connections.Load() != test.requests {
				t.Errorf("%d connections for %d requests", s.connections.Load(), test.requests)
			}
		})
	}
}

func TestDurationModeCountsWhatTheServerAnswered(t *testing.T) {
	for _, warmup := range []time.Duration{0, 200 * time.Millisecond} {
		s := serve(t, always(ok))
		o := options(s.url)
		o.Duration, o.Warmup, o.Connections = 1900*time.Millisecond, warmup, 10
		r := load(t, context.Background(), o)
		// The server reads every request before the engine's sockets are closed, or never.
		if total := r.Requests + r.WarmupRequests + r.InFlight; s.requests.Load() > total || s.requests.Load() < total-r.InFlight {
			t.Errorf("the server saw %d, the engine %d + %d + %d", s.requests.Load(), r.Requests, r.WarmupRequests, r.InFlight)
		}
		if r.Requests == 0 || (warmup > 0) != (r.WarmupRequests > 0) || r.ErrorTotal() != 0 {
			t.Errorf("requests %d, warm-up %d, errors %d (%s)", r.Requests, r.WarmupRequests, r.ErrorTotal(), r.ErrorExample)
		}
		if r.Seconds < 1.9 || !r.EndedAt.Equal(r.seconds[len(r.seconds)-1].End) {
			t.Errorf("%f s from %s to %s", r.Seconds, r.StartedAt, r.EndedAt)
		}
		if len(r.seconds) != 2 {
			t.Errorf("%d seconds handed out, want 2", len(r.seconds))
		}
		if r.CPUSeconds <= 0 {
			t.Errorf("CPU seconds %f", r.CPUSeconds)
		}
	}
}

func TestWarmupBeforeACountIsDrained(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Requests, o.Warmup, o.Connections, o.Threads = 5000, 100*time.Millisecond, 20, 2
	r := load(t, context.Background(), o)
	if got := s.requests.Load(); got != r.Requests+r.WarmupRequests || r.WarmupRequests == 0 || r.InFlight != 0 {
		t.Errorf("the server saw %d, the engine %d + %d", got, r.Requests, r.WarmupRequests)
	}
}

func TestBodiesOfEveryFraming(t *testing.T) {
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
			r := load(t, context.Background(), o)
			if r.Responses[test.class] != 40 || r.BodyBytes != 40*test.body {
				t.Errorf("responses %v, body %d bytes, errors %v: %s", r.Responses, r.BodyBytes, r.Errors, r.ErrorExample)
			}
		})
	}
}

func TestASecondIsWholeWhenAllLoopsHaveReported(t *testing.T) {
	// What collect sees when one of two loops is late: by hand, since no real loop is late on demand.
	s := &shared{opening: opening{opened: true}, intervals: make(chan *interval, 10)}
	fast, slow := &loop{plan: &plan{}, spare: make(chan *interval, 9)}, &loop{plan: &plan{}, spare: make(chan *interval, 9)}
	send := func(l *loop, end int64, requests int64, last bool) {
		s.intervals <- &interval{loop: l, end: end * second, last: last, measured: true, latency: newRecorder(), Counts: Counts{Requests: requests}}
		l.responses, l.windowEnd = l.responses+requests, end*second
		l.connectTimes, l.firstByteTimes = newRecorder(), newRecorder()
	}
	send(fast, 1, 10, false)
	send(slow, 1, 1, false)
	send(fast, 2, 20, false)
	send(fast, 3, 30, false) // slow has missed its second
	send(slow, 3, 2, false)
	send(fast, 4, 40, true)
	send(slow, 4, 4, true)
	var got []int64
	result := collect(s, []*loop{fast, slow}, func(s Second) { got = append(got, s.Requests) })
	if want := []int64{11, 20, 32, 44}; !slices.Equal(got, want) || result.Requests != 107 {
		t.Errorf("seconds of %v requests, want %v; %d in all", got, want, result.Requests)
	}
}

func TestStopsWithin100msAndKeepsItsCounts(t *testing.T) {
	for name, connections := range map[string]int{"busy": 4, "silent": 4, "still connecting": 3000} {
		t.Run(name, func(t *testing.T) {
			answer := always(ok)
			if name == "silent" {
				answer = func(s *testServer, c net.Conn) { s.readRequest(bufio.NewReader(c)); io.Copy(io.Discard, c) }
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
				r := load(t, ctx, o)
				late = append(late, r.EndedAt.Sub(cancelled))
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
	r := load(t, ctx, o)
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
	r := load(t, context.Background(), o)
	if r.LatencyMs.Max < 120 || r.LatencyMs.P50 > 60 || r.LatencyMs.P999 < 119.9 {
		t.Errorf("max %f, p50 %f, p999 %f ms", r.LatencyMs.Max, r.LatencyMs.P50, r.LatencyMs.P999)
	}
}

func TestPerConnectionAndPerThreadRates(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Connections, o.Duration = 10, 550*time.Millisecond
	r := load(t, context.Background(), o)
	if sum := r.PerConnectionRPS.Mean * 10; sum < 0.999*r.RPS || sum > 1.001*r.RPS {
		t.Errorf("connections make %f requests/s, all together %f", sum, r.RPS)
	}
	if thread := r.PerThreadRPS; thread.Min > r.RPS || thread.Max < r.RPS/2 || thread.Mean < thread.Min || thread.Mean > thread.Max {
		t.Errorf("the thread makes %+v requests/s, all together %f", thread, r.RPS)
	}
}

func TestNothingIsAllocatedPerRequest(t *testing.T) {
	o := options(serve(t, always(ok)).url)
	o.Connections, o.Warmup, o.Requests = 10, 50*time.Millisecond, 20_000
	wantFewAllocations(t, o)
	o.URLs, o.KeepAlive, o.Protocol = []string{serveOneByOne(t)}, false, HTTP10
	wantFewAllocations(t, o)
}

func wantFewAllocations(t *testing.T, o Options) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	load(t, context.Background(), o)
	runtime.ReadMemStats(&after)
	// Set-up, the test server's connections and the result take a few hundred; one per request would be 20,000.
	if n := after.Mallocs - before.Mallocs; n > 4000 {
		t.Errorf("%d allocations for 20,000 requests", n)
	}
}

// waitFor returns when the condition holds; it fails the test when that takes 20 s.
func waitFor(t *testing.T, condition func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("waited 20 s in vain")
			return
		}
	}
}
