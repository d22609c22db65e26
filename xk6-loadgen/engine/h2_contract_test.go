package engine

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// The contract: what holds for one protocol and transport has to hold for all of them.

func onAll(t *testing.T, test func(t *testing.T, x transport)) {
	for _, x := range transports {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			test(t, x)
		})
	}
}

func fine(asked) answer { return answer{status: 200, body: "hello"} }

// wantWire checks what the engine counted against what the peer did. All bytes must have been read on both sides.
func wantWire(t *testing.T, s *peerServer, r outcome) {
	t.Helper()
	// The peer counts what it sent once the call has returned: the engine may have read it by then.
	waitFor(t, func() bool {
		return s.received.Load() >= r.SentBytes && s.sent.Load() >= r.ReceivedBytes && s.body.Load() >= r.BodyTotal() &&
			s.headers.Load() >= r.HeaderBytes && s.decoded.Load() >= r.HeadersDecodedBytes
	})
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"header", r.HeaderBytes, s.headers.Load()}, {"decoded header", r.HeadersDecodedBytes, s.decoded.Load()}, {"body", r.BodyTotal(), s.body.Load()},
		{"received", r.ReceivedBytes, s.sent.Load()}, {"sent", r.SentBytes, s.received.Load()},
	} {
		if c.got != c.want {
			t.Errorf("%d %s bytes, the peer counted %d", c.got, c.what, c.want)
		}
	}
}

func TestContractCountsAreExact(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		for _, test := range []struct {
			requests             int64
			connections, threads int
			keepAlive            bool
		}{{1, 1, 1, true}, {1, 4, 2, true}, {5, 100, 2, true}, {1003, 13, 3, true}, {53, 10, 2, false}} {
			t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
				s := x.serve(t, fine)
				o := x.options(s.url)
				o.Requests, o.Connections, o.Threads, o.KeepAlive = test.requests, test.connections, test.threads, test.keepAlive
				if !o.KeepAlive {
					o.Streams = 1
				}
				r := load(t, o)
				if got := s.requests.Load(); got != test.requests || r.Responses[0] != test.requests || r.InFlight != 0 || r.WarmupRequests != 0 || r.Unsent != 0 {
					t.Error(got, r)
				}
				wantWire(t, s, r)
				if connections := s.connections.Load(); !test.keepAlive && connections != test.requests || test.keepAlive && connections > int64(test.connections) {
					t.Errorf("%d connections", connections)
				}
				if x.isTLS != (r.TLS != nil) || r.MaxConcurrentStreams != 0 || r.SendDelayMs.Histogram != nil || r.SendDelayMs.Max != 0 || r.Buckets != nil {
					t.Errorf("TLS %+v, streams %d, send delay %+v, buckets %v", r.TLS, r.MaxConcurrentStreams, r.SendDelayMs, r.Buckets)
				}
				if r.ConnectMs.Min <= 0 || r.FirstByteMs.Min < r.ConnectMs.Min || r.LatencyMs.Min <= 0 {
					t.Error(r)
				}
			})
		}
	})
}

func TestContractWindowAndWarmup(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		for _, counts := range []bool{true, false} {
			// On a busy machine a short time can pass without a response: then it is tried again.
			for attempt := 1; ; attempt++ {
				s := x.serve(t, fine)
				o := x.options(s.url)
				o.Warmup, o.Threads = 50*ms, 2
				if counts {
					o.Requests = 300
				} else {
					o.Duration = 100 * ms
				}
				r := load(t, o)
				// The peer reads a request before the engine closes the socket, or never.
				if total := r.Requests + r.WarmupRequests + r.InFlight; s.requests.Load() > total || s.requests.Load() < total-r.InFlight || r.ErrorTotal() != 0 {
					t.Fatal(s, r)
				}
				if most := int64(4 * x.streams); counts && r.InFlight != 0 || r.InFlight > most {
					t.Fatal(r)
				}
				if r.WarmupRequests > 0 && r.Requests > 0 {
					break
				}
				if attempt == 5 {
					t.Fatal(r)
				}
			}
		}
	})
}

func TestContractErrorsByKind(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		for name, test := range map[string]struct {
			ending ending
			kind   ErrorKind
			cause  ErrorCause
		}{
			"closes": {closing, ErrRead, CauseShort}, "closes within": {closingWithin, ErrRead, CauseShort},
			"resets": {resetting, ErrRead, CauseReset}, "stalls": {stalling, ErrTimeout, CauseTimedOut},
		} {
			t.Run(name, func(t *testing.T) {
				s := x.serve(t, func(asked) answer { return answer{status: 200, body: "hello", ending: test.ending} })
				o := x.options(s.url)
				o.Requests = int64(4 * x.streams)
				if test.ending == stalling {
					o.Timeout = 300 * ms
				}
				r := load(t, o)
				// On a busy machine a connection is not always open within the timeout.
				for test.ending == stalling && r.Errors[ErrConnect]+r.Errors[ErrTLS] > 0 && o.Timeout < 5*time.Second {
					o.Timeout *= 2
					r = load(t, o)
				}
				if test.kind == ErrRead && r.Errors[ErrRead]+r.Errors[ErrWrite] == o.Requests {
					// A close can come before the request is out.
					return
				}
				wantErrors(t, r, test.kind, o.Requests)
				wantCause(t, r, test.cause, o.Requests)
				if r.ErrorExample == "" || r.LatencyMs.Max != 0 {
					t.Error(r)
				}
			})
		}
	})
}

func TestContractStop(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		for _, ending := range []ending{wholly, stalling} {
			s := x.serve(t, func(asked) answer { return answer{status: 200, body: "hello", ending: ending} })
			o := x.options(s.url)
			started := time.Now()
			r := loadUntil(t, o, func() bool { return s.requests.Load() >= 4*int64(x.streams) })
			if time.Since(started) > o.Timeout/2 {
				t.Errorf("it took %s to end", time.Since(started))
			}
			if ending == stalling && (r.InFlight != 4*int64(x.streams) || r.Requests != 0) {
				t.Error(r)
			}
			if total := r.Requests + r.InFlight; s.requests.Load() > total {
				t.Error(s, r)
			}
		}
	})
}

func TestContractStatuses(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		statuses := []int{200, 204, 299, 302, 304, 404, 429, 500, 503, 599}
		var n atomic.Int64
		s := x.serve(t, func(asked) answer {
			return answer{status: statuses[n.Add(1)%10], body: "12345678"}
		})
		o := x.options(s.url)
		o.Requests = 100
		r := load(t, o)
		if r.Responses != [4]int64{30, 20, 20, 30} || r.BodyTotal() != 80*8 {
			t.Error(r)
		}
		want := [300]int64{2: 10, 4: 10, 104: 10, 129: 10, 200: 10, 203: 10, 299: 10}
		if r.Statuses != want {
			t.Errorf("statuses from 300 on: %v", r.Statuses)
		}
		wantWire(t, s, r)
	})
}

func TestContractLargeBodies(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<19) // more than a socket takes at once
	onAll(t, func(t *testing.T, x transport) {
		for _, window := range []uint32{1000, 1 << 30} {
			s := x.serve(t, func(r asked) answer {
				if string(r.body) != big {
					t.Errorf("%d bytes came", len(r.body))
				}
				return answer{status: 200, body: big}
			}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
			o := x.options(s.url)
			o.Requests, o.Connections, o.Method, o.Body = 2, 2, "PUT", []byte(big)
			r := load(t, o)
			if r.Responses[0] != 2 || r.BodyTotal() != 16<<20 || r.SentBytes < 16<<20 {
				t.Errorf("window %d: %s", window, r)
			}
			if wantWire(t, s, r); !x.isH2() {
				return
			}
		}
	})
}

func TestContractAnswerBeforeTheWholeBody(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		if x.isH2() || x.protocol == H3 {
			return // TestAnAnswerBeforeTheWholeBodyIsAResponse, TestH3AnAnswerBeforeTheWholeBody
		}
		s := servePeer(t, x.isTLS, func(s *peerServer, raw net.Conn) {
			c := raw
			if x.isTLS {
				c = tls.Server(raw, x.config())
			}
			if s.readRequest(bufio.NewReader(c)) {
				io.WriteString(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
				c.(interface{ CloseWrite() error }).CloseWrite()
				io.Copy(io.Discard, io.LimitReader(c, 1<<20))
			}
		})
		o := x.options(s.url)
		o.Requests, o.Method, o.Body = 8, "POST", make([]byte, 16<<20)
		r := load(t, o)
		if r.Responses[2] != 8 || s.requests.Load() != 8 {
			t.Error(r)
		}
	})
}
