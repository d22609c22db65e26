package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

func TestARateBeginsOnceAllConnectionsHaveBeenAnswered(t *testing.T) {
	t.Parallel()
	onSome(t, func(t *testing.T, x transport) {
		const connections = 6
		var asks, early atomic.Int64
		all := make(chan struct{})
		s := x.serve(t, func(asked) answer {
			if asks.Add(1) == connections {
				time.Sleep(100 * ms) // longer than the warm-up
				early.Store(asks.Load())
				close(all)
			}
			<-all
			return answer{status: 200}
		})
		o := x.options(s.url)
		o.Rate, o.Connections, o.Warmup, o.Threads = 1000, connections, 20*ms, 2
		r := loadUntil(t, o, func() bool { return asks.Load() > 1000 })
		if early.Load() != connections || r.WarmupRequests < connections || r.Responses[0] == 0 || s.connections.Load() != connections || r.ConnectMs.Max != 0 {
			t.Errorf("%d requests before all of %d connections had an answer: %s", early.Load(), connections, r)
		}
	})
}

func TestTheWindowBeginsOnceAllConnectionsHaveBeenAnswered(t *testing.T) {
	t.Parallel()
	onSome(t, func(t *testing.T, x transport) {
		for _, requests := range []int64{0, 200} {
			const connections = 6
			var asks, later atomic.Int64
			var lastAnswered atomic.Pointer[time.Time]
			all := make(chan struct{})
			s := x.serve(t, func(asked) answer {
				// One after another, as handshakes keep a server busy: the last one for longer than the warm-up. None asks twice before all have asked.
				if first := asks.Add(1); first <= connections {
					if first == connections {
						close(all)
					}
					<-all
					time.Sleep(time.Duration(first) * 40 * ms)
					if now := time.Now(); first == connections {
						lastAnswered.Store(&now)
					}
				} else if lastAnswered.Load() != nil {
					later.Add(1)
				}
				return answer{status: 200}
			})
			o := x.options(s.url)
			o.Connections, o.Streams, o.Warmup, o.Threads, o.Requests = connections, 1, 20*ms, 2, requests
			var r outcome
			if requests == 0 {
				// On a busy machine the window begins late, and the other connections go on until then.
				r = loadUntil(t, o, func() bool { return later.Load() > 1000 && time.Since(*lastAnswered.Load()) > 2*time.Second })
			} else {
				r = load(t, o)
			}
			if last := lastAnswered.Load(); last == nil || r.Window.StartedAt.Before(*last) || r.Responses[0] == 0 || requests > 0 && r.Responses[0] != requests || r.ErrorTotal() != 0 {
				t.Errorf("begun at %v, the last connection was answered at %v: %s", r.Window.StartedAt, last, r)
			}
		}
	})
}

func TestTheWindowBeginsWithoutAConnectionThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	tried(t, func() string {
		for _, rate := range []float64{0, 1000} {
			o := options(serve(t, firstStalls()).url)
			o.Rate, o.Duration, o.Connections, o.Warmup, o.patience = rate, 300*ms, 2, ms, 0
			if r := load(t, o); r.Responses[0] == 0 || r.InFlight < 1 {
				return fmt.Sprint(r)
			}
		}
		return ""
	})
}

func TestLoopsThatAwaitConnectionsOpenTheWindowAtTheSameTime(t *testing.T) {
	o := options(nobody)
	o.Duration, o.Warmup = time.Second, ms
	l := idleLoop(t, o)
	l.window.phase, l.clock = warming, int64(time.Second)
	l.window.phaseEnd = l.clock
	begin := l.clock + recheckEvery/3
	l.shared.opening.reached.at.Store(begin)
	if l.timers(); l.window.phaseEnd != begin {
		t.Errorf("the loop looks again %d ns after its clock, and is to open the window %d ns after it", l.window.phaseEnd-l.clock, begin-l.clock)
	}
}

func TestAHandshakeIsPartOfTheConnect(t *testing.T) {
	const takes = 100 * time.Millisecond
	x := transport{"http1.1 over TLS", HTTP11, true, 1}
	s := x.serve(t, func(asked) answer { return answer{status: 200} })
	tried(t, func() string {
		o := x.options(s.url)
		o.Requests, o.Connections = 1, 1
		p, err := newPlan(context.Background(), o)
		must(t, err)
		defer p.network.close()
		p.tls.VerifyConnection = func(tls.ConnectionState) error {
			time.Sleep(takes)
			return nil
		}
		r, err := p.run(context.Background(), nil)
		must(t, err)
		if ms := float64(takes / time.Millisecond); r.ConnectMs.Min < ms || r.LatencyMs.Max >= ms {
			return fmt.Sprintf("the client took %g ms for its part of the handshake: connect %g ms, latency %g ms", ms, r.ConnectMs.Min, r.LatencyMs.Max)
		}
		return ""
	})
}
