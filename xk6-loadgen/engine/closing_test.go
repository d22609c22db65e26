package engine

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h2"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

type endings struct {
	mu     sync.Mutex
	errors []error
}

func (e *endings) add(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.errors = append(e.errors, err)
}

func (e *endings) all() []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.errors
}

type tailConn struct {
	net.Conn
	tail []byte
}

func (c *tailConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.tail = append(c.tail, p[:n]...)
	c.tail = c.tail[max(0, len(c.tail)-100):]
	return n, err
}

var errNoCloseNotify = errors.New("the TLS session ends without close_notify")

// endsWithAlert tells whether the last record that came in is as long as an alert of TLS 1.3 and no longer: crypto/tls takes
// a connection's end for a session's.
func (c *tailConn) endsWithAlert() bool {
	const content = 2 + 1 + tlsconn.TagBytes
	end := len(c.tail) - tlsconn.HeaderBytes - content
	return end >= 0 && bytes.Equal(c.tail[end:end+tlsconn.HeaderBytes], []byte{byte(tlsconn.ApplicationData), 3, 3, 0, content})
}

// serveToTheEnd answers, or with stalls does not, and notes how each connection ends.
func (x transport) serveToTheEnd(t *testing.T, stalls bool) (*peerServer, *endings) {
	t.Helper()
	ends := &endings{}
	if x.protocol == H3 {
		var known sync.Map
		return serveH3(t, nil, func(st *h3PeerStream) {
			if _, again := known.LoadOrStore(st.conn, true); !again {
				go func() {
					<-st.conn.Context().Done()
					err := context.Cause(st.conn.Context())
					if errors.Is(err, &quic.ApplicationError{Remote: true, ErrorCode: h3.NoError}) {
						err = io.EOF
					}
					ends.add(err)
				}()
			}
			if !stalls {
				st.answer(fine(st.asked))
			}
		}), ends
	}
	return servePeer(t, x.isTLS, func(s *peerServer, raw net.Conn) {
		c, tail := raw, &tailConn{Conn: raw}
		if x.isTLS {
			c = tls.Server(tail, x.config())
		}
		end := func(err error) {
			if x.isTLS && !tail.endsWithAlert() {
				err = errNoCloseNotify
			}
			ends.add(err)
		}
		if x.isH2() {
			p := s.peer(t, c)
			p.play(answering(func(p *h2peer, r *h2stream) {
				if !stalls {
					hello(p, r)
				}
			}))
			p.pump.mu.Lock()
			defer p.pump.mu.Unlock()
			end(p.pump.err)
			return
		}
		var err error
		for r := bufio.NewReader(c); err == nil; {
			var line []byte
			if line, err = r.ReadSlice('\n'); len(line) == 2 && err == nil && !stalls {
				_, err = c.Write([]byte(ok))
			}
		}
		end(err)
	}), ends
}

func TestConnectionsEndInOrder(t *testing.T) {
	onAll(t, func(t *testing.T, x transport) {
		for name, change := range map[string]func(*Options){
			"kept":           func(o *Options) { o.Requests = 100 },
			"a new one each": func(o *Options) { o.KeepAlive, o.Streams, o.Requests = false, 1, 20 },
			// All have to be up by then, on a busy machine too: a handshake that is cut off ends otherwise.
			"ended with all waiting": func(o *Options) { o.Duration = time.Second },
		} {
			t.Run(name, func(t *testing.T) {
				s, ends := x.serveToTheEnd(t, name == "ended with all waiting")
				o := x.options(s.url)
				change(&o)
				r := load(t, o)
				if r.ErrorTotal() > 0 {
					t.Error(r)
				}
				waitFor(t, func() bool { return int64(len(ends.all())) == s.connections.Load() })
				for _, err := range ends.all() {
					if !errors.Is(err, io.EOF) {
						t.Errorf("a connection ended with: %v", err)
					}
				}
				want := int64(0)
				if x.isH2() && o.KeepAlive {
					want = s.connections.Load()
				}
				if n := s.orderlyGoAways.Load(); n != want || s.faultGoAways.Load() > 0 {
					t.Errorf("GOAWAY without an error on %d of %d connections, with one on %d", n, s.connections.Load(), s.faultGoAways.Load())
				}
			})
		}
	})
}

// A connection on which something went wrong is dropped: to say that all is well would be a lie.
func TestNoGoAwayAfterAFault(t *testing.T) {
	s := serveH2(t, answering(func(p *h2peer, _ *h2stream) { p.WriteData(0, true, nil) }))
	o := h2Options(s)
	r := load(t, o)
	if r.Errors[ErrProtocol] != o.Requests {
		t.Error(r)
	}
	waitFor(t, func() bool { return s.openConnections() == 0 })
	if n := s.orderlyGoAways.Load(); n > 0 {
		t.Errorf("%d connections ended with GOAWAY without an error", n)
	}
}

func (s *testServer) openConnections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// A connection's identifiers run out after 2^30 streams, in an hour of full load: another one takes its place.
func TestAConnectionIsReplacedBeforeItsStreamsRunOut(t *testing.T) {
	for _, streams := range []int{1, 10} {
		const last = 99
		s := serveH2(t, answering(func(p *h2peer, r *h2stream) {
			if r.id > last {
				t.Errorf("stream %d is used", r.id)
			}
			hello(p, r)
		}))
		o := h2Options(s)
		o.Connections, o.Streams, o.Requests = 2, streams, 1000
		p, err := newPlan(context.Background(), o)
		must(t, err)
		p.h2.LastStreamID = last
		r, err := p.run(context.Background(), nil)
		if err != nil || r.Responses[0] != 1000 || r.ErrorTotal() > 0 || s.requests.Load() != 1000 {
			t.Errorf("%d streams at a time: %d of 1000 responses, the peer saw %d requests, %d errors (%s), %v", streams, r.Responses[0],
				s.requests.Load(), r.ErrorTotal(), r.ErrorExample, err)
		}
		// At most 50 streams each; few may be left unused.
		if n := s.connections.Load(); n < 20 || n > 40 {
			t.Errorf("%d streams at a time: %d connections", streams, n)
		}
	}
}

func TestTheLastStreamsFitTheirNumber(t *testing.T) {
	if most := uint64(h2.LastStreamID) + 2*2*maxStreams; most > 1<<32-1 {
		t.Errorf("%d does not fit 32 bits", most)
	}
}
