package engine

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain lets parallel tests, most of which only wait, run beside each other whatever the number of cores.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}

// testServer accepts on loopback and gives each connection to its handler; it counts on its own, and the engine must
// agree.
type testServer struct {
	listener    net.Listener
	url         string
	connections atomic.Int64
	requests    atomic.Int64
	mu          sync.Mutex
	open        map[net.Conn]bool
	stopped     bool
}

// handler owns a connection, which is closed when it returns.
type handler = func(s *testServer, c net.Conn)

func (s *testServer) String() string {
	return fmt.Sprintf("the server saw %d requests on %d connections", s.requests.Load(), s.connections.Load())
}

func serve(t testing.TB, handler handler) *testServer {
	t.Helper()
	return serveAt(t, "127.0.0.1:0", handler)
}

func serveAt(t testing.TB, address string, handler handler) *testServer {
	t.Helper()
	listener := listen(t, address)
	s := &testServer{listener: listener, url: "http://" + listener.Addr().String() + "/", open: map[net.Conn]bool{}}
	// Who accepts is waited for, too: it adds the others.
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			s.mu.Lock()
			s.open[c] = true
			if s.stopped {
				c.Close()
			}
			s.mu.Unlock()
			all.Go(func() {
				handler(s, c)
				c.Close()
				s.mu.Lock()
				delete(s.open, c)
				s.mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		s.stop()
		all.Wait()
	})
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	must(t, err)
	return listener
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener := listen(t, "127.0.0.1:0")
	defer listener.Close()
	return listener.Addr().String()
}

// stop closes the listener and all connections, as a killed server would.
func (s *testServer) stop() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for c := range s.open {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

// readRequest reads one request without a body, and counts it. It allocates nothing.
func (s *testServer) readRequest(r *bufio.Reader) bool {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return false
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			s.requests.Add(1)
			return true
		}
	}
}

func always(response string) handler {
	answer := []byte(response)
	return func(s *testServer, c net.Conn) {
		r := bufio.NewReader(c)
		for s.readRequest(r) {
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}

// answersAfter calls before each answer, which it leaves out and closes where that returns false.
func answersAfter(before func(s *testServer, c net.Conn) bool) handler {
	return func(s *testServer, c net.Conn) {
		for r := bufio.NewReader(c); s.readRequest(r) && before(s, c); {
			if _, err := c.Write([]byte(ok)); err != nil {
				return
			}
		}
	}
}

func once(response string) handler {
	return func(s *testServer, c net.Conn) {
		if s.readRequest(bufio.NewReader(c)) {
			c.Write([]byte(response))
		}
	}
}

// ms makes tables of times short.
const ms = time.Millisecond

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// patient is longer than the slowest machine, with the race detector and beside other work, takes for a step.
const patient = time.Minute

// nobody listens there: for loops that do not run.
const nobody = "http://127.0.0.1:9/"

// options are sound defaults for a test against the URL. Tests of what happens without an answer set patience to zero.
func options(url string) Options {
	return Options{
		URL: url, Protocol: HTTP11, Connections: 4, Streams: 1, Threads: 1, KeepAlive: true, Timeout: patient, Method: "GET", patience: patient,
	}
}

type outcome struct {
	Result
	sum     Counts
	seconds []Second
}

func (out outcome) String() string {
	latency := func(d LatencyDistribution) string { return fmt.Sprintf("%g/%g/%g", d.Min, d.P50, d.Max) }
	return fmt.Sprintf(`
%d requests, responses %v, %d unexpected, errors %v %v: %s
%d in flight, %d hung, %d unsent, %d in the warm-up; %d bytes of bodies, %d sent, at most %d streams
%g s, %g/s; least, p50 and greatest latency %s, connect %s, first byte %s, send delay %s ms; %+v`,
		out.Requests, out.Responses, out.Unexpected, out.Errors, out.Causes, out.ErrorExample,
		out.InFlight, out.Hung, out.Unsent, out.WarmupRequests, out.BodyTotal(), out.SentBytes, out.MaxConcurrentStreams,
		out.Seconds, out.RPS, latency(out.LatencyMs), latency(out.ConnectMs), latency(out.FirstByteMs), latency(out.SendDelayMs), out.Wire)
}

// load runs the engine, and checks what must hold for every run.
func load(t testing.TB, o Options) outcome {
	t.Helper()
	return loadWithin(t, context.Background(), o)
}

func loadWithin(t testing.TB, ctx context.Context, o Options) outcome {
	t.Helper()
	var out outcome
	result, err := Run(ctx, o, func(s Second) {
		out.sum.add(&s.Counts)
		out.seconds = append(out.seconds, s)
	})
	must(t, err)
	out.Result = result
	out.check(t, ctx, o)
	if ctx.Err() == nil && out.Seconds < o.Duration.Seconds() {
		t.Errorf("the window is %.9f s of %s", out.Seconds, o.Duration)
	}
	return out
}

func (out outcome) check(t testing.TB, ctx context.Context, o Options) {
	t.Helper()
	result := out.Result
	if out.sum != result.Counts {
		t.Errorf("the seconds' sum differs from the result:\n%+v\n%+v", out.sum, result.Counts)
	}
	responses := int64(0)
	for _, n := range result.Responses {
		responses += n
	}
	if result.Requests != responses+result.ErrorTotal() {
		t.Errorf("requests %d is not responses %d + errors %d", result.Requests, responses, result.ErrorTotal())
	}
	causes := int64(0)
	for _, n := range result.Causes {
		causes += n
	}
	if causes != result.ErrorTotal() {
		t.Errorf("%d errors, but %d by their causes: %v %v", result.ErrorTotal(), causes, ErrorCauseNames, result.Causes)
	}
	if o.Requests > 0 && ctx.Err() == nil && result.Requests+result.Unsent != o.Requests {
		t.Errorf("asked for %d requests, made %d", o.Requests, result.Requests)
	}
	covered := 0.0
	for _, s := range out.seconds {
		covered += s.Seconds
		if s.Seconds < 0.5 && len(out.seconds) > 1 {
			t.Errorf("a sample is of %f s, of %d", s.Seconds, len(out.seconds))
		}
	}
	if n := len(out.seconds); n > 0 && !out.seconds[n-1].End.Equal(result.Window.EndedAt) {
		t.Errorf("the last sample ends at %s, the window at %s", out.seconds[n-1].End, result.Window.EndedAt)
	}
	if math.Abs(covered-result.Seconds) > 1e-9 {
		t.Errorf("the samples cover %.9f s, the window is %.9f s", covered, result.Seconds)
	}
	for i := 1; i < len(out.seconds); i++ {
		if !out.seconds[i].End.After(out.seconds[i-1].End) {
			t.Errorf("second %d ends at %s, the one before at %s", i, out.seconds[i].End, out.seconds[i-1].End)
		}
	}
}

func loadUntil(t *testing.T, o Options, condition func() bool) outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		waitFor(t, condition)
		cancel()
	}()
	o.Duration = 2 * patient
	return loadWithin(t, ctx, o)
}

func wantResponses(t *testing.T, r outcome, n int64) {
	t.Helper()
	if r.Responses[0] != n {
		t.Errorf("not %d responses: %s", n, r)
	}
}

func wantErrors(t *testing.T, r outcome, kind ErrorKind, n int64) {
	t.Helper()
	var want [errorKinds]int64
	want[kind] = n
	if r.Errors != want {
		t.Errorf("errors %v %v (%s), want %d × %s", ErrorKindNames, r.Errors, r.ErrorExample, n, ErrorKindNames[kind])
	}
}
