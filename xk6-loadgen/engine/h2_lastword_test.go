package engine

import (
	"context"
	"crypto/tls"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func TestAConnectionErrorIsToldToTheServer(t *testing.T) {
	// A server that is still writing may miss it: what it has sent is not read, so that its connection is reset.
	codes := map[string]http2.ErrCode{
		"HPACK: index 0":                        http2.ErrCodeCompression,
		"a length of 16 MiB":                    http2.ErrCodeFrameSize,
		"HEADERS on stream 0":                   http2.ErrCodeProtocol,
		"HEADERS on an idle stream":             http2.ErrCodeProtocol,
		"HEADERS cut off within the priority":   http2.ErrCodeFrameSize,
		"DATA padded beyond its end":            http2.ErrCodeProtocol,
		"RST_STREAM of 3 bytes":                 http2.ErrCodeFrameSize,
		"RST_STREAM on stream 0":                http2.ErrCodeProtocol,
		"SETTINGS of 5 bytes":                   http2.ErrCodeFrameSize,
		"SETTINGS on a stream":                  http2.ErrCodeProtocol,
		"SETTINGS with a window of 2^31":        http2.ErrCodeFlowControl,
		"SETTINGS with frames of 16383":         http2.ErrCodeProtocol,
		"PING of 7 bytes":                       http2.ErrCodeFrameSize,
		"PING on a stream":                      http2.ErrCodeProtocol,
		"PRIORITY of 4 bytes":                   http2.ErrCodeFrameSize,
		"GOAWAY of 7 bytes":                     http2.ErrCodeFrameSize,
		"a push":                                http2.ErrCodeProtocol,
		"WINDOW_UPDATE of nothing":              http2.ErrCodeProtocol,
		"WINDOW_UPDATE beyond 2^31-1":           http2.ErrCodeFlowControl,
		"a stream's window beyond, by SETTINGS": http2.ErrCodeFlowControl,
		"CONTINUATION without HEADERS":          http2.ErrCodeProtocol,
	}
	for name, want := range codes {
		for transport, config := range map[string]*tls.Config{"h2c": nil, "h2": serverTLS(ecdsaKey)} {
			for _, keepAlive := range []bool{true, false} {
				t.Run(name+", "+transport, func(t *testing.T) {
					t.Parallel()
					var mu sync.Mutex
					var told []http2.ErrCode
					s := serveH2TLS(t, config, func(p *h2peer) {
						p.heard = func(code http2.ErrCode) { mu.Lock(); told = append(told, code); mu.Unlock() }
						answering(illegalAnswers[name])(p)
					})
					o := h2Options(s)
					o.Connections, o.Streams, o.Requests, o.KeepAlive = 3, 1, 3, keepAlive
					wantErrors(t, load(t, context.Background(), o), ErrProtocol, 3)
					heard := func() []http2.ErrCode { mu.Lock(); defer mu.Unlock(); return told }
					waitFor(t, func() bool { return len(heard()) == 3 })
					for _, code := range heard() {
						if code != want {
							t.Errorf("the server was told %v, want %v", code, want)
						}
					}
				})
			}
		}
	}
}

func TestAServerThatRefusesEveryFirstStreamIsNotAskedAtFullSpeed(t *testing.T) {
	t.Parallel()
	s := serveH2(t, func(p *h2peer) {
		r := p.next()
		p.settings()
		p.rst(r, http2.ErrCodeRefusedStream)
	})
	o := h2Options(s)
	o.Connections, o.Streams, o.KeepAlive = 1, 1, false
	o.Requests, o.Duration, o.Timeout = 0, 600*time.Millisecond, 10*time.Second
	r := load(t, context.Background(), o)
	// At once, then after 0, 10, 20, 40, 80, 160 and 320 ms.
	if n := s.connections.Load(); n < 2 || n > 8 {
		t.Errorf("%d connections in %f s", n, r.Seconds)
	}
	if r.Requests != 0 || r.InFlight != 1 {
		t.Errorf("%d requests, %d in flight: %s", r.Requests, r.InFlight, r.ErrorExample)
	}
	// A wait for the next connection counts towards the time-out.
	o.Requests, o.Duration, o.Timeout = 2, 0, 100*time.Millisecond
	wantErrors(t, load(t, context.Background(), o), ErrTimeout, 2)
}
