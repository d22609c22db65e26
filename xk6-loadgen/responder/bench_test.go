package responder

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
)

// The steady state allocates nothing for a request: 0 allocs/op in each of these.

// BenchmarkHTTP1 is one request of 10 that are sent at a time on a connection that is kept.
func BenchmarkHTTP1(b *testing.B) { benchmarkHTTP1(b, get) }

// BenchmarkHTTP1Changing is the same with a request that is never the one before.
func BenchmarkHTTP1Changing(b *testing.B) {
	benchmarkHTTP1(b, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /b HTTP/1.1\r\nCookie: b\r\nConnection: keep-alive\r\n\r\n")
}

// BenchmarkHTTP1NewConnection is one request with a connection of its own.
func BenchmarkHTTP1NewConnection(b *testing.B) {
	r := start(b, Options{Protocol: HTTP11, BodyBytes: 612})
	request, response := []byte("GET / HTTP/1.0\r\n\r\n"), make([]byte, 1000)
	at := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: r.address.(*net.TCPAddr).Port}
	want := len(answered(612, "close"))
	steady(b, func() { rawExchange(b, at, request, response, want) })
}

func benchmarkHTTP1(b *testing.B, requests ...string) {
	c := dial(b, start(b, Options{Protocol: HTTP11, BodyBytes: 612}))
	batch := strings.Repeat(strings.Join(requests, ""), 10/len(requests))
	benchmarkExchange(b, c, []byte(batch), 10*len(answered(612, "keep-alive")))
}

// BenchmarkH2C is one request of 10 that are sent at a time on an HTTP/2 connection.
func BenchmarkH2C(b *testing.B) {
	r := start(b, Options{Protocol: H2C, BodyBytes: 612})
	c := connectH2(b, r, http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
	c.sync()
	var batch bytes.Buffer
	f := http2.NewFramer(&batch, nil)
	f.WriteWindowUpdate(0, 6120)
	for id := range uint32(10) {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3 + 2*id, BlockFragment: block("GET"), EndHeaders: true, EndStream: true})
	}
	answer := newH2Answer(612)
	benchmarkExchange(b, renumbering{c.conn, batch.Bytes()}, batch.Bytes(), 10*len(answer.whole))
}

// renumbering gives the streams of a batch new identifiers after each write.
type renumbering struct {
	net.Conn
	batch []byte
}

func (r renumbering) Write(p []byte) (int, error) {
	n, err := r.Conn.Write(p)
	for at := 0; at < len(r.batch); at += frameHeaderBytes + frameLength(r.batch[at:]) {
		frame := r.batch[at:]
		if id := uint32(frame[5])<<24 | uint32(frame[6])<<16 | uint32(frame[7])<<8 | uint32(frame[8]); id != 0 {
			setStream(frame, id+20)
		}
	}
	return n, err
}

// benchmarkExchange sends a batch of 10 requests and reads its responses, until b.N are made.
func benchmarkExchange(b *testing.B, c io.ReadWriter, batch []byte, responseBytes int) {
	response := make([]byte, responseBytes)
	one := func() {
		if _, err := c.Write(batch); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, response); err != nil {
			b.Fatal(err)
		}
	}
	n := b.N
	steady(b, func() {
		if n--; n%10 == 0 {
			one()
		}
	})
}

// steady runs b.N times, after one time that makes what is made once.
func steady(b *testing.B, one func()) {
	one()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		one()
	}
}

// A benchmark does not fail by itself: this does.
func TestTheSteadyStateAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	for name, benchmark := range map[string]func(*testing.B){
		"HTTP/1": BenchmarkHTTP1, "HTTP/1, changing": BenchmarkHTTP1Changing, "HTTP/1, new connection": BenchmarkHTTP1NewConnection, "h2c": BenchmarkH2C,
	} {
		// The odd allocation of the runtime itself is spread over many requests.
		if result := testing.Benchmark(benchmark); result.N == 0 || result.AllocsPerOp() > 0 {
			t.Errorf("%s: %s", name, result.MemString())
		}
	}
}

// rawExchange is a connection, a request and its response by system calls, which allocate nothing.
func rawExchange(t testing.TB, at syscall.Sockaddr, request, buffer []byte, responseBytes int) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Connect(fd, at); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Write(fd, request); err != nil {
		t.Fatal(err)
	}
	for got := 0; ; {
		n, err := syscall.Read(fd, buffer)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if got != responseBytes {
				t.Fatalf("%d bytes of a response of %d", got, responseBytes)
			}
			return
		}
		got += n
	}
}
