package h3

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/http2/hpack"
)

const patient = time.Minute

// get is a request, and answer a response with the status 200 and five bytes of body.
var (
	get = Encode([]hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "a"}, {Name: ":path", Value: "/"},
	}, 0)
	answer = []byte("\x01\x03\x00\x00\xd9\x00\x05hello")
)

// server is the peer. It answers no request before answers is closed.
type server struct {
	address  net.Addr
	answers  chan struct{}
	accepted chan *quic.Conn
}

// serve listens until the test ends. Each connection may have this many streams at a time.
func serve(t *testing.T, streams int64) *server {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, NextProtos: []string{"h3"}, MinVersion: tls.VersionTLS13,
	}, &quic.Config{MaxIncomingStreams: streams, HandshakeIdleTimeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{address: listener.Addr(), answers: make(chan struct{}), accepted: make(chan *quic.Conn, 10)}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept(ctx)
			if err != nil {
				return
			}
			s.accepted <- conn
			all.Go(func() { s.serveConn(ctx, conn, &all) })
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close()
		all.Wait()
	})
	return s
}

func (s *server) serveConn(ctx context.Context, conn *quic.Conn, all *sync.WaitGroup) {
	defer conn.CloseWithError(NoError, "")
	control, err := conn.OpenUniStream()
	if err != nil {
		return
	}
	control.Write([]byte{streamControl, frameSettings, 0})
	for {
		stream, err := conn.AcceptStream(ctx)
		if err != nil {
			return
		}
		all.Go(func() {
			io.Copy(io.Discard, stream)
			select {
			case <-s.answers:
				stream.Write(answer)
				stream.Close()
			case <-conn.Context().Done():
			}
		})
	}
}

// client is the caller of an inbox.
type client struct {
	t        *testing.T
	inbox    *Inbox[int]
	notified chan struct{} // It has room for more notices than a test may make.
	pending  []Event[int]
}

func newClient(t *testing.T) *client {
	c := &client{t: t, notified: make(chan struct{}, 100)}
	began := time.Now()
	c.inbox = &Inbox[int]{
		Now:    func() int64 { return int64(time.Since(began)) },
		Notify: func() { c.notified <- struct{}{} }, Timeout: patient,
		TLS: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}, MinVersion: tls.VersionTLS13},
	}
	return c
}

// dial connects to a server in place of a connection before. It returns once the connection is up, and hangs up when the test ends.
func (c *client) dial(to net.Addr, before *Conn[int]) (*Conn[int], func()) {
	c.t.Helper()
	socket, err := net.DialUDP("udp", nil, to.(*net.UDPAddr))
	if err != nil {
		c.t.Fatal(err)
	}
	conn, hangUp := Dial(c.inbox, before, 7, socket, to)
	c.t.Cleanup(func() {
		hangUp()
		c.inbox.Goroutines.Wait()
	})
	if e := c.next(); e.Kind != Up || e.Conn != conn {
		c.t.Fatalf("not up, but %+v", e)
	}
	return conn, hangUp
}

// next returns the next event. It takes events once for each notice.
func (c *client) next() Event[int] {
	c.t.Helper()
	for len(c.pending) == 0 {
		select {
		case <-c.notified:
			c.pending = slices.Clone(c.inbox.Take())
		case <-time.After(patient):
			c.t.Fatal("no event")
		}
	}
	first := c.pending[0]
	c.pending = c.pending[1:]
	return first
}

func TestAnInboxNotifiesOnceForEachTake(t *testing.T) {
	c := newClient(t)
	for round := range 3 {
		for last := range 3 {
			c.inbox.post(Event[int]{Kind: GoAway, Last: quic.StreamID(last)})
		}
		if notices := len(c.notified); notices != 1 {
			t.Errorf("round %d: %d notices", round, notices)
		}
		for last := range 3 {
			if e := c.next(); e.Last != quic.StreamID(last) {
				t.Errorf("round %d: event %d is %+v", round, last, e)
			}
		}
	}
	if events := c.inbox.Take(); len(events) != 0 {
		t.Errorf("%d events were taken twice", len(events))
	}
}

func TestAStreamCanBeOpenedOnceAnotherHasEnded(t *testing.T) {
	s, c := serve(t, 1), newClient(t)
	conn, _ := c.dial(s.address, &Conn[int]{})
	if !conn.OpenStream() || conn.AtLimit {
		t.Fatal("no first stream")
	}
	if sent := conn.Request(1, get, nil); sent != len(get) {
		t.Errorf("%d bytes have left", sent)
	}
	if conn.OpenStream() || !conn.AtLimit {
		t.Fatal("a second stream, beyond the server's limit")
	}
	close(s.answers)
	for range 2 {
		switch e := c.next(); e.Kind {
		case Done:
			c.wantAnswer(e, 1)
		case Raised:
			conn.Raise(e)
		default:
			t.Fatalf("%+v", e)
		}
	}
	if conn.AtLimit || !conn.OpenStream() {
		t.Fatal("no stream after the first one has ended")
	}
	conn.Request(2, get, nil)
	c.wantAnswer(c.next(), 2)
}

// wantAnswer wants the end of this request's stream, with the whole answer, and removes it.
func (c *client) wantAnswer(e Event[int], of int) {
	c.t.Helper()
	if e.Kind != Done || e.Stream.Of != of || e.Stream.Err != nil || !e.Stream.IsOpen() {
		c.t.Fatalf("no answer to request %d, but %+v", of, e)
	}
	if r := e.Stream.Response; r.Status != 200 || r.BodyBytes != 5 || e.Stream.Bytes != int64(len(answer)) {
		c.t.Errorf("request %d: %+v of %d bytes", of, r, e.Stream.Bytes)
	}
	e.Stream.Remove(true)
	if e.Stream.IsOpen() {
		c.t.Errorf("the stream of request %d is still open", of)
	}
}

func TestStreamsAreGivenUpOldestFirst(t *testing.T) {
	const all = 7
	s, c := serve(t, all), newClient(t)
	conn, hangUp := c.dial(s.address, &Conn[int]{})
	for of := range all {
		if !conn.OpenStream() {
			t.Fatalf("no stream %d", of)
		}
		conn.Request(of, get, nil)
	}
	var asked []int
	conn.GiveUp(false, func(st *Stream[int]) bool {
		asked = append(asked, st.Of)
		return st.Of%2 == 1
	})
	if want := []int{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(asked, want) {
		t.Errorf("the order is %v", asked)
	}
	if len(conn.Open) != 4 {
		t.Errorf("%d streams are left", len(conn.Open))
	}
	close(s.answers)
	for range all { // Those that were given up end, too
		if e := c.next(); e.Stream.Of%2 == 0 {
			c.wantAnswer(e, e.Stream.Of)
		} else if e.Stream.IsOpen() {
			t.Errorf("stream %d is still open", e.Stream.Of)
		}
	}
	if len(conn.Open) != 0 {
		t.Errorf("%d streams are left", len(conn.Open))
	}
	hangUp()
	if next, _ := c.dial(s.address, conn); len(next.Open) != 0 || cap(next.Open) != cap(conn.Open) {
		t.Errorf("the next connection has room for %d streams, not %d", cap(next.Open), cap(conn.Open))
	}
}

func TestTheEndOfAConnectionReachesTheInbox(t *testing.T) {
	s, c := serve(t, 1), newClient(t)
	conn, _ := c.dial(s.address, &Conn[int]{})
	if !conn.OpenStream() {
		t.Fatal("no stream")
	}
	conn.Request(1, get, nil)
	(<-s.accepted).CloseWithError(0x102, "broken")
	kinds := map[Kind]bool{}
	for range 2 {
		e := c.next()
		kinds[e.Kind] = true
		err := e.Err
		if e.Kind == Done {
			err = e.Stream.Err
		}
		if end, isEnd := errors.AsType[*quic.ApplicationError](err); !isEnd || e.Conn != conn || end.ErrorCode != 0x102 || end.ErrorMessage != "broken" {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if !kinds[Done] || !kinds[Down] {
		t.Errorf("only %v", kinds)
	}
}
