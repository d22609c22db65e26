package engine

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(files)
}

func TestNothingIsLeftBehind(t *testing.T) {
	silent := func(_ *peerServer, c net.Conn) { io.Copy(io.Discard, bufio.NewReader(c)) }
	halfway := func(_ *peerServer, c net.Conn) {
		tls.Server(&cutConn{Conn: c, left: 300}, serverTLS(rsaKey)).Handshake()
		io.Copy(io.Discard, c)
	}
	for name, test := range map[string]struct {
		handler func(*peerServer, net.Conn)
		// stops: the run is told to end while it is under way; otherwise it ends by itself.
		stops bool
	}{
		"stopped before any handshake":  {silent, true},
		"stopped half-way":              {halfway, true},
		"handshakes that time out":      {silent, false},
		"handshakes that end half-way":  {halfway, false},
		"stopped when loads are served": {nil, true},
		"ended when loads are served":   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := func() {
				handler := test.handler
				if handler == nil {
					config := serverTLS(ecdsaKey)
					handler = func(s *peerServer, c net.Conn) {
						if over := tls.Server(c, config); over.Handshake() == nil {
							s.peer(t, over).play(answering(hello))
						}
					}
				}
				s := servePeer(t, true, handler)
				o := h2Options(s)
				o.Connections, o.Threads, o.Requests = 50, 2, 200
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if test.stops {
					o.Requests, o.Duration = 0, time.Minute
					go func() {
						waitFor(t, func() bool { return s.connections.Load() >= 50 })
						cancel()
					}()
				} else if test.handler != nil {
					o.Requests, o.Timeout = 50, 2*time.Second
				}
				switch r := loadWithin(t, ctx, o); {
				case test.stops && (r.ErrorTotal() > 0 || r.Seconds > patient.Seconds()/2):
					t.Error(r)
				case !test.stops && test.handler != nil:
					wantErrors(t, r, ErrTLS, o.Requests)
				case !test.stops && r.Responses[0] != o.Requests:
					t.Error(r)
				}
				s.stop()
			}
			files, goroutines := openFiles(t), runtime.NumGoroutine()
			run()
			deadline := time.Now().Add(patient)
			for openFiles(t) > files || runtime.NumGoroutine() > goroutines {
				if time.Now().After(deadline) {
					stacks := make([]byte, 1<<16)
					t.Fatalf("%d descriptors more, %d goroutines more:\n%s", openFiles(t)-files, runtime.NumGoroutine()-goroutines, stacks[:runtime.Stack(stacks, true)])
				}
				time.Sleep(ms)
			}
		})
	}
}

type cutConn struct {
	net.Conn
	left int
}

func (c *cutConn) Write(p []byte) (int, error) {
	n := min(c.left, len(p))
	c.left -= n
	if n == 0 {
		return 0, io.ErrShortWrite
	}
	return c.Conn.Write(p[:n])
}
