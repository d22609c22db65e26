package engine

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestWarmupLeavesNoTraceInTheWindow(t *testing.T) {
	// However busy the machine is, a sample of at least 100 ms has at most 11 responses.
	const service = 10 * ms
	s := serve(t, answersAfter(func(s *testServer, _ net.Conn) bool {
		time.Sleep(service)
		return s.connections.Load() > 1 // or it is an error, in the warm-up
	}))
	o := options(s.url)
	o.Connections, o.Warmup, o.Duration = 1, 600*ms, 600*ms
	r := load(t, o)
	if r.ErrorTotal() != 0 || r.ErrorExample != "" {
		t.Error(r)
	}
	// With the warm-up in it, the first sample would be seven times too high.
	if r.PerThreadRPS.Max > 110 {
		t.Errorf("the thread made up to %f requests/s", r.PerThreadRPS.Max)
	}
	if len(r.seconds) != 1 {
		t.Errorf("a window of 0.6 seconds was handed out as %d", len(r.seconds))
	}
}

func TestKeptConnectionsMakeTheSameNumberOfRequests(t *testing.T) {
	var mu sync.Mutex
	made := map[string]int{}
	s := serve(t, answersAfter(func(_ *testServer, c net.Conn) bool {
		mu.Lock()
		defer mu.Unlock()
		made[c.RemoteAddr().String()]++
		return true
	}))
	o := options(s.url)
	o.Connections, o.Threads, o.Requests = 6, 2, 100
	load(t, o)
	mu.Lock()
	defer mu.Unlock()
	counts := slices.Sorted(maps.Values(made))
	if want := []int{16, 16, 17, 17, 17, 17}; !slices.Equal(counts, want) {
		t.Errorf("the connections made %v requests, want %v", counts, want)
	}
}

func TestAConnectionThatHasMadeItsShareIsClosed(t *testing.T) {
	for protocol, handler := range map[Protocol]handler{HTTP11: always(ok), H2C: answerFrames} {
		t.Run(string(protocol), func(t *testing.T) {
			var slot sync.Mutex
			s := serve(t, func(s *testServer, c net.Conn) {
				// As a server at its limit of files: the next connection has to wait until this one is closed.
				slot.Lock()
				defer slot.Unlock()
				handler(s, c)
			})
			o := options(s.url)
			o.Protocol, o.Connections, o.Requests = protocol, 3, 30
			wantResponses(t, load(t, o), 30)
		})
	}
}

func TestACountEndsWithItsLastResponse(t *testing.T) {
	t.Parallel()
	// One of two threads waits for its warm-up's only attempt until the timeout; the other one makes all the requests.
	tried(t, func() string {
		o := options(serve(t, firstStalls()).url)
		o.Connections, o.Threads, o.Requests, o.Warmup, o.Timeout, o.KeepAlive = 2, 2, 50, 50*ms, 5*time.Second, false
		if r := load(t, o); r.Responses[0] != 50 || r.Seconds > 4 {
			return fmt.Sprint(r)
		}
		return ""
	})
}

func idleLoop(t testing.TB, o Options) *loop {
	t.Helper()
	p, err := newPlan(context.Background(), o)
	must(t, err)
	l := newLoop(p, &shared{epoch: time.Now(), intervals: make(chan *interval, 3), alone: true}, 0)
	l.turn.state, l.turn.sliceEnd = steady, never
	must(t, l.poller.open())
	t.Cleanup(l.poller.close)
	return l
}

func TestALoopThatNoticesLateDoesNotStretchTheWindow(t *testing.T) {
	o := options(nobody)
	o.Requests = 1
	l := idleLoop(t, o)
	l.window.phase, l.counts.responses, l.counts.lastEnd, l.window.nextTick, l.samples.next = measuring, 1, 7, second, never
	l.clock = 2 * second
	l.advancePhase()
	if n := len(l.shared.intervals); n > 0 {
		t.Errorf("%d seconds of a load that had ended", n)
	}
	l.finish()
	if l.outcome.end != 7 {
		t.Errorf("the window ends at %d, the last response came at 7", l.outcome.end)
	}
}

func TestConnectionsAreOpenedInBoundedTurns(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Requests, o.Connections = 1000, 3*startsPerIteration
	l := idleLoop(t, o)
	l.beginWindow()
	for turn := 1; turn <= 3; turn++ {
		l.startQueued()
		if l.open != turn*startsPerIteration {
			t.Errorf("%d connections are open after %d turns", l.open, turn)
		}
	}
	l.finish()
}

type counted struct {
	session
	starts *int
}

func (s counted) next()  { *s.starts++ }
func (s counted) flush() {}

func TestOpenConnectionsOverTLSAskInBoundedTurns(t *testing.T) {
	o := options("https://127.0.0.1:9/")
	o.Requests, o.Connections, o.TLS.InsecureSkipVerify = 1000, 3*startsPerIteration, true
	l := idleLoop(t, o)
	starts := 0
	for i := range l.conns {
		l.conns[i] = conn{loop: l, slot: int32(i), fd: 1 << 20, state: established, session: counted{nil, &starts}}
	}
	l.startAll()
	if l.startQueued(); starts != startsPerIteration {
		t.Errorf("%d of %d open connections asked in one turn", starts, len(l.conns))
	}
}

func TestLatencyIncludesTheConnectOnlyWithANewConnectionEach(t *testing.T) {
	s := serve(t, once(ok))
	o := options(s.url)
	o.Requests, o.Connections, o.KeepAlive = 50, 1, false
	r := load(t, o)
	// The response comes in one read, so both are from the connect's start to that read.
	if r.LatencyMs.Min != r.FirstByteMs.Min || r.LatencyMs.Max != r.FirstByteMs.Max {
		t.Error(r)
	}

	s = serve(t, once("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"))
	o = options(s.url)
	o.Requests, o.Connections = 50, 1
	r = load(t, o)
	if r.LatencyMs.Min >= r.FirstByteMs.Min || r.LatencyMs.Mean >= r.FirstByteMs.Mean {
		t.Error(r)
	}
}

func TestNoSecondGoesOutAfterTheWindowOfACountAtARate(t *testing.T) {
	o := options(nobody)
	o.Rate, o.Requests = 100, 100
	l := idleLoop(t, o)
	l.shared.alone = false
	l.window.phase, l.samples.next, l.growth.next = warming, never, never
	l.beginWindow()
	l.samples.next, l.growth.next = never, never
	l.clock = l.window.start + second + 1 // The last requests wait for connections
	if l.advancePhase(); len(l.shared.intervals) > 0 {
		t.Error("a second went out after the window's end")
	}
	if l.window.nextTick <= l.clock {
		t.Errorf("the next second is due at %d, it is %d", l.window.nextTick, l.clock)
	}
}
