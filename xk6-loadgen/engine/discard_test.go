package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBytesOfBodiesAroundTheBuffersSize(t *testing.T) {
	for _, length := range []int{1, readBufferBytes - 100, readBufferBytes - 1, readBufferBytes, readBufferBytes + 1, 2*readBufferBytes + 1, 525_304, 5 << 20} {
		for _, pieces := range []int{1000, 40_000, 8 << 20} {
			t.Run(fmt.Sprintf("%d bytes in pieces of %d", length, pieces), func(t *testing.T) {
				t.Parallel()
				head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length)
				answer := head + strings.Repeat("x", length)
				s := serve(t, func(s *testServer, c net.Conn) {
					for r := bufio.NewReader(c); s.readRequest(r); {
						for rest := answer; len(rest) > 0; {
							n := min(len(rest), pieces)
							if _, err := io.WriteString(c, rest[:n]); err != nil {
								return
							}
							rest = rest[n:]
						}
					}
				})
				o := options(s.url)
				o.Requests = 12
				r := load(t, o)
				want := Counts{Requests: 12, BodyBytes: [statusClasses]int64{12 * int64(length)}, HeaderBytes: 12 * int64(len(head)), ReceivedBytes: 12 * int64(len(answer))}
				if r.Responses[0] != 12 || r.BodyTotal() != want.BodyTotal() || r.HeaderBytes != want.HeaderBytes || r.ReceivedBytes != want.ReceivedBytes {
					t.Errorf("responses %v, %d + %d of %d bytes, want %d + %d of %d: %s", r.Responses, r.HeaderBytes, r.BodyTotal(), r.ReceivedBytes,
						want.HeaderBytes, want.BodyTotal(), want.ReceivedBytes, r.ErrorExample)
				}
			})
		}
	}
}

func TestWhatEndsALongBodyWrongly(t *testing.T) {
	const length = 1 << 20
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length)
	for name, test := range map[string]struct {
		bytes int
		after func(c net.Conn)
		kind  ErrorKind
	}{
		"a byte too many":            {length + 1, func(c net.Conn) { io.Copy(io.Discard, c) }, ErrProtocol},
		"another response":           {length, func(c net.Conn) { io.WriteString(c, ok) }, ErrProtocol},
		"closed before its end":      {length - 1, func(net.Conn) {}, ErrRead},
		"reset before its end":       {length - 1, func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }, ErrRead},
		"silence before its end":     {length - 1, func(c net.Conn) { io.Copy(io.Discard, c) }, ErrTimeout},
		"closed in the middle of it": {length / 2, func(net.Conn) {}, ErrRead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(s *testServer, c net.Conn) {
				if !s.readRequest(bufio.NewReader(c)) {
					return
				}
				cork(t, c)
				io.WriteString(c, head+strings.Repeat("x", test.bytes))
				test.after(c)
			})
			o := options(s.url)
			o.Requests, o.Connections = 6, 3
			if test.kind == ErrTimeout {
				o.Timeout = 400 * time.Millisecond
			}
			r := load(t, o)
			if name == "another response" {
				// It may come after the response was complete: nobody asked for it then.
				if r.Responses[0]+r.Errors[ErrProtocol]+r.Errors[ErrRead] != 6 {
					t.Error(r)
				}
				return
			}
			wantErrors(t, r, test.kind, 6)
		})
	}
}

func TestALongBodyIsNotCopied(t *testing.T) {
	for name, test := range map[string]struct {
		head   string
		copies bool
	}{
		"of known length": {"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", false},
		"chunked":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf4240\r\n", true},
		"until the close": {"HTTP/1.1 200 OK\r\n\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			listener := listen(t, "127.0.0.1:0")
			defer listener.Close()
			o := options("http://" + listener.Addr().String() + "/")
			o.Connections, o.Duration = 1, time.Minute
			l := idleLoop(t, o)
			l.window.nextTick, l.samples.next, l.timeouts.next = never, never, never
			l.window.phase, l.window.phaseEnd = measuring, never
			c := &l.conns[0]
			c.start()
			server, err := listener.Accept()
			must(t, err)
			defer server.Close()
			receive := func(p string) {
				before := l.counts.current.ReceivedBytes
				if _, err := io.WriteString(server, p); err != nil {
					t.Fatal(err)
				}
				waitFor(t, func() bool {
					c.ready(syscall.EPOLLIN | syscall.EPOLLOUT)
					return l.counts.current.ReceivedBytes == before+int64(len(p))
				})
			}
			receive(test.head)
			clear(l.buffers.read[:])
			receive(strings.Repeat("x", 100_000))
			if copied := strings.Contains(string(l.buffers.read[:]), "x"); copied != test.copies {
				t.Errorf("copied into the buffer: %t", copied)
			}
			if s := c.session.(*http1); s.parser.BodyBytes != 100_000 {
				t.Errorf("%d bytes of the body were counted", s.parser.BodyBytes)
			}
			c.drop()
		})
	}
}
