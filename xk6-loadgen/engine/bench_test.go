package engine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/http2"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/schedule"
)

// The steady state of the engine allocates nothing for a request: 0 allocs/op in each of these.

func BenchmarkKeepAlive(b *testing.B) {
	benchmark(b, always(ok), func(o *Options) {})
}

// BenchmarkLongBody is one response of 525,304 bytes, of which the server's half is in the time.
func BenchmarkLongBody(b *testing.B) {
	const bodyBytes = 525_304
	b.SetBytes(bodyBytes)
	response := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", bodyBytes, strings.Repeat("x", bodyBytes))
	benchmark(b, always(response), func(o *Options) { o.Connections = 10 })
}

// BenchmarkNewConnection is one request with a connection of its own, as ab makes it.
func BenchmarkNewConnection(b *testing.B) {
	benchmarkURL(b, serveOneByOne(b), func(o *Options) { o.Protocol, o.KeepAlive = HTTP10, false })
}

func BenchmarkH2C(b *testing.B) {
	benchmark(b, answerFrames, func(o *Options) { o.Protocol, o.Streams = H2C, 10 })
}

// BenchmarkMix and BenchmarkMixH2C are one request of 1,000.
func BenchmarkMix(b *testing.B) { benchmark(b, always(ok), mixOfMany) }

func BenchmarkMixH2C(b *testing.B) {
	benchmark(b, answerFrames, func(o *Options) {
		o.Protocol, o.Streams = H2C, 10
		mixOfMany(o)
	})
}

func mixOfMany(o *Options) {
	for i := range 1000 {
		o.Mix = append(o.Mix, Request{Target: fmt.Sprintf("/products/%d.html", i), Weight: 1 + i%7})
	}
}

func BenchmarkSpin(b *testing.B) {
	benchmark(b, always(ok), func(o *Options) { o.Spin = true })
}

// BenchmarkRate is one request of the open model, at a rate that is not reached.
func BenchmarkRate(b *testing.B) {
	benchmark(b, always(ok), func(o *Options) { o.Rate = maxRate })
}

// BenchmarkPartOfARate is one request of another process's three of Poisson arrivals, which it draws all.
func BenchmarkPartOfARate(b *testing.B) {
	benchmark(b, always(ok), func(o *Options) {
		o.Rate, o.Arrivals, o.Segment = maxRate, PoissonArrivals, schedule.NewSegment(1, []int64{3}, 3)
	})
}

func benchmark(b *testing.B, handler handler, change func(*Options)) {
	benchmarkURL(b, serve(b, handler).url, change)
}

// serveOneByOne starts a server that takes a connection, answers the one request on it, closes it, and takes the next. It
// allocates nothing for a connection, as Go's own net package does. It is there until the test is over; returns its URL.
func serveOneByOne(t testing.TB) string {
	t.Helper()
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		// Accept returns an error then.
		syscall.Shutdown(listener, syscall.SHUT_RDWR)
		all.Wait()
		syscall.Close(listener)
	})
	must(t, syscall.Bind(listener, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(listener, syscall.SOMAXCONN))
	name, err := syscall.Getsockname(listener)
	must(t, err)
	all.Go(func() {
		response, request := []byte(strings.Replace(ok, "\r\n", "\r\nConnection: close\r\n", 1)), make([]byte, 4096)
		for {
			// syscall.Accept allocates the peer's address.
			fd, _, errno := syscall.Syscall6(syscall.SYS_ACCEPT4, uintptr(listener), 0, 0, syscall.SOCK_CLOEXEC, 0, 0)
			switch errno {
			case 0:
				answerOnce(int(fd), request, response)
			case syscall.EINTR, syscall.ECONNABORTED:
			default:
				return
			}
		}
	})
	return fmt.Sprintf("http://127.0.0.1:%d/", name.(*syscall.SockaddrInet4).Port)
}

// answerOnce reads a request without a body, writes the response and closes.
func answerOnce(fd int, request, response []byte) {
	defer syscall.Close(fd)
	for got := 0; !bytes.HasSuffix(request[:got], []byte("\r\n\r\n")); {
		n, err := syscall.Read(fd, request[got:])
		if err == syscall.EINTR {
			continue
		}
		// The client may have closed at the end of a phase.
		if err != nil || n == 0 {
			return
		}
		got += n
	}
	syscall.Write(fd, response)
}

func benchmarkURL(b *testing.B, url string, change func(*Options)) {
	// Run may raise it, and the testing package minds.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	o := options(url)
	o.Connections, o.Requests = 100, int64(b.N)
	change(&o)
	b.ReportAllocs()
	load(b, o)
}

// answerFrames is an HTTP/2 server that allocates nothing for a request: every HEADERS frame gets the same response.
func answerFrames(_ *testServer, c net.Conn) {
	r := bufio.NewReaderSize(c, 64<<10)
	if _, err := r.Discard(len(http2.ClientPreface)); err != nil {
		return
	}
	// HEADERS with :status 200 of the static table, then DATA with 5 bytes of body.
	response := []byte{0, 0, 1, 1, 4, 0, 0, 0, 0, 0x88, 0, 0, 5, 0, 1, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'}
	const headerBytes, data = 9, 10          // the length of a frame's header, and where DATA begins
	out := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0} // SETTINGS
	for {
		header, err := r.Peek(headerBytes)
		if err != nil {
			return
		}
		if http2.FrameType(header[3]) == http2.FrameHeaders {
			copy(response[5:9], header[5:9])
			copy(response[data+5:data+9], header[5:9])
			out = append(out, response...)
		}
		length := int(binary.BigEndian.Uint32(header) >> 8)
		if _, err := r.Discard(headerBytes + length); err != nil {
			return
		}
		if r.Buffered() == 0 {
			if _, err := c.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
	}
}

// BenchmarkH2Session is one request of 100 at a time on an HTTP/2 connection, without the server: a system call is for 100 of them.
func BenchmarkH2Session(b *testing.B) {
	o := options(nobody)
	o.Protocol, o.Streams, o.Connections, o.Requests = H2C, 100, 1, 1<<40
	l := idleLoop(b, o)
	sockets, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	must(b, err)
	l.window.phase, l.open = measuring, 1
	c := &l.conns[0]
	c.fd, c.state, c.left = sockets[0], established, o.Requests
	s := c.session.(*h2Session)
	s.connected()
	frames := []byte{0, 0, 1, 1, 4, 0, 0, 0, 0, 0x88, 0, 0, 5, 0, 1, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'} // as in answerFrames
	responses, sent := bytes.Repeat(frames, o.Streams), make([]byte, 1<<20)
	id := uint32(1)
	respond := func() {
		for p := responses; len(p) > 0; p = p[len(frames):] {
			binary.BigEndian.PutUint32(p[5:], id)
			binary.BigEndian.PutUint32(p[15:], id)
			id += 2
		}
		s.received(responses)
		s.flush()
		syscall.Read(sockets[1], sent)
	}
	s.received([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS
	respond()
	b.ReportAllocs()
	first := id
	for b.ResetTimer(); int(id-first)/2 < b.N; {
		respond()
	}
	if n := l.counts.current.Responses[0]; n < int64(b.N) {
		b.Fatalf("%d responses of %d: %s", n, b.N, l.counts.example)
	}
}
