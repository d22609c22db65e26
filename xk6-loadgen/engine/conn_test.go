package engine

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
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
		t.Error(s, r)
	}
	if r.ConnectMs.Max <= 0 || r.FirstByteMs.Max < r.ConnectMs.Min {
		t.Error(r)
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
		t.Error(s, r)
	}
}

func TestRefusedConnectionsUseUpRequestsAndBackOff(t *testing.T) {
	o := options("http://" + freeAddress(t) + "/")
	o.Requests = 12
	r := load(t, o)
	wantErrors(t, r, ErrConnect, 12)
	if !strings.Contains(r.ErrorExample, "refused") {
		t.Error(r)
	}
	// Three attempts a slot, the second one at once, the third one 10 ms after it at the earliest.
	if r.Seconds < 0.01 {
		t.Error(r)
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
		t.Error(r)
	}
}

func TestAServerThatDoesNotCloseAsAnnouncedIsLeft(t *testing.T) {
	t.Parallel()
	s := serve(t, stallsAfter("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
	o := options(s.url)
	o.Requests, o.Connections = 3, 1
	r := load(t, o)
	if r.Responses[0] != 3 || s.connections.Load() != 3 || r.Seconds < 0.4 {
		t.Error(s, r)
	}
}

func TestLargeRequestBodiesArriveWhole(t *testing.T) {
	x := transport{"http1.1", HTTP11, false, 1}
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // more than a socket takes at once
	s := x.serve(t, func(r asked) answer {
		if !bytes.Equal(r.body, body) {
			t.Errorf("%d bytes arrived", len(r.body))
		}
		return answer{status: 200}
	})
	o := x.options(s.url)
	o.Requests, o.Method, o.Body = 10, "PUT", body
	wantResponses(t, load(t, o), 10)
}
