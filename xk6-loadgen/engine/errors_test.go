package engine

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"
)

// wantCause checks that errors of this cause and no other were counted.
func wantCause(t *testing.T, r outcome, cause ErrorCause, n int64) {
	t.Helper()
	var want [errorCauses]int64
	want[cause] = n
	if r.Causes != want {
		t.Errorf("want %d × %s: %s", n, ErrorCauseNames[cause], r)
	}
}

// loadInVain makes requests that all end in errors of this kind and cause.
func loadInVain(t *testing.T, o Options, kind ErrorKind, cause ErrorCause) {
	t.Helper()
	if cause == CauseTimedOut {
		o.Timeout = 200 * time.Millisecond
	}
	r := load(t, o)
	wantErrors(t, r, kind, o.Requests)
	wantCause(t, r, cause, o.Requests)
	if r.ErrorExample == "" || cause == CauseTimedOut && r.Seconds < o.Timeout.Seconds() {
		t.Error(r)
	}
}

// resetsAfter answers a request with the beginning of a response, and resets the connection.
func resetsAfter(response string) func(*testServer, net.Conn) {
	return func(s *testServer, c net.Conn) {
		s.readRequest(bufio.NewReader(c))
		io.WriteString(c, response)
		c.(*net.TCPConn).SetLinger(0)
	}
}

// stallsAfter answers a request with the beginning of a response, and leaves it at that.
func stallsAfter(response string) func(*testServer, net.Conn) {
	return func(s *testServer, c net.Conn) {
		s.readRequest(bufio.NewReader(c))
		io.WriteString(c, response)
		io.Copy(io.Discard, c)
	}
}

// firstStalls never answers on the first connection.
func firstStalls() func(*testServer, net.Conn) {
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
		answer func(*testServer, net.Conn)
		kind   ErrorKind
		cause  ErrorCause
	}{
		"closes after request":           {once(""), ErrRead, CauseShort},
		"closes within the head":         {once("HTTP/1.1 200 OK\r\nContent-"), ErrRead, CauseShort},
		"closes within the body":         {once("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"), ErrRead, CauseShort},
		"closes within a chunk":          {once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhello"), ErrRead, CauseShort},
		"resets before the response":     {resetsAfter(""), ErrRead, CauseReset},
		"resets within the response":     {resetsAfter("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"), ErrRead, CauseReset},
		"resets a body without a length": {resetsAfter("HTTP/1.0 200 OK\r\n\r\nhello"), ErrRead, CauseReset},
		"never answers":                  {stallsAfter(""), ErrTimeout, CauseTimedOut},
		"stalls within the head":         {stallsAfter("HTTP/1.1 200 OK\r\n"), ErrTimeout, CauseTimedOut},
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
	// One waits in a queue of 0.
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
			// The ports are taken until the others have failed.
			waitFor(t, func() bool { return s.connections.Load() >= 10 })
			io.WriteString(c, ok)
			s.readRequest(r)
		})
		// Others have six of them.
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

func TestTLSByCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(*testServer, net.Conn)
		cause  ErrorCause
	}{
		"ends within the handshake": {func(_ *testServer, c net.Conn) {
			c.Read(make([]byte, 64<<10))
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
		}, CauseShort},
		"resets the handshake": {func(_ *testServer, c net.Conn) {
			c.Read(make([]byte, 64<<10))
			c.(*net.TCPConn).SetLinger(0)
		}, CauseReset},
		"never shakes hands": {func(_ *testServer, c net.Conn) { io.Copy(io.Discard, c) }, CauseTimedOut},
		"wants another version": {func(_ *testServer, c net.Conn) {
			tls.Server(c, &tls.Config{MaxVersion: tls.VersionTLS11}).Handshake()
		}, CauseOther},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.answer)
			o := options("https" + s.url[len("http"):])
			o.Requests, o.TLS.InsecureSkipVerify = 8, true
			loadInVain(t, o, ErrTLS, test.cause)
		})
	}
}

func TestHTTP2ByCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(p *h2peer, r *h2stream)
		cause  ErrorCause
	}{
		"resets the stream":     {func(p *h2peer, r *h2stream) { p.WriteRSTStream(r.id, http2.ErrCodeInternal); p.done(r) }, CauseReset},
		"resets the connection": {func(p *h2peer, r *h2stream) { p.reset() }, CauseReset},
		"closes the connection": {func(p *h2peer, r *h2stream) { p.close() }, CauseShort},
		"a body that is shorter": {func(p *h2peer, r *h2stream) {
			p.headers(r, false, ":status", "200", "content-length", "10")
			p.data(r, "hello", true)
		}, CauseShort},
		"a body that is longer": {func(p *h2peer, r *h2stream) {
			p.headers(r, false, ":status", "200", "content-length", "2")
			p.data(r, "hello", true)
		}, CauseOther},
		"never answers": {func(*h2peer, *h2stream) {}, CauseTimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveH2(t, answering(test.answer))
			o := options(s.url)
			o.Protocol, o.Requests = H2C, 8
			if test.cause == CauseTimedOut {
				o.Timeout = 200 * time.Millisecond
			}
			wantCause(t, load(t, o), test.cause, 8)
		})
	}
}
