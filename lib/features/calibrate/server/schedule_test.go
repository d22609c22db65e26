package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// closed simulates a closed load: each connection sends the next request as soon as it has a response.
// It returns responses/s and the sorted latencies of responses between from and to.
func closed(s schedule, connections int, from, to time.Duration) (rate float64, latencies []time.Duration) {
	var waitings queue
	sent := make([]int64, connections)
	send := func(c *connection, at int64) {
		sent[c.number] = at
		waitings.push(waiting{due: s.due(at, c.number), to: c})
	}
	for number := range connections {
		send(&connection{number: number}, 0)
	}
	for {
		now := waitings[0].due
		c := waitings.pop()
		if now >= int64(to) {
			break
		}
		if now >= int64(from) {
			latencies = append(latencies, time.Duration(now-sent[c.number]))
		}
		send(c, now)
	}
	slices.Sort(latencies)
	return float64(len(latencies)) / (to - from).Seconds(), latencies
}

func quantile(sorted []time.Duration, at float64) time.Duration {
	return sorted[int(at*float64(len(sorted)))]
}

func TestClosedLoadsHaveTheFiguresOfArithmetic(t *testing.T) {
	stalling := newSchedule(1, 100*time.Microsecond)
	stalling.stall, stalling.stallAfter = int64(500*time.Millisecond), 2000
	stallingByTime := newSchedule(1, 100*time.Microsecond)
	stallingByTime.stall, stallingByTime.stallEach = int64(1500*time.Millisecond), int64(10*time.Second)
	cores := newSchedule(8, 50*time.Microsecond)
	cores.then = int64(50 * time.Millisecond)
	uneven := newSchedule(4, 500*time.Microsecond)
	uneven.uneven = true
	tokens := newSchedule(1, 0)
	tokens.interval, tokens.burst = int64(2*time.Millisecond), 300

	for name, c := range map[string]struct {
		schedule    schedule
		connections int
		from, to    time.Duration
		rate        float64
		p50, p99    time.Duration
	}{
		"one worker":         {newSchedule(1, time.Millisecond), 50, time.Second, 3 * time.Second, 1000, 50 * time.Millisecond, 50 * time.Millisecond},
		"four workers":       {newSchedule(4, 4*time.Millisecond), 48, time.Second, 3 * time.Second, 1000, 48 * time.Millisecond, 48 * time.Millisecond},
		"stalls by requests": {stalling, 100, 700 * time.Millisecond, 7700 * time.Millisecond, 2000 / 0.7, 10 * time.Millisecond, 510 * time.Millisecond},
		"stalls by time":     {stallingByTime, 100, 10 * time.Second, 30 * time.Second, 8500, 10 * time.Millisecond, 10 * time.Millisecond},
		"cores that wait":    {cores, 1000, time.Second, 3 * time.Second, 1000 / 0.05005, 50050 * time.Microsecond, 50050 * time.Microsecond},
		"uneven connections": {uneven, 100, time.Second, 3 * time.Second, 8000, 15 * time.Millisecond, 20 * time.Millisecond},
		"token bucket":       {tokens, 50, time.Second, 3 * time.Second, 500, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		rate, latencies := closed(c.schedule, c.connections, c.from, c.to)
		if math.Abs(rate/c.rate-1) > 0.002 {
			t.Errorf("%s: %.1f answers a second, not %.1f", name, rate, c.rate)
		}
		for at, want := range map[float64]time.Duration{0.502: c.p50, 0.99: c.p99} {
			if got := quantile(latencies, at); (got - want).Abs() > want/100 {
				t.Errorf("%s: quantile %g is %v, not %v", name, at, got, want)
			}
		}
	}
}

// The percentiles are from the formula in latencyMs, ../../queue.ts.
func TestAPoissonProcessQueues(t *testing.T) {
	for _, c := range []struct {
		workers  int
		share    float64
		p50, p99 float64
	}{{1, 0.8, 2.276, 11.356}, {1, 0.9, 4.013, 22.898}, {4, 0.8, 4.549, 13.818}} {
		s := newSchedule(c.workers, time.Duration(c.workers)*time.Millisecond)
		random := rand.New(rand.NewPCG(1, 1))
		var now float64
		latencies := make([]float64, 2_000_000)
		for at := range latencies {
			now += random.ExpFloat64() * 1e6 / c.share
			latencies[at] = float64(s.due(int64(now), 0)-int64(now)) / 1e6
		}
		slices.Sort(latencies)
		for share, want := range map[float64]float64{0.5: c.p50, 0.99: c.p99} {
			if got := latencies[int(share*float64(len(latencies)))]; math.Abs(got/want-1) > 0.03 {
				t.Errorf("%d workers at %g: quantile %g is %.3f ms, not %.3f", c.workers, c.share, share, got, want)
			}
		}
	}
}

func TestATokenBucketLetsItsBurstPass(t *testing.T) {
	s := newSchedule(1, 0)
	s.interval, s.burst = int64(2*time.Millisecond), 300
	const asleep = int64(10 * time.Second)
	for asked := range int64(302) {
		want := asleep + max(0, asked-299)*s.interval
		if got := s.due(asleep, 0); got != want {
			t.Fatalf("request %d: due %d ns after it came, not %d", asked, got-asleep, want-asleep)
		}
	}
}

func TestLateRequestsCostNoCapacity(t *testing.T) {
	s := newSchedule(2, time.Millisecond)
	for asked := range int64(1000) {
		// All requests had arrived when they were read, 5 ms late.
		want := int64(5*time.Millisecond) + (asked/2+1)*int64(time.Millisecond)
		if got := s.due(int64(5*time.Millisecond), 0); got != want {
			t.Fatalf("request %d is due at %d, not %d", asked, got, want)
		}
	}
}

func TestRequestsEndWithAnEmptyLine(t *testing.T) {
	var c connection
	for _, part := range []struct {
		bytes    string
		requests int
	}{{"GET / HTTP/1.1\r\nHost: a\r\n\r", 0}, {"\nGET / HTTP/1.1\r\n\r\r\n\r\nGET / HT", 2}, {"TP/1.1\r\n\r\n", 1}} {
		if got := c.requestsIn([]byte(part.bytes)); got != part.requests {
			t.Errorf("%q: %d requests, not %d", part.bytes, got, part.requests)
		}
	}
}
