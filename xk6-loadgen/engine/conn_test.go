package engine

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestReconnectsWhenTheServerClosesAfterAnnouncingIt(t *testing.T) {
	// As nginx does after keepalive_requests.
	s := serve(t, func(s *testServer, c net.Conn) {
		r := bufio.NewReader(c)
		for range 9 {
			if !s.readRequest(r) {
				return
			}
			io.WriteString(c, ok)
		}
		if s.readRequest(r) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
		}
	})
	o := options(s.url)
	o.Requests = 1000
	r := load(t, o)
	if r.Responses[0] != 1000 || s.connections.Load() < 100 || s.connections.Load() > 104 {
		t.Errorf("responses %v over %d connections, errors: %s", r.Responses, s.connections.Load(), r.ErrorExample)
	}
	if r.ConnectMs.Max <= 0 || r.FirstByteMs.Max < r.ConnectMs.Min {
		t.Errorf("connect %+v, first byte %+v", r.ConnectMs, r.FirstByteMs)
	}
}

func TestAConnectionClosedWithTheResponseIsNotUsedAgain(t *testing.T) {
	// The response does not say that the connection closes, but the FIN comes in its last segment.
	s := serve(t, func(s *testServer, c net.Conn) {
		cork(t, c)
		once(ok)(s, c)
	})
	o := options(s.url)
	o.Requests = 40
	if r := load(t, o); r.Responses[0] != 40 || s.connections.Load() != 40 {
		t.Errorf("responses %v over %d connections, errors %v: %s", r.Responses, s.connections.Load(), r.Errors, r.ErrorExample)
	}
}

func TestRefusedConnectionsUseUpRequestsAndBackOff(t *testing.T) {
	o := options("http://" + freeAddress(t) + "/")
	o.Requests = 12
	r := load(t, o)
	wantErrors(t, r, ErrConnect, 12)
	if !strings.Contains(r.ErrorExample, "refused") {
		t.Errorf("example %q", r.ErrorExample)
	}
	// Three attempts a slot, the second one at once, the third one 10 ms after it at the earliest.
	if r.Seconds < 0.01 {
		t.Errorf("no pause: all over in %f s", r.Seconds)
	}
}

func TestComesBackWhenTheServerDoes(t *testing.T) {
	first := serve(t, always(ok))
	address := first.listener.Addr().String()
	o := options(first.url)
	o.Duration = 30 * time.Second
	ctx, cancel := context.WithCancel(context.Background())
	var second atomic.Pointer[testServer]
	go func() {
		defer cancel()
		waitFor(t, func() bool { return first.requests.Load() > 150 })
		first.stop()
		time.Sleep(100 * time.Millisecond) // the time the server is away
		second.Store(serveAt(t, address, always(ok)))
		waitFor(t, func() bool { return second.Load().requests.Load() > 150 })
	}()
	r := loadWithin(t, ctx, o)
	if s := second.Load(); s == nil || s.requests.Load() < 150 {
		t.Fatal("the second server got no requests")
	}
	if r.Errors[ErrConnect] == 0 || r.Responses[0] < 200 {
		t.Errorf("errors %v, responses %v", r.Errors, r.Responses)
	}
}

func TestAServerThatDoesNotCloseAsAnnouncedIsLeft(t *testing.T) {
	t.Parallel()
	s := serve(t, stallsAfter("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
	o := options(s.url)
	o.Requests, o.Connections = 3, 1
	r := load(t, o)
	if r.Responses[0] != 3 || s.connections.Load() != 3 || r.Seconds < 0.4 {
		t.Errorf("responses %v over %d connections in %f s", r.Responses, s.connections.Load(), r.Seconds)
	}
}

func TestAResetIsNotTheEndOfABody(t *testing.T) {
	// With many connections data and reset are often reported together.
	o := options(serve(t, resetsAfter("HTTP/1.1 200 OK\r\n\r\nhalf of it")).url)
	o.Requests, o.Connections = 200, 50
	r := load(t, o)
	wantErrors(t, r, ErrRead, 200)
}

func TestLargeRequestBodiesArriveWhole(t *testing.T) {
	var bytes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		bytes.Add(n)
	}))
	defer server.Close()
	o := options(server.URL + "/up")
	o.Requests, o.Method, o.Body = 10, "PUT", make([]byte, 8<<20)
	r := load(t, o)
	if r.Responses[0] != 10 || bytes.Load() != 80<<20 || r.SentBytes < 80<<20 {
		t.Errorf("responses %v, %d bytes arrived, %d sent: %s", r.Responses, bytes.Load(), r.SentBytes, r.ErrorExample)
	}
}
