package engine

import (
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
)

// Frames and a stream of HTTP/3 (RFC 9114, sections 7.2 and 6.2).
const h3Data, h3Headers, h3Settings, h3GoAway, h3Control = 0, 1, 4, 7, 0

type h3PeerStream struct {
	*quic.Stream
	asked
	t       testing.TB
	server  *peerServer
	conn    *quic.Conn
	control *quic.SendStream
}

// h3PeerConn is a connection as testServer knows it: to be closed.
type h3PeerConn struct {
	net.Conn
	quic *quic.Conn
}

func (c h3PeerConn) Close() error { return c.quic.CloseWithError(h3.NoError, "") }

// serveH3 starts a server for HTTP/3 that gives each request to a script, on a goroutine of its own. config may be nil.
func serveH3(t testing.TB, config *quic.Config, script func(*h3PeerStream)) *peerServer {
	t.Helper()
	return serveH3On(t, &quic.Transport{Conn: silentPort(t)}, config, script)
}

func serveH3On(t testing.TB, transport *quic.Transport, config *quic.Config, script func(*h3PeerStream)) *peerServer {
	t.Helper()
	tls := serverTLS(ecdsaKey)
	tls.NextProtos = []string{"h3"}
	if config == nil {
		config = &quic.Config{MaxIncomingStreams: 1000}
	}
	config.HandshakeIdleTimeout = patient
	listener, err := transport.Listen(tls, config)
	must(t, err)
	s := &peerServer{testServer: &testServer{url: "https://" + listener.Addr().String() + "/", open: map[net.Conn]bool{}}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept(ctx)
			if err != nil {
				return
			}
			s.connections.Add(1)
			s.testServer.mu.Lock()
			s.open[h3PeerConn{quic: conn}] = true
			s.testServer.mu.Unlock()
			all.Go(func() {
				defer conn.CloseWithError(h3.NoError, "")
				s.serveH3Conn(ctx, t, conn, &all, script)
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		all.Wait()
		listener.Close()
		transport.Close()
	})
	return s
}

func (s *peerServer) serveH3Conn(ctx context.Context, t testing.TB, conn *quic.Conn, all *sync.WaitGroup, script func(*h3PeerStream)) {
	control, err := conn.OpenUniStream()
	if err != nil {
		return
	}
	control.Write([]byte{h3Control, h3Settings, 0})
	for {
		stream, err := conn.AcceptStream(ctx)
		if err != nil {
			return
		}
		all.Go(func() {
			st := &h3PeerStream{Stream: stream, t: t, server: s, conn: conn, control: control}
			if s.readsOnly > 0 {
				io.ReadFull(stream, make([]byte, s.readsOnly))
				stream.CancelRead(h3.NoError)
				script(st)
			} else if st.readRequest() {
				s.requests.Add(1)
				script(st)
			}
		})
	}
}

// readRequest tells whether the request came whole.
func (st *h3PeerStream) readRequest() bool {
	all, err := io.ReadAll(countingReader{st.Stream, &st.server.received})
	if err != nil {
		return false
	}
	st.header = map[string]string{}
	for r := bytes.NewReader(all); r.Len() > 0; {
		kind, _ := quicvarint.Read(r)
		length, err := quicvarint.Read(r)
		payload := make([]byte, length)
		if _, errPayload := io.ReadFull(r, payload); err != nil || errPayload != nil {
			st.t.Errorf("a frame of type %d is cut off", kind)
			return false
		}
		switch kind {
		case h3Headers:
			for next := qpack.NewDecoder().Decode(payload); ; {
				f, err := next()
				if err == io.EOF {
					break
				}
				if err != nil {
					st.t.Errorf("the client's header block: %v", err)
					return false
				}
				st.header[f.Name] = f.Value
			}
		case h3Data:
			st.body = append(st.body, payload...)
		default:
			st.t.Errorf("a frame of type %d in a request", kind)
		}
	}
	st.method, st.path, st.header["host"] = st.header[":method"], st.header[":path"], st.header[":authority"]
	if st.header[":scheme"] != "https" {
		st.t.Errorf("the request's fields are %v", st.header)
	}
	return true
}

func h3Frame(kind uint64, payload []byte) []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload))), payload...)
}

func (st *h3PeerStream) send(p []byte) {
	n, _ := st.Write(p)
	st.server.sent.Add(int64(n))
}

func (st *h3PeerStream) sendHeaders(fields ...string) {
	var block bytes.Buffer
	encoder := qpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		encoder.WriteField(qpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		st.server.decoded.Add(int64(len(fields[i]) + len(fields[i+1])))
	}
	st.server.headers.Add(int64(block.Len()))
	st.send(h3Frame(h3Headers, block.Bytes()))
}

func (st *h3PeerStream) sendBody(body string) {
	st.server.body.Add(int64(len(body)))
	st.send(h3Frame(h3Data, []byte(body)))
}

// answer does in HTTP/3 what answerHTTP1 does in HTTP/1.
func (st *h3PeerStream) answer(a answer) {
	switch a.ending {
	case closing:
		st.conn.CloseWithError(h3.NoError, "")
		return
	case resetting:
		st.conn.CloseWithError(0x102, "an internal error")
		return
	case stalling:
		<-st.conn.Context().Done()
		return
	}
	fields := []string{":status", strconv.Itoa(a.status)}
	if a.status != 204 && a.status != 304 {
		fields = append(fields, "content-length", strconv.Itoa(len(a.body)))
	}
	st.sendHeaders(fields...)
	if a.ending == closingWithin {
		st.sendBody(a.body[:len(a.body)/2])
		st.conn.CloseWithError(h3.NoError, "")
		return
	}
	// Before the client can have the answer: a test looks at the count once the load is over.
	st.server.answered.Add(1)
	if a.hasBody(st.method) && a.body != "" {
		st.sendBody(a.body)
	}
	st.Close()
}

func silentPort(t testing.TB) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}
