package engine

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
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
	if problem := notNear(what, got, want, share); problem != "" {
		t.Error(problem)
	}
}

// notNear is for tried: a busy machine takes from the servers of these tests, which share it, what arithmetic gives them.
func notNear(what string, got, want, share float64) (problem string) {
	if math.Abs(got-want) > share*want {
		return fmt.Sprintf("%s: %.4g, by arithmetic %.4g", what, got, want)
	}
	return ""
}

func TestARateBeyondTheServerIsNotServed(t *testing.T) {
	for name, change := range map[string]func(*Side){
		"the queue is in the server":               func(side *Side) { side.Connections, side.Duration = 2000, time.Second },
		"the queue waits for connections":          func(side *Side) { side.Connections, side.Duration = 40, time.Second },
		"a count, whose last requests leave late":  func(side *Side) { side.Connections, side.Requests = 400, 1300 },
		"two threads, with arrivals of each's own": func(side *Side) { side.Connections, side.Threads, side.Duration = 2000, 2, time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried(t, func() string {
				sides := sidesOf(func(side *Side) {
					side.Rate, side.Warmup = 1300, 300*time.Millisecond
					change(side)
				}, serve(t, oneQueue(every(time.Millisecond))).url, serve(t, oneQueue(every(time.Second/2000))).url)
				return notServed(alternate(t, 0, sides...))
			})
		})
	}
}

// The server does 1,000 requests/s, a twentieth of the rate. All 4,000 requests would take it 4 s, of which 0.2 s are asked for.
func TestACountFarBeyondTheServerIsGivenUp(t *testing.T) {
	t.Parallel()
	const requests = 4000
	change := func(side *Side) {
		side.Rate, side.Warmup, side.Requests, side.Connections = 20_000, 300*time.Millisecond, requests, 40
	}
	for _, urls := range [][]string{
		{serve(t, oneQueue(every(time.Millisecond))).url},
		{serve(t, oneQueue(every(time.Millisecond))).url, serve(t, oneQueue(every(time.Millisecond))).url},
	} {
		for _, r := range alternate(t, 0, sidesOf(change, urls...)...) {
			all := r.Requests + r.Unsent + r.InFlight
			if r.Unsent < requests/4 || r.Requests < requests/4 || all != requests {
				t.Errorf("of %d requests %d ended and %d were not sent, %d are in flight", requests, r.Requests, r.Unsent, r.InFlight)
			}
			// The window of 0.2 s was over for 1.4 s.
			if r.LatencyMs.P99 < 1300 {
				t.Errorf("requests that were not sent count with waits of %g ms", r.LatencyMs.P99)
			}
			if r.Turns != nil && r.Turns.RampMs > 100 {
				t.Errorf("a ramp of %g ms", r.Turns.RampMs)
			}
		}
	}
}

// After the warm-up the server does 300 requests/s. The ramp's 1,500 requests alone would take it 5 s.
func TestARampThatCannotBeServedIsLeftOut(t *testing.T) {
	t.Parallel()
	const rate, requests = 5000, 1000
	tried(t, func() string {
		slow := func(n int, _ time.Duration) time.Duration {
			if n < rate*3/10 {
				return 0
			}
			return time.Second / 300
		}
		change := func(side *Side) {
			side.Rate, side.Warmup, side.Requests, side.Connections = rate, 300*time.Millisecond, requests, 40
		}
		urls := []string{serve(t, oneQueue(slow)).url, serve(t, oneQueue(every(time.Microsecond))).url}
		results := alternate(t, 0, sidesOf(change, urls...)...)
		if r := results[0]; r.Requests < requests/5 || r.Requests+r.Unsent+r.InFlight != requests {
			return fmt.Sprintf("of %d requests %d ended, %d were not sent", requests, r.Requests, r.Unsent)
		}
		if r := results[1]; r.Requests != requests {
			return fmt.Sprintf("of the other server's %d requests %d ended", requests, r.Requests)
		}
		return ""
	})
}

// notServed wants 1,300 requests/s of a server with 1,000, and of one with 2,000. A machine that pauses lowers the first one's capacity if
// its connections are few; what it does not answer is still in its queue.
func notServed(r []outcome) (problem string) {
	beyond, within := r[0], r[1]
	if beyond.QueueGrowth == nil || within.QueueGrowth == nil || beyond.Continuous == nil {
		return "a window or a warm-up was too short for a growth"
	}
	if beyond.QueueGrowth.StandardError <= 0 || beyond.Turns.Count > 2 {
		return fmt.Sprintf("%+v, %d turns", beyond.QueueGrowth, beyond.Turns.Count)
	}
	if g := within.QueueGrowth; math.Abs(g.PerSecond) > 13+3*g.StandardError {
		return fmt.Sprintf("the queue of a server that can hold the rate grows by %+v", g)
	}
	if growth := beyond.Continuous.QueueGrowthPerSecond; growth < 100 {
		return fmt.Sprintf("in the warm-up by %g", growth)
	}
	return cmp.Or(
		notNear("requests/s of a server that cannot hold the rate", beyond.RPS, 1000, 0.1),
		notNear("growth of its queue", beyond.QueueGrowth.PerSecond, 1300-beyond.RPS, 0.05),
		notNear("requests/s of a server that can", within.RPS, 1300, 0.05),
	)
}

func TestTheGrowthOfAQueueIsByLength(t *testing.T) {
	o := options("http://127.0.0.1:9/")
	o.Duration, o.Rate = time.Second, 100
	first, second := idleLoop(t, o), idleLoop(t, o)
	const ms = int64(time.Millisecond)
	first.growth.parts = []queuePart{{1000 * ms, 20, 400}, {1000 * ms, 40, 400}, {ms / 1000, 3, 1}}
	second.growth.parts = []queuePart{{1000 * ms, 0, 100}, {1000 * ms, 0, 100}, {ms / 1000, 0, 0}, {1000 * ms, 900, 900}}
	g, served := queueGrowthOf([]*loop{first, second})
	// 63 in 2 s. From 31.5 a second the parts are 11.5 and 8.5 and, the short one, 3 requests off.
	wantNear(t, "growth", g.PerSecond, 31.5, 1e-3)
	wantNear(t, "standard error", g.StandardError, math.Sqrt((11.5*11.5+8.5*8.5+3*3)*3/2)/2, 1e-3)
	wantNear(t, "responses/s", served, 500.5, 1e-3)
}

func TestUnevenConnectionsCostNothing(t *testing.T) {
	share := []int{0, 0, 0, 0, 1, 1, 1, 2, 2, 3} // of each ten connections
	tried(t, func() string {
		workers := make([]*queueing, 4)
		for i := range workers {
			workers[i] = &queueing{service: every(time.Millisecond)}
		}
		sides := sidesOf(func(side *Side) {
			side.Connections, side.Duration, side.Warmup = 100, 600*time.Millisecond, 200*time.Millisecond
		}, serve(t, queues(func(connection int) *queueing { return workers[share[connection%10]] })).url, serve(t, always(ok)).url)
		return notNear("requests/s", alternate(t, 0, sides...)[0].RPS, 4000, 0.1)
	})
}

func TestPausesCountInTurns(t *testing.T) {
	tried(t, func() string {
		// 100 requests take 0.1 s, and a pause of 0.15 s after one of them; chance decides, so that pauses are not in step with turns.
		random := rand.New(rand.NewPCG(1, 2))
		pausing := oneQueue(func(int, time.Duration) time.Duration {
			if random.IntN(100) == 0 {
				return 151 * time.Millisecond
			}
			return time.Millisecond
		})
		sides := sidesOf(func(side *Side) {
			side.Connections, side.Duration, side.Warmup = 20, 4*time.Second, 200*time.Millisecond
		}, serve(t, pausing).url, serve(t, always(ok)).url)
		r := alternate(t, 100*time.Millisecond, sides...)[0]
		if r.LatencyMs.Max < 140 {
			return fmt.Sprint(r)
		}
		// Of the 16 pauses that are due some four more or less come; cut off at the ends of turns, they would leave 700 a second.
		return notNear("requests/s", r.RPS, 100/0.25, 0.5)
	})
}

func TestAServerThatWaitsIsNotShownTooFast(t *testing.T) {
	const wait = 50 * time.Millisecond
	most := 50 / wait.Seconds()
	tried(t, func() string {
		sides := sidesOf(func(side *Side) {
			side.Connections, side.Duration, side.Warmup = 50, time.Second, 200*time.Millisecond
		}, serve(t, after(wait)).url, serve(t, always(ok)).url)
		// A busy machine is late with the answers, never early.
		r := alternate(t, 0, sides...)[0]
		if r.RPS > 1.03*most || r.RPS < 0.7*most || r.LatencyMs.P50 < inMs(int64(wait)) || r.Turns.Responses < r.Responses[0] {
			return fmt.Sprintf("by arithmetic %g requests/s: %s, %+v", most, r, r.Turns)
		}
		return ""
	})
}

func TestTheWarmupGoesOnWhileTheServerGetsFaster(t *testing.T) {
	slowly := func(fast time.Duration) func(int, time.Duration) time.Duration {
		return func(_ int, since time.Duration) time.Duration {
			const gettingFaster = 1200 * time.Millisecond
			return fast + 4*fast*max(0, gettingFaster-since)/gettingFaster
		}
	}
	tried(t, func() string {
		sides := sidesOf(func(side *Side) {
			side.Connections, side.Duration, side.Warmup, side.WarmupLimit = 10, 300*time.Millisecond, 500*time.Millisecond, 10*time.Second
		}, serve(t, oneQueue(slowly(500*time.Microsecond))).url, serve(t, oneQueue(every(500*time.Microsecond))).url)
		r := alternate(t, 0, sides...)
		got, steady := r[0].Continuous, r[1].Continuous
		if got.WarmupSeconds < 0.75 || got.WarmupSeconds > 6.5 || got.Gain < 1.5 || steady.Gain > 1.3 || steady.RPS > 2200 {
			return fmt.Sprintf("a server that gets faster for 1.2 s: %+v; one that does not: %+v", got, steady)
		}
		return ""
	})
}

func TestTheFirstStretchOfAShortWarmupIsLong(t *testing.T) {
	for warmup, want := range map[time.Duration]time.Duration{
		time.Second:            500 * time.Millisecond,
		600 * time.Millisecond: 300 * time.Millisecond,
		400 * time.Millisecond: 300 * time.Millisecond,
		300 * time.Millisecond: 200 * time.Millisecond,
		100 * time.Millisecond: 50 * time.Millisecond,
	} {
		p := &plan{}
		p.Warmup = warmup
		if got := warmup - time.Duration(p.unjudgedWarmup()); got != want {
			t.Errorf("%s of a warm-up of %s are judged, want %s", got, warmup, want)
		}
	}
	tried(t, func() string {
		o := options(serve(t, always(ok)).url)
		o.Duration, o.Warmup = 10*time.Millisecond, 400*time.Millisecond
		if c := load(t, o).Continuous; c.Seconds < 0.29 || c.Seconds > 0.35 || c.WarmupSeconds > 0.45 {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
}

func TestAServerGetsFasterWithinItsWindow(t *testing.T) {
	// 100 of the slow requests are in the warm-up, 300 in 0.3 s of the window, and 400 more in 0.2 s of its first half.
	faster := func(number int, _ time.Duration) time.Duration {
		if number <= 400 {
			return time.Millisecond
		}
		return 500 * time.Microsecond
	}
	const want = 1000.0 / (300 + 400)
	load := func(side *Side) {
		side.Connections, side.Duration, side.Warmup = 4, time.Second, 100*time.Millisecond
	}
	for name, others := range map[string][]string{"alone": nil, "in turns": {serve(t, oneQueue(every(500*time.Microsecond))).url}} {
		tried(t, func() string {
			r := alternate(t, 0, sidesOf(load, append([]string{serve(t, oneQueue(faster)).url}, others...)...)...)
			for _, steady := range r[1:] {
				if problem := notNear(name+": the gain of a steady server", steady.Gain, 1, 0.1); problem != "" {
					return problem
				}
			}
			return notNear(name+": the gain", r[0].Gain, want, 0.1)
		})
	}
}

func TestAWarmupThatNeverSettlesEnds(t *testing.T) {
	tried(t, func() string {
		// 250 requests/s at first, which a busy machine has too.
		faster := oneQueue(func(_ int, since time.Duration) time.Duration {
			return time.Duration(float64(4*time.Millisecond) * math.Exp(-since.Seconds()/0.2))
		})
		sides := sidesOf(func(side *Side) {
			side.Duration, side.Warmup, side.WarmupLimit = 100*time.Millisecond, 100*time.Millisecond, 700*time.Millisecond
		}, serve(t, faster).url, serve(t, always(ok)).url)
		if c := alternate(t, 0, sides...)[0].Continuous; c.WarmupSeconds < 0.3 || c.WarmupSeconds > 0.9 {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
}

func TestAStretchOfTheWarmup(t *testing.T) {
	const part = 25 * time.Millisecond
	steady := func(int) float64 { return 1 }
	faster := func(part int) float64 { return 1 + 0.05*float64(part) }
	leaps := func(part int) float64 { return 1 + 0.5*float64(part%2) }
	half := func(part int) float64 { return leaps(part) / 2 }
	cheaper := func(part int) float64 { return 1 / faster(part) }
	for name, c := range map[string]struct {
		rate, perPart float64
		speed, cost   func(part int) float64 // at a rate, speed is what latencies are divided by
		before        func(part int) float64 // before is the speed in the stretch before; nil: not known
		lone          time.Duration          // lone is the latency without a queue; under load it is 1 ms
		gain          float64                // WarmupGain
		confirmed     bool                   // WarmupConfirmed
		wasSteady     bool                   // in the stretch before
		lasted, limit time.Duration
		isWarm        bool
		next          time.Duration
	}{
		"steady":                              {perPart: 1000, speed: steady, cost: steady, lasted: time.Second, limit: time.Minute, isWarm: true},
		"more responses":                      {perPart: 1000, speed: faster, cost: steady, lasted: time.Second, limit: time.Minute, next: time.Second},
		"more responses, as may be":           {perPart: 1000, speed: faster, cost: steady, gain: 0.5, lasted: time.Second, limit: time.Minute, isWarm: true},
		"more responses than may be":          {perPart: 1000, speed: faster, cost: steady, gain: 0.2, lasted: time.Second, limit: time.Minute, next: time.Second},
		"more responses, of few":              {perPart: 5, speed: faster, cost: steady, lasted: time.Second, limit: time.Minute, isWarm: true},
		"less CPU time":                       {perPart: 1000, speed: steady, cost: cheaper, lasted: time.Second, limit: time.Minute, next: time.Second},
		"less CPU time, of little":            {perPart: 300, speed: steady, cost: cheaper, lasted: time.Second, limit: time.Minute, isWarm: true},
		"less CPU time, in a queue":           {perPart: 300, speed: steady, cost: cheaper, lone: 500 * time.Microsecond, lasted: time.Second, limit: time.Minute, next: time.Second},
		"less CPU time, without a queue":      {perPart: 300, speed: steady, cost: cheaper, lone: 501 * time.Microsecond, lasted: time.Second, limit: time.Minute, isWarm: true},
		"less CPU time at a rate, of little":  {rate: 300, perPart: 300, speed: steady, cost: cheaper, lasted: time.Second, limit: time.Minute, isWarm: true},
		"less CPU time at a rate":             {rate: 1000, perPart: 1000, speed: steady, cost: cheaper, lasted: time.Second, limit: time.Minute, next: time.Second},
		"shorter latencies at a rate":         {rate: 300, perPart: 300, speed: faster, cost: steady, lasted: time.Second, limit: time.Minute, next: time.Second},
		"hardly shorter than before":          {rate: 300, perPart: 300, before: func(int) float64 { return 1.1 }, speed: faster, cost: steady, lasted: time.Second, limit: time.Minute, isWarm: true},
		"more CPU time":                       {perPart: 1000, speed: steady, cost: faster, lasted: time.Second, limit: time.Minute, isWarm: true},
		"more responses, at the limit":        {perPart: 1000, speed: faster, cost: steady, lasted: time.Second, limit: time.Second, isWarm: true},
		"more responses, before the limit":    {perPart: 1000, speed: faster, cost: steady, lasted: time.Second, limit: 1500 * time.Millisecond, next: 500 * time.Millisecond},
		"longer latencies at a rate":          {rate: 1000, perPart: 1000, speed: cheaper, cost: steady, lasted: time.Second, limit: time.Minute, isWarm: true},
		"in leaps, as before":                 {perPart: 1000, before: leaps, speed: leaps, cost: steady, lasted: time.Second, limit: time.Minute, isWarm: true},
		"in leaps, and faster than before":    {perPart: 1000, before: half, speed: leaps, cost: steady, lasted: time.Second, limit: time.Minute, next: time.Second},
		"in leaps, and slower than before":    {perPart: 1000, before: leaps, speed: half, cost: steady, lasted: time.Second, limit: time.Minute, isWarm: true},
		"steady for the first time":           {perPart: 1000, speed: steady, cost: steady, confirmed: true, lasted: time.Second, limit: time.Minute, next: time.Second},
		"steady for the second time":          {perPart: 1000, speed: steady, cost: steady, confirmed: true, wasSteady: true, lasted: time.Second, limit: time.Minute, isWarm: true},
		"steady, of little CPU time":          {perPart: 300, speed: steady, cost: steady, confirmed: true, lasted: time.Second, limit: time.Minute, isWarm: true},
		"up and down, by a tenth of the rate": {perPart: 1000, speed: func(part int) float64 { return 1 + 0.1*float64(part%2) }, cost: steady, lasted: time.Second, limit: time.Minute, isWarm: true},
	} {
		o := options("http://127.0.0.1:9/")
		o.Duration, o.Warmup, o.WarmupLimit, o.WarmupGain, o.Rate = time.Second, time.Second, c.limit, c.gain, c.rate
		l := idleLoop(t, o)
		l.shared.loops, l.shared.probe.latency = []*loop{l}, int64(c.lone)
		w := &l.warmup.stretch
		w.number = 1
		l.plan.WarmupConfirmed, l.shared.warmth.wasSteady = c.confirmed, c.wasSteady
		fill := func(marks *stretchMarks, speed func(part int) float64) {
			for i := range stretchParts {
				from, to := marks[i], &marks[i+1]
				answered := int64(c.perPart)
				took := 1e6 / speed(i)
				if c.rate == 0 {
					answered, took = int64(c.perPart*speed(i)), 1e6
				}
				to.latencies = from.latencies + int64(float64(answered)*took)
				to.at, to.responses, to.cpu = from.at+int64(part), from.responses+answered, from.cpu+int64(20_000*float64(answered)*c.cost(i))
			}
		}
		fill(&w.marks, c.speed)
		if c.before != nil {
			fill(&w.before, c.before)
		}
		l.shared.judge(l.plan, int64(c.lasted))
		if s := &l.shared.warmth; s.isWarm != c.isWarm || !c.isWarm && s.until-s.next != int64(c.next) {
			t.Errorf("%s: warm %v, the next stretch takes %v; want %v, %v", name, s.isWarm, time.Duration(s.until-s.next), c.isWarm, c.next)
		}
	}
}
