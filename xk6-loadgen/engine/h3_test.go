package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

func h3Options(url string) Options {
	o := options(url)
	o.Protocol, o.Streams, o.Requests, o.TLS.InsecureSkipVerify = H3, 4, 40, true
	return o
}

func answer200(st *h3PeerStream) { st.answer(answer{status: 200, body: "hello"}) }

func TestH3ResponsesByTheirFrames(t *testing.T) {
	t.Parallel()
	ended := func(parts ...string) func(*h3PeerStream) {
		return func(st *h3PeerStream) {
			for _, p := range parts {
				if fields, isHeaders := strings.CutPrefix(p, "headers "); isHeaders {
					st.sendHeaders(strings.Fields(fields)...)
				} else {
					st.send([]byte(p))
				}
			}
			st.Close()
		}
	}
	data := func(p string) string { return string(h3Frame(h3Data, []byte(p))) }
	const ok200 = "headers :status 200"
	for name, test := range map[string]struct {
		script func(*h3PeerStream)
		// fault is a part of the error's text; empty: all are responses.
		fault string
		cause ErrorCause
	}{
		"a length that fits":           {ended(ok200+" content-length 5", data("he"), data("llo")), "", 0},
		"no length":                    {ended(ok200, data(""), data("hello")), "", 0},
		"trailers":                     {ended(ok200, data("hello"), "headers x y"), "", 0},
		"an early hint":                {ended("headers :status 103 link x", ok200, data("hello")), "", 0},
		"unknown frames":               {ended(string(h3Frame(0x21, make([]byte, 40000))), ok200, string(h3Frame(0x4242, nil)), data("hello")), "", 0},
		"long headers":                 {ended(ok200+" x "+strings.Repeat("~", 40000), data("hello")), "", 0},
		"too long headers":             {ended(ok200 + " x " + strings.Repeat("~", 70000)), "longer than 64 KiB", CauseOther},
		"a short body":                 {ended(ok200+" content-length 5", data("hell")), "content-length", CauseShort},
		"a long body":                  {ended(ok200+" content-length 5", data("hello!")), "content-length", CauseOther},
		"two lengths":                  {ended(ok200 + " content-length 5 content-length 6"), "differ", CauseOther},
		"nothing":                      {ended(), "ended before the response", CauseShort},
		"a cut frame":                  {ended(ok200, data("hello")[:4]), "ended before the response", CauseShort},
		"a cut header block":           {ended("\x01\x20\x00"), "ended before the response", CauseShort},
		"data first":                   {ended(data("hello")), "DATA before", CauseOther},
		"no status":                    {ended("headers x y"), "no :status", CauseOther},
		"two responses":                {ended(ok200, ok200), "not trailers", CauseOther},
		"a push":                       {ended(string(h3Frame(5, []byte{0, 0, 0}))), "frame of type 5", CauseOther},
		"a dynamic table":              {ended("\x01\x03\x02\x00\x80"), "QPACK", CauseOther},
		"a reset":                      {func(st *h3PeerStream) { st.CancelWrite(0x102) }, "reset the stream (HTTP/3 code 0x102)", CauseReset},
		"a rejection":                  {func(st *h3PeerStream) { st.CancelWrite(h3.RequestRejected) }, "code 0x10b", CauseReset},
		"a reset within":               {func(st *h3PeerStream) { st.sendHeaders(":status", "200"); st.CancelWrite(0x102) }, "code 0x102", CauseReset},
		"a control frame without type": {func(st *h3PeerStream) { st.control.Write([]byte{h3Settings, 0}) }, "control stream", CauseOther},
		"a closed control stream":      {func(st *h3PeerStream) { st.control.Close() }, "closed its control stream", CauseOther},
		"an error of the connection":   {func(st *h3PeerStream) { st.conn.CloseWithError(0x102, "oh no") }, "code 0x102) oh no", CauseReset},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH3(t, nil, test.script)
			r := load(t, h3Options(s.url))
			if test.fault == "" {
				if r.Responses[0] != 40 || r.BodyTotal() != 200 {
					t.Error(r)
				}
				return
			}
			if r.Causes[test.cause] != 40 || !strings.Contains(r.ErrorExample, test.fault) {
				t.Error(r)
			}
		})
	}
}

func TestH3AnAnswerBeforeTheWholeBody(t *testing.T) {
	t.Parallel()
	s := serveH3(t, nil, func(st *h3PeerStream) { st.answer(answer{status: 413, body: "no"}) })
	s.readsOnly = 1000
	o := h3Options(s.url)
	o.Method, o.Body = "POST", make([]byte, 16<<20)
	r := load(t, o)
	if r.Responses[2] != 40 || r.SentBytes < 40*1000 || r.SentBytes > 20<<20 {
		t.Error(r)
	}
}

func TestH3TheServersLimitOfStreamsIsKept(t *testing.T) {
	t.Parallel()
	var open, most atomic.Int64
	s := serveH3(t, &quic.Config{MaxIncomingStreams: 3}, func(st *h3PeerStream) {
		raise(&most, open.Add(1))
		defer open.Add(-1)
		answer200(st)
	})
	o := h3Options(s.url)
	o.Connections, o.Streams, o.Requests = 2, 50, 500
	r := load(t, o)
	if r.Responses[0] != 500 || s.requests.Load() != 500 || most.Load() > 2*3 {
		t.Error(s, most.Load(), r)
	}
}

func TestH3GoAway(t *testing.T) {
	t.Parallel()
	s := serveH3(t, nil, func(st *h3PeerStream) {
		switch id := uint64(st.StreamID()); {
		case id < 40:
			answer200(st)
		case id == 40:
			st.control.Write(h3Frame(h3GoAway, quicvarint.Append(nil, 40)))
		}
	})
	o := h3Options(s.url)
	o.Connections, o.Requests = 1, 55
	r := load(t, o)
	if r.Responses[0] != 55 || r.ErrorTotal() != 0 || s.connections.Load() != 6 || s.answered.Load() != 55 {
		t.Error(s, r)
	}
}

func TestH3ARejectedRequestIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := serveH3(t, nil, func(st *h3PeerStream) {
		if st.StreamID() == 0 {
			st.CancelWrite(h3.RequestRejected)
			return
		}
		answer200(st)
	})
	o := h3Options(s.url)
	o.Connections, o.Requests = 1, 20
	r := load(t, o)
	if r.Responses[0] != 20 || r.ErrorTotal() != 0 || s.requests.Load() != 21 || s.connections.Load() != 1 {
		t.Error(s, r)
	}
}

// The loop sorts the errors of all its streams, so that a flood of resets would hold it up. It cannot be parallel: it counts allocations.
func TestH3AFloodOfResetsAllocatesNothing(t *testing.T) {
	l := &loop{}
	var err error = &quic.StreamError{StreamID: 4, ErrorCode: h3.RequestRejected, Remote: true}
	if text := l.exampleOf(&quic.VersionNegotiationError{}); !strings.Contains(text, "no compatible QUIC version") {
		t.Errorf("a server of another version is %q", text)
	}
	if l.counts.example = l.exampleOf(err); l.counts.example != "the server reset the stream (HTTP/3 code 0x10b)" {
		t.Errorf("the first error has the text %q", l.counts.example)
	}
	allocations := testing.AllocsPerRun(100, func() {
		if f, text := faultOf(err), l.exampleOf(err); f.cause != CauseReset || f.code != h3.RequestRejected || f.endsAll || text != "" {
			t.Errorf("%+v, with the text %q", f, text)
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations for each reset", allocations)
	}
}

func TestH3FaultsByKindAndCause(t *testing.T) {
	for err, want := range map[error]h3Fault{
		&quic.StreamError{ErrorCode: 7, Remote: true}:                         {ErrRead, CauseReset, 7, false},
		&h3.Breach{Text: "x", IsShort: true}:                                  {ErrProtocol, CauseShort, 0, false},
		&h3.Breach{Text: "x", EndsAll: true}:                                  {ErrProtocol, CauseOther, 0, true},
		&quic.ApplicationError{ErrorCode: h3.NoError}:                         {ErrRead, CauseShort, 0, true},
		&quic.ApplicationError{ErrorCode: 0x102}:                              {ErrRead, CauseReset, 0, true},
		&quic.StatelessResetError{}:                                           {ErrRead, CauseReset, 0, true},
		&quic.IdleTimeoutError{}:                                              {ErrTimeout, CauseTimedOut, 0, true},
		&quic.HandshakeTimeoutError{}:                                         {ErrTimeout, CauseTimedOut, 0, true},
		&quic.TransportError{ErrorCode: 0x128}:                                {ErrTLS, CauseOther, 0, true},
		&quic.TransportError{ErrorCode: quic.ConnectionRefused, Remote: true}: {ErrRead, CauseRefused, 0, true},
		&quic.TransportError{ErrorCode: quic.InternalError, Remote: true}:     {ErrRead, CauseReset, 0, true},
		&quic.TransportError{ErrorCode: quic.ProtocolViolation}:               {ErrProtocol, CauseOther, 0, true},
		syscall.ECONNREFUSED:                                                  {ErrRead, CauseRefused, 0, true},
		&quic.VersionNegotiationError{Ours: []quic.Version{1}}:                {ErrRead, CauseOther, 0, true},
	} {
		if got := faultOf(err); got != want {
			t.Errorf("%T %v: %+v, want %+v", err, err, got, want)
		}
	}
}

func TestH3AServerThatOnlySaysGoAway(t *testing.T) {
	t.Parallel()
	s := serveH3(t, nil, func(st *h3PeerStream) {
		st.control.Write(h3Frame(h3GoAway, []byte{0}))
	})
	o := h3Options(s.url)
	o.Connections, o.Requests = 1, 3
	r := load(t, o)
	if r.Errors[ErrRead] != 3 || !strings.Contains(r.ErrorExample, "GOAWAY") {
		t.Error(r)
	}
}

// noConnect returns what is wrong where connects are not given up soon, for this cause, with this in their text.
func noConnect(t *testing.T, url string, cause ErrorCause, example string) (problem string) {
	o := h3Options(url)
	o.Requests, o.patience = 4, 0
	began := time.Now()
	r := load(t, o)
	if took := time.Since(began); took > o.Timeout/2 || r.Errors[ErrConnect] != 4 || r.Causes[cause] != 4 || !strings.Contains(r.ErrorExample, example) {
		return fmt.Sprintf("after %s: %s", took, r)
	}
	return ""
}

func TestH3WithoutAnAnswer(t *testing.T) {
	t.Parallel()
	garbage := silentPort(t)
	go func() {
		for p := make([]byte, 2000); ; {
			n, from, err := garbage.ReadFrom(p)
			if err != nil {
				return
			}
			for range 20 {
				rand.Read(p[:n])
				garbage.WriteTo(p[:n], from)
			}
		}
	}()
	for name, test := range map[string]struct {
		address func() string
		cause   ErrorCause
		example string
	}{
		"a silent port":       {func() string { return silentPort(t).LocalAddr().String() }, CauseTimedOut, "turn HTTP/3 on"},
		"a port with garbage": {func() string { return garbage.LocalAddr().String() }, CauseTimedOut, "turn HTTP/3 on"},
		// Sockets of other tests may get this port.
		"a port without anyone": {func() string { return freeAddress(t) }, CauseRefused, "no process listens on this UDP port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried(t, func() string { return noConnect(t, "https://"+test.address()+"/", test.cause, test.example) })
		})
	}
}

func TestH3HandshakesThatFail(t *testing.T) {
	t.Parallel()
	s := serveH3(t, nil, answer200)
	o := h3Options(s.url)
	o.Requests, o.TLS.InsecureSkipVerify = 4, false
	if r := load(t, o); r.Errors[ErrTLS] != 4 || !strings.Contains(r.ErrorExample, "certificate is not accepted") {
		t.Error(r)
	}
	tls := serverTLS(ecdsaKey)
	tls.NextProtos = []string{"doq"}
	listener, err := quic.ListenAddr("127.0.0.1:0", tls, nil)
	must(t, err)
	defer listener.Close()
	o = h3Options("https://" + listener.Addr().String() + "/")
	o.Requests = 4
	if r := load(t, o); r.Errors[ErrTLS] != 4 || r.ErrorExample != tlsconn.ErrNoProtocol.Error() {
		t.Error(r)
	}
}

func TestH3NothingIsLeftBehind(t *testing.T) {
	s := serveH3(t, nil, func(st *h3PeerStream) {
		if st.server.requests.Load()%7 == 0 {
			return // It stalls
		}
		answer200(st)
	})
	run := func() {
		o := h3Options(s.url)
		o.Threads, o.Timeout = 2, 100*ms
		load(t, o)
		ctx, cancel := context.WithCancel(context.Background())
		o.Requests, o.Duration, o.Timeout = 0, time.Minute, time.Minute
		until := s.requests.Load() + 20
		go func() {
			waitFor(t, func() bool { return s.requests.Load() > until })
			cancel()
		}()
		loadWithin(t, ctx, o)
	}
	run()
	before := openFiles(t)
	run()
	// What closes a connection may end a moment after the load.
	waitFor(t, func() bool {
		stacks := make([]byte, 1<<20)
		all := string(stacks[:runtime.Stack(stacks, true)])
		return !strings.Contains(all, "h3.(*Conn[") && !strings.Contains(all, "h3.(*Stream[") && openFiles(t) <= before
	})
}

func TestH3ThreadsDoNotInterruptAServerOnTheirCore(t *testing.T) {
	policy := func() uint32 {
		main, err := unix.SchedGetAttr(os.Getpid(), 0)
		if err != nil {
			t.Skip(err)
		}
		return main.Policy
	}
	before, during := policy(), make(chan uint32, 100)
	s := serveH3(t, nil, func(st *h3PeerStream) {
		during <- policy()
		answer200(st)
	})
	o := h3Options(s.url)
	o.Requests = 4
	load(t, o)
	if under := <-during; before != unix.SCHED_NORMAL || under != unix.SCHED_BATCH || policy() != unix.SCHED_NORMAL {
		t.Errorf("policies: %d before, %d under load, %d after", before, under, policy())
	}
}
