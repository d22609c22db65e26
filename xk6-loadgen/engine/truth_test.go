package engine

import (
	"bufio"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// queueing serves one request after another, each for the time that service tells of the request's number (from 1) and the time since the
// first one. Its answers come by a schedule, so that late timers do not add up.
type queueing struct {
	mu      sync.Mutex
	number  int
	first   time.Time
	free    time.Time
	service func(number int, since time.Duration) time.Duration
}

func (q *queueing) next() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.number++; q.number == 1 {
		q.first = now
	}
	if q.free.Before(now) {
		q.free = now
	}
	q.free = q.free.Add(q.service(q.number, now.Sub(q.first)))
	return q.free
}

// queues answers the n-th connection by the queue that `of` tells.
func queues(of func(connection int) *queueing) func(*testServer, net.Conn) {
	var connections atomic.Int64
	return func(s *testServer, c net.Conn) {
		q := of(int(connections.Add(1) - 1))
		for r := bufio.NewReader(c); s.readRequest(r); {
			time.Sleep(time.Until(q.next()))
			if _, err := c.Write([]byte(ok)); err != nil {
				return
			}
		}
	}
}

func oneQueue(service func(number int, since time.Duration) time.Duration) func(*testServer, net.Conn) {
	q := &queueing{service: service}
	return queues(func(int) *queueing { return q })
}

func every(service time.Duration) func(int, time.Duration) time.Duration {
	return func(int, time.Duration) time.Duration { return service }
}

func wantNear(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s: %.4g, by arithmetic %.4g", what, got, want)
	}
}

func TestARateBeyondTheServerIsNotServed(t *testing.T) {
	const capacity = 1000
	sides := sidesOf(func(side *Side) {
		side.Rate, side.Duration, side.Warmup, side.Connections = 1300, time.Second, 300*time.Millisecond, 2000
	}, serve(t, oneQueue(every(time.Second/capacity))).url, serve(t, oneQueue(every(time.Second/2000))).url)
	r := alternate(t, 0, sides...)
	wantNear(t, "requests/s of a server that cannot hold the rate", r[0].RPS, capacity, 0.05)
	wantNear(t, "growth of its queue", r[0].QueueGrowth.PerSecond, 300, 0.1)
	wantNear(t, "requests/s of a server that can", r[1].RPS, 1300, 0.02)
	if g := r[1].QueueGrowth; math.Abs(g.PerSecond) > 13+3*g.StandardError {
		t.Errorf("its queue grows by %+v", g)
	}
	if growth := r[0].Continuous.QueueGrowthPerSecond; growth < 200 {
		t.Errorf("in the warm-up by %g", growth)
	}
}

func TestUnevenConnectionsCostNothing(t *testing.T) {
	workers := make([]*queueing, 4)
	for i := range workers {
		workers[i] = &queueing{service: every(time.Millisecond)}
	}
	share := []int{0, 0, 0, 0, 1, 1, 1, 2, 2, 3} // of each ten connections
	sides := sidesOf(func(side *Side) {
		side.Connections, side.Duration, side.Warmup = 100, 600*time.Millisecond, 200*time.Millisecond
	}, serve(t, queues(func(connection int) *queueing { return workers[share[connection%10]] })).url, serve(t, always(ok)).url)
	wantNear(t, "requests/s", alternate(t, 0, sides...)[0].RPS, 4000, 0.1)
}

func TestPausesCountInTurns(t *testing.T) {
	// 300 requests take 0.3 s and a pause of 0.5 s.
	pausing := oneQueue(func(number int, _ time.Duration) time.Duration {
		if number%300 == 0 {
			return 501 * time.Millisecond
		}
		return time.Millisecond
	})
	sides := sidesOf(func(side *Side) {
		side.Connections, side.Duration, side.Warmup = 20, 4*time.Second, 200*time.Millisecond
	}, serve(t, pausing).url, serve(t, always(ok)).url)
	r := alternate(t, 0, sides...)[0]
	// The window may hold a pause more or less.

	wantNear(t, "requests/s", r.RPS, 300/0.8, 0.25)
	if r.LatencyMs.Max < 450 {
		t.Errorf("the longest latency is %g ms", r.LatencyMs.Max)
	}
}

func TestAServerThatWaitsIsNotShownTooFast(t *testing.T) {
	const wait = 50 * time.Millisecond
	sides := sidesOf(func(side *Side) {
		side.Connections, side.Duration, side.Warmup = 50, time.Second, 200*time.Millisecond
	}, serve(t, after(wait)).url, serve(t, always(ok)).url)
	most := 50 / wait.Seconds()
	// A busy machine is late with the answers, never early.
	if got := alternate(t, 0, sides...)[0].RPS; got > 1.03*most || got < 0.7*most {
		t.Errorf("%g requests/s, by arithmetic %g", got, most)
	}
}

func TestTheWarmupGoesOnWhileTheServerGetsFaster(t *testing.T) {
	slowly := func(fast time.Duration) func(int, time.Duration) time.Duration {
		return func(_ int, since time.Duration) time.Duration {
			const gettingFaster = 1200 * time.Millisecond
			return fast + 4*fast*max(0, gettingFaster-since)/gettingFaster
		}
	}
	sides := sidesOf(func(side *Side) {
		side.Connections, side.Duration, side.Warmup, side.WarmupLimit = 10, 300*time.Millisecond, 500*time.Millisecond, 10*time.Second
	}, serve(t, oneQueue(slowly(500*time.Microsecond))).url, serve(t, oneQueue(every(500*time.Microsecond))).url)
	r := alternate(t, 0, sides...)
	if c := r[0].Continuous; c.WarmupSeconds < 0.75 || c.WarmupSeconds > 6.5 || c.Gain < 1.5 {
		t.Errorf("a server that gets faster for 1.2 s: %+v", c)
	}
	if c := r[1].Continuous; c.Gain > 1.3 || c.RPS > 2200 {
		t.Errorf("a server that does not: %+v", c)
	}
}

func TestAWarmupThatNeverSettlesEnds(t *testing.T) {
	var answered atomic.Int64
	faster := oneQueue(func(int, time.Duration) time.Duration {
		return time.Duration(float64(5*time.Millisecond) * math.Exp(-float64(answered.Add(1))/500))
	})
	sides := sidesOf(func(side *Side) {
		side.Duration, side.Warmup, side.WarmupLimit = 100*time.Millisecond, 100*time.Millisecond, 700*time.Millisecond
	}, serve(t, faster).url, serve(t, always(ok)).url)
	if c := alternate(t, 0, sides...)[0].Continuous; c.WarmupSeconds > 0.9 {
		t.Errorf("%+v", c)
	}
}
