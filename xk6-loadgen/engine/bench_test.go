package engine

import (
	"bufio"
	"context"
	"crypto"
	"encoding/binary"
	"net"
	"runtime"
	"testing"

	"golang.org/x/net/http2"

	"bakeoff.invalid/xk6-loadgen/responder"
)

// The steady state of the engine allocates nothing for a request: 0 allocs/op in each of these.

// BenchmarkKeepAlive is one request over HTTP/1.1 on a connection that is kept.
func BenchmarkKeepAlive(b *testing.B) {
	benchmark(b, always(ok), func(o *Options) {})
}

// BenchmarkLongBody is one response of 525,304 bytes, of which the responder's half is in the time.
func BenchmarkLongBody(b *testing.B) {
	r, err := responder.Start(responder.Options{Protocol: responder.HTTP11, BodyBytes: 525_304, Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.SetBytes(525_304)
	benchmarkURL(b, "http://"+r.Address()+"/", func(o *Options) { o.Connections = 10 })
}

// BenchmarkNewConnection is one request with a connection of its own, as ab makes it. Go's own net package allocates for each
// connection; the responder does not.
func BenchmarkNewConnection(b *testing.B) {
	r := respond(b)
	benchmarkURL(b, "http://"+r.Address()+"/", func(o *Options) { o.Protocol, o.KeepAlive = HTTP10, false })
}

// BenchmarkH2C is one request of 10 at a time on an HTTP/2 connection.
func BenchmarkH2C(b *testing.B) {
	benchmark(b, answerFrames, func(o *Options) { o.Protocol, o.Streams = H2C, 10 })
}

// BenchmarkRate is one request of the open model, at a rate that is not reached.
func BenchmarkRate(b *testing.B) {
	benchmark(b, always(ok), func(o *Options) { o.Rate = maxRate })
}

func benchmark(b *testing.B, handler func(*testServer, net.Conn), change func(*Options)) {
	benchmarkURL(b, serve(b, handler).url, change)
}

// respond starts a server that allocates nothing for a connection.
func respond(t testing.TB) *responder.Responder {
	t.Helper()
	r, err := responder.Start(responder.Options{Protocol: responder.HTTP11, BodyBytes: 612, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func benchmarkURL(b *testing.B, url string, change func(*Options)) {
	// Run may raise it, and the testing package minds.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	o := options(url)
	o.Connections, o.Requests = 100, int64(b.N)
	change(&o)
	b.ReportAllocs()
	load(b, context.Background(), o)
}

// answerFrames is an HTTP/2 server that allocates nothing for a request: every HEADERS frame gets the same response.
func answerFrames(_ *testServer, c net.Conn) {
	r := bufio.NewReaderSize(c, 64<<10)
	if _, err := r.Discard(len(http2.ClientPreface)); err != nil {
		return
	}
	settings := appendFrameHeader(nil, 0, http2.FrameSettings, 0, 0)
	// :status 200 of the static table, then 5 bytes of body.
	response := appendFrameHeader(nil, 1, http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0)
	response = append(response, 0x88)
	data := len(response)
	response = append(appendFrameHeader(response, 5, http2.FrameData, http2.FlagDataEndStream, 0), "hello"...)
	out := settings
	for {
		header, err := r.Peek(frameHeaderBytes)
		if err != nil {
			return
		}
		if http2.FrameType(header[3]) == http2.FrameHeaders {
			copy(response[5:9], header[5:9])
			copy(response[data+5:data+9], header[5:9])
			out = append(out, response...)
		}
		length := int(binary.BigEndian.Uint32(header) >> 8)
		if _, err := r.Discard(frameHeaderBytes + length); err != nil {
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

// BenchmarkRecord is one record of 1 kB, sealed and opened.
func BenchmarkRecord(b *testing.B) {
	secret := make([]byte, crypto.SHA256.Size())
	s := suite{hash: crypto.SHA256, keyBytes: 16}
	in, err := newHalf13(s, secret)
	if err != nil {
		b.Fatal(err)
	}
	out, _ := newHalf13(s, secret)
	content, record := make([]byte, 1000), []byte(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		record = out.seal(record[:0], recordApplicationData, content)
		if _, _, err := in.open(record); err != nil {
			b.Fatal(err)
		}
	}
}
