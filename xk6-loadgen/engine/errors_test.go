package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func wantCause(t *testing.T, r outcome, cause ErrorCause, n int64) {
	t.Helper()
	var want [errorCauses]int64
	want[cause] = n
	if r.Causes != want {
		t.Errorf("want %d × %s: %s", n, ErrorCauseNames[cause], r)
	}
}

func loadInVain(t *testing.T, o Options, kind ErrorKind, cause ErrorCause) {
	t.Helper()
	if cause == CauseTimedOut {
		o.Timeout = 200 * ms
	}
	r := load(t, o)
	wantErrors(t, r, kind, o.Requests)
	wantCause(t, r, cause, o.Requests)
	if r.ErrorExample == "" || cause == CauseTimedOut && r.Seconds < o.Timeout.Seconds() {
		t.Error(r)
	}
}

func resetsAfter(response string) handler {
	return func(s *testServer, c net.Conn) {
		s.readRequest(bufio.NewReader(c))
		io.WriteString(c, response)
		c.(*net.TCPConn).SetLinger(0)
	}
}

func stallsAfter(response string) handler {
	return func(s *testServer, c net.Conn) {
		s.readRequest(bufio.NewReader(c))
		io.WriteString(c, response)
		io.Copy(io.Discard, c)
	}
}

func firstStalls() handler {
	var first atomic.Bool
	return func(s *testServer, c net.Conn) {
		if first.CompareAndSwap(false, true) {
			stallsAfter("")(s, c)
			return
		}
		always(ok)(s, c)
	}
}

func TestErrorsByKindAndCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer handler
		kind   ErrorKind
		cause  ErrorCause
	}{
		"resets a body without a length": {resetsAfter("HTTP/1.0 200 OK\r\n\r\nhello"), ErrRead, CauseReset},
		"not HTTP":                       {once("220 mail.example ESMTP\r\n"), ErrProtocol, CauseOther},
		"more than it said":              {once("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello"), ErrProtocol, CauseOther},
	} {
		for _, keepAlive := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keepAlive %t", name, keepAlive), func(t *testing.T) {
				s := serve(t, test.answer)
				o := options(s.url)
				o.Requests, o.KeepAlive = 12, keepAlive
				loadInVain(t, o, test.kind, test.cause)
				if s.connections.Load() != 12 {
					t.Errorf("not one attempt each: %s", s)
				}
			})
		}
	}
}

func TestAServerThatDoesNotReadResetsWhatIsSent(t *testing.T) {
	s := serve(t, func(_ *testServer, c net.Conn) { c.(*net.TCPConn).SetLinger(0) })
	o := options(s.url)
	o.Requests, o.Method, o.Body = 8, "POST", make([]byte, 16<<20)
	r := load(t, o)
	// While it sends or while it reads, or even before the connection was seen to be up.
	wantCause(t, r, CauseReset, 8)
}

func TestConnectsByCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		address string
		cause   ErrorCause
	}{
		"nothing listens":     {freeAddress(t), CauseRefused},
		"the queue is full":   {fullListener(t).Addr().String(), CauseTimedOut},
		"a broadcast address": {"255.255.255.255:80", CauseOther},
	} {
		t.Run(name, func(t *testing.T) {
			o := options("http://" + test.address + "/")
			o.Requests = 8
			loadInVain(t, o, ErrConnect, test.cause)
		})
	}
}

// fullListener is one that nobody accepts from yet, and whose queue is full: the kernel leaves a SYN to it without an answer.
func fullListener(t testing.TB) net.Listener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(fd, 0))
	listener, err := net.FileListener(file)
	must(t, err)
	c, err := net.DialTimeout("tcp", listener.Addr().String(), 5*time.Second)
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		listener.Close()
	})
	return listener
}

func TestNoPortLeftToConnectFrom(t *testing.T) {
	path := narrowNetwork(t, 10)
	var s *testServer
	within(t, path, func() {
		s = serveAt(t, "127.0.0.1:8080", func(s *testServer, c net.Conn) {
			r := bufio.NewReader(c)
			if !s.readRequest(r) {
				return
			}
			waitFor(t, func() bool { return s.connections.Load() >= 10 })
			io.WriteString(c, ok)
			s.readRequest(r)
		})
		for range 6 {
			c, err := net.Dial("tcp", s.listener.Addr().String())
			must(t, err)
			t.Cleanup(func() { c.Close() })
		}
	})
	o := options(s.url)
	o.Connections, o.Requests, o.NetNS = 10, 10, path
	r := load(t, o)
	if r.Responses[0] != 4 {
		t.Error(r)
	}
	wantErrors(t, r, ErrConnect, 6)
	wantCause(t, r, CauseAddressNotAvailable, 6)
}
