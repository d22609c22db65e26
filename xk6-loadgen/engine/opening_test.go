package engine

import (
	"context"
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
				time.Sleep(100 * time.Millisecond) // longer than the warm-up
				early.Store(asks.Load())
				close(all)
			}
			<-all
			return answer{status: 200}
		})
		o := x.options(s.url)
		o.Rate, o.Duration, o.Connections, o.Warmup, o.Threads = 1000, 100*time.Millisecond, connections, 20*time.Millisecond, 2
		r := load(t, context.Background(), o)
		if early.Load() != connections || r.WarmupRequests < connections || r.Responses[0] == 0 {
			t.Errorf("%d requests before all of %d connections had an answer, %d in the warm-up, responses %v: %s", early.Load(), connections, r.WarmupRequests, r.Responses, r.ErrorExample)
		}
	})
}

func TestARateBeginsWithoutAConnectionThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t, firstStalls())
	o := options(s.url)
	o.Rate, o.Duration, o.Connections, o.Warmup, o.Timeout = 1000, 100*time.Millisecond, 2, time.Millisecond, time.Minute
	if r := load(t, context.Background(), o); r.Responses[0] < 50 || r.InFlight < 1 {
		t.Errorf("responses %v, in flight %d: %s", r.Responses, r.InFlight, r.ErrorExample)
	}
}

func TestTheWindowBeginsOnceAllConnectionsHaveBeenAnswered(t *testing.T) {
	t.Parallel()
	onSome(t, func(t *testing.T, x transport) {
		for _, requests := range []int64{0, 200} {
			const connections = 6
			var asks atomic.Int64
			var lastAnswered atomic.Pointer[time.Time]
			s := x.serve(t, func(asked) answer {
				// One after another, as handshakes keep a server busy: the last one for longer than the warm-up.
				if first := asks.Add(1); first <= connections {
					time.Sleep(time.Duration(first) * 40 * time.Millisecond)
					if now := time.Now(); first == connections {
						lastAnswered.Store(&now)
					}
				}
				return answer{status: 200}
			})
			o := x.options(s.url)
			o.Connections, o.Streams, o.Warmup, o.Threads, o.Requests = connections, 1, 20*time.Millisecond, 2, requests
			if requests == 0 {
				o.Duration = 100 * time.Millisecond
			}
			r := load(t, context.Background(), o)
			if last := lastAnswered.Load(); last == nil || r.StartedAt.Before(*last) || r.Responses[0] == 0 || requests > 0 && r.Responses[0] != requests || r.ErrorTotal() != 0 {
				t.Errorf("requests %d: the window began at %v, the last connection was answered at %v; responses %v: %s", requests, r.StartedAt, last, r.Responses, r.ErrorExample)
			}
		}
	})
}

func TestTheWindowBeginsWithoutAConnectionThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t, firstStalls())
	o := options(s.url)
	o.Duration, o.Connections, o.Warmup, o.Timeout = 100*time.Millisecond, 2, time.Millisecond, time.Minute
	if r := load(t, context.Background(), o); r.Responses[0] < 50 || r.InFlight < 1 {
		t.Errorf("responses %v, in flight %d: %s", r.Responses, r.InFlight, r.ErrorExample)
	}
}
