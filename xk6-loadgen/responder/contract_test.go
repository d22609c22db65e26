package responder

import (
	"context"
	"fmt"
	"testing"
	"time"

	"bakeoff.invalid/xk6-loadgen/engine"
)

// way is one way to load a responder.
type way struct {
	name     string
	protocol engine.Protocol
	isTLS    bool
	streams  int
}

var ways = []way{
	{"http1.0", engine.HTTP10, false, 1},
	{"http1.0 over TLS", engine.HTTP10, true, 1},
	{"http1.1", engine.HTTP11, false, 1},
	{"http1.1 over TLS", engine.HTTP11, true, 1},
	{"h2c", engine.H2C, false, 1},
	{"h2c, 50 streams", engine.H2C, false, 50},
	{"h2", engine.H2, true, 1},
	{"h2, 50 streams", engine.H2, true, 50},
}

func (w way) start(t testing.TB, bodyBytes int64, threads int) *Responder {
	t.Helper()
	o := Options{Protocol: Protocol(w.protocol), BodyBytes: bodyBytes, Threads: threads}
	if w.protocol == engine.HTTP10 {
		o.Protocol = HTTP11
	}
	if w.isTLS {
		o.Certificate = certificateFile(t)
	}
	return start(t, o)
}

func (w way) options(r *Responder) engine.Options {
	scheme := "http"
	if w.isTLS {
		scheme = "https"
	}
	return engine.Options{
		URLs: []string{fmt.Sprintf("%s://%s/", scheme, r.Address())}, Protocol: w.protocol, Connections: 4, Streams: w.streams, Threads: 1,
		KeepAlive: true, Timeout: 30 * time.Second, Method: "GET", Requests: 1000, TLS: engine.TLSOptions{InsecureSkipVerify: w.isTLS},
	}
}

// wantAnswers loads the responder: each request has to be answered with 200 and a body of this length.
func wantAnswers(t testing.TB, o engine.Options, bodyBytes int64) engine.Result {
	t.Helper()
	result, err := engine.Run(context.Background(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Requests != o.Requests || result.Responses[0] != o.Requests || result.ErrorTotal() != 0 {
		t.Errorf("%d of %d requests answered, %d with 2xx, %d errors (%s)", result.Requests, o.Requests, result.Responses[0], result.ErrorTotal(), result.ErrorExample)
	}
	if result.BodyBytes != o.Requests*bodyBytes {
		t.Errorf("%d bytes of bodies, want %d × %d", result.BodyBytes, o.Requests, bodyBytes)
	}
	return result
}

func TestEveryRequestIsAnswered(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			for _, bodyBytes := range []int64{0, 1, 612, maxFrameBytes, maxFrameBytes + 1, 100_000, blockBytes + 7} {
				r := w.start(t, bodyBytes, 1)
				o := w.options(r)
				if bodyBytes > 1000 {
					o.Requests = 200
				}
				wantAnswers(t, o, bodyBytes)
				r.Close()
			}
		})
	}
}

func TestEachRequestOnAConnectionOfItsOwn(t *testing.T) {
	for _, w := range ways {
		if w.streams > 1 {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			for _, bodyBytes := range []int64{0, 612, 100_000} {
				o := w.options(w.start(t, bodyBytes, 1))
				o.KeepAlive, o.Requests = false, 100
				wantAnswers(t, o, bodyBytes)
			}
		})
	}
}

func TestManyConnectionsOnManyThreads(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			for _, keepAlive := range []bool{true, false} {
				if !keepAlive && w.streams > 1 {
					continue
				}
				o := w.options(w.start(t, 612, 3))
				o.Connections, o.Threads, o.KeepAlive, o.Requests = 100, 2, keepAlive, 2000
				if !keepAlive {
					o.Requests = 300
				}
				wantAnswers(t, o, 612)
			}
		})
	}
}

func TestMethodsHeadersAndBodies(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			o := w.options(w.start(t, 612, 1))
			o.Requests = 40
			o.Headers = []engine.Header{{Name: "User-Agent", Value: "a client with a name"}, {Name: "Cookie", Value: "a=1; b=2"}}
			o.URLs = append(o.URLs, o.URLs[0]+"other/path?with=a&query", o.URLs[0]+"third")
			wantAnswers(t, o, 612)
			o.Method = "HEAD"
			wantAnswers(t, o, 0)
			o.Method = "POST"
			for _, size := range []int{0, 1, 1000, 300_000} {
				o.Body = make([]byte, size)
				sent := wantAnswers(t, o, 612).SentBytes
				if least := o.Requests * int64(size); sent < least {
					t.Errorf("%d bytes sent, want at least %d", sent, least)
				}
			}
		})
	}
}

// The windows of HTTP/2 are 2 GiB: this is more, so that they have to be given back.
func TestBodiesOfManyGigabytesInAll(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a few seconds")
	}
	w := way{"h2c", engine.H2C, false, 4}
	o := w.options(w.start(t, 0, 1))
	o.Connections, o.Requests, o.Method, o.Body = 1, 160, "POST", make([]byte, 16<<20)
	wantAnswers(t, o, 0)
}
