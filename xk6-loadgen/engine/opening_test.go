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
