package engine

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// wire is what a peer has sent and received, as it counted itself; the engine must agree. With TLS it is plaintext.
type wire struct {
	// headers are header blocks as sent, decoded their names and values, body the content of DATA frames.
	headers, decoded, body, sent, received atomic.Int64
}

type peerServer struct {
	*testServer
	wire
	// answered are the requests whose last frame the peer has sent; dropped are streams that the client has reset.
	answered, dropped atomic.Int64
	// mostOpen is the greatest number of streams that were open on one connection.
	mostOpen atomic.Int64
	// faultGoAways are GOAWAY frames that the client has sent for an error, orderlyGoAways those without one.
	faultGoAways, orderlyGoAways atomic.Int64
	// readsOnly, if set before the load, is how many bytes of a request over HTTP/3 are read.
	readsOnly int
	mu        sync.Mutex
	states    []tls.ConnectionState
}

func (s *peerServer) String() string {
	return fmt.Sprintf("%v, answered %d and had %d open at most", s.testServer, s.answered.Load(), s.mostOpen.Load())
}

func serveH2(t testing.TB, script func(p *h2peer)) *peerServer {
	return serveH2TLS(t, nil, script)
}

// serveH2TLS starts a server over TLS; nil is h2c. After the script the connection is served until the client closes it.
func serveH2TLS(t testing.TB, config *tls.Config, script func(p *h2peer)) *peerServer {
	t.Helper()
	return servePeer(t, config != nil, func(s *peerServer, raw net.Conn) {
		c := raw
		if config != nil {
			over := tls.Server(raw, config)
			if over.Handshake() != nil {
				return
			}
			s.mu.Lock()
			s.states = append(s.states, over.ConnectionState())
			s.mu.Unlock()
			c = over
			defer over.Close()
		}
		s.peer(t, c).play(script)
	})
}

// servePeer starts a server for HTTP or HTTPS that counts as a peer does. No connection lasts longer than two minutes.
func servePeer(t testing.TB, isTLS bool, handler func(s *peerServer, c net.Conn)) *peerServer {
	t.Helper()
	s, complete := &peerServer{}, make(chan struct{})
	s.testServer = serve(t, func(_ *testServer, c net.Conn) {
		c.SetDeadline(time.Now().Add(2 * patient))
		<-complete
		handler(s, c)
	})
	if isTLS {
		s.url = strings.Replace(s.url, "http:", "https:", 1)
	}
	close(complete)
	return s
}

func (s *peerServer) handshakes() []tls.ConnectionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.states)
}

func (s *peerServer) peer(t testing.TB, c net.Conn) *h2peer {
	p := &h2peer{
		t: t, server: s, conn: c, streams: map[uint32]*h2stream{}, resets: map[uint32]http2.ErrCode{},
		window: 65535, theirInitial: 65535, receive: 65535, initial: 65535, limit: 100, refill: true, clientTable: 4096,
	}
	p.pump = &pump{source: countingReader{c, &s.received}}
	p.Framer = http2.NewFramer(&p.out, p.pump)
	p.AllowIllegalWrites = true
	p.SetMaxReadFrameSize(16384)
	p.encoder = hpack.NewEncoder(&p.block)
	p.decoder = hpack.NewDecoder(4096, nil)
	return p
}

type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// pump reads ahead without a bound, from its first Read on: a peer that is busy writing still takes what the client sends,
// as servers do, until it is deaf.
type pump struct {
	source io.Reader
	deaf   atomic.Bool
	start  sync.Once
	mu     sync.Mutex
	more   sync.Cond
	data   bytes.Buffer
	err    error
}

func (p *pump) Read(b []byte) (int, error) {
	p.start.Do(func() {
		p.more.L = &p.mu
		go p.run()
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.data.Len() == 0 && p.err == nil {
		p.more.Wait()
	}
	if p.data.Len() == 0 {
		return 0, p.err
	}
	return p.data.Read(b)
}

func (p *pump) run() {
	buffer := make([]byte, 32<<10)
	for !p.deaf.Load() {
		n, err := p.source.Read(buffer)
		p.mu.Lock()
		p.data.Write(buffer[:n])
		p.err = err
		p.more.Signal()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}
