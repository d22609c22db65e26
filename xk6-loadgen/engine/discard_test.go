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
				if got, want := [4]int64{r.Responses[0], r.HeaderBytes, r.BodyTotal(), r.ReceivedBytes},
					[4]int64{12, 12 * int64(len(head)), 12 * int64(length), 12 * int64(len(answer))}; got != want {
					t.Errorf("responses and bytes %v, want %v: %s", got, want, r)
				}
			})
		}
	}
}

func TestWhatEndsALongBodyWrongly(t *testing.T) {
	const length = 1 << 20
	for name, more := range map[string]string{"a byte too many": "x", "another response": ok} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(s *testServer, c net.Conn) {
				if s.readRequest(bufio.NewReader(c)) {
					cork(t, c)
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, strings.Repeat("x", length)+more)
					io.Copy(io.Discard, c)
				}
			})
			o := options(s.url)
			o.Requests, o.Connections = 6, 3
			r := load(t, o)
			// The other response may come after the first one was complete: nobody asked for it then.
			if more == ok && r.Responses[0]+r.Errors[ErrProtocol]+r.Errors[ErrRead] == 6 {
				return
			}
			wantErrors(t, r, ErrProtocol, 6)
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
