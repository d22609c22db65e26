package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestCountModeMakesExactlyThatManyRequests(t *testing.T) {
	for _, test := range []struct {
		requests             int64
		connections, threads int
		keepAlive            bool
	}{{1, 1, 1, true}, {1, 4, 2, true}, {1000, 1, 1, true}, {10_007, 100, 1, true}, {10_007, 13, 3, true}, {5, 100, 2, true}, {2003, 10, 2, false}} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			s := serve(t, always(ok))
			o := options(s.url)
			o.Requests, o.Connections, o.Threads, o.KeepAlive = test.requests, test.connections, test.threads, test.keepAlive
			r := load(t, context.Background(), o)
			if got := s.requests.Load(); got != test.requests {
				t.Errorf("the server saw %d requests", got)
			}
			if r.Responses[0] != test.requests || r.InFlight != 0 || r.WarmupRequests != 0 {
				t.Errorf("responses %v, in flight %d, warm-up %d", r.Responses, r.InFlight, r.WarmupRequests)
			}
			if r.BodyBytes != 5*test.requests || r.HeaderBytes != 38*test.requests || r.ReceivedBytes != 43*test.requests {
				t.Errorf("body %d, headers %d, received %d bytes", r.BodyBytes, r.HeaderBytes, r.ReceivedBytes)
			}
			sent := int64(len(encodeRequest(o, mustParse(t, s.url))))
			if r.SentBytes != sent*test.requests {
				t.Errorf("sent %d bytes, want %d", r.SentBytes, sent*test.requests)
			}
			if !test.keepAlive && s.connections.Load() != test.requests {
				t.Errorf("%d connections for %d requests", s.connections.Load(), test.requests)
			}
		})
	}
}

func TestDurationModeCountsWhatTheServerAnswered(t *testing.T) {
	for _, warmup := range []time.Duration{0, 200 * time.Millisecond} {
		s := serve(t, always(ok))
		o := options(s.url)
		o.Duration, o.Warmup, o.Connections, o.Threads = 1300*time.Millisecond, warmup, 10, 2
		r := load(t, context.Background(), o)
		// The server reads every request before the engine's sockets are closed, or never.
		if total := r.Requests + r.WarmupRequests + r.InFlight; s.requests.Load() > total || s.requests.Load() < total-r.InFlight {
			t.Errorf("the server saw %d, the engine %d + %d + %d", s.requests.Load(), r.Requests, r.WarmupRequests, r.InFlight)
		}
		if r.Requests == 0 || (warmup > 0) != (r.WarmupRequests > 0) || r.ErrorTotal() != 0 {
			t.Errorf("requests %d, warm-up %d, errors %d (%s)", r.Requests, r.WarmupRequests, r.ErrorTotal(), r.ErrorExample)
		}
		if r.Seconds < 1.3 || r.EndedAt.Sub(r.StartedAt).Seconds()-r.Seconds > 1e-6 {
			t.Errorf("%f s from %s to %s", r.Seconds, r.StartedAt, r.EndedAt)
		}
		if len(r.seconds) != 2 {
			t.Errorf("%d seconds handed out, want 2", len(r.seconds))
		}
		if r.CPUSeconds <= 0 {
			t.Errorf("CPU seconds %f", r.CPUSeconds)
		}
	}
}

func TestWarmupBeforeACountIsDrained(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Requests, o.Warmup, o.Connections, o.Threads = 5000, 100*time.Millisecond, 20, 2
	r := load(t, context.Background(), o)
	if got := s.requests.Load(); got != r.Requests+r.WarmupRequests || r.WarmupRequests == 0 {
		t.Errorf("the server saw %d, the engine %d + %d", got, r.Requests, r.WarmupRequests)
	}
}

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
	r := load(t, context.Background(), o)
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
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		raw.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CORK, 1) })
		once(ok)(s, c)
	})
	o := options(s.url)
	o.Requests = 40
	if r := load(t, context.Background(), o); r.Responses[0] != 40 || s.connections.Load() != 40 {
		t.Errorf("responses %v over %d connections, errors %v: %s", r.Responses, s.connections.Load(), r.Errors, r.ErrorExample)
	}
}

func TestBodiesOfEveryFraming(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		answer func(*testServer, net.Conn)
		method string
		body   int64
		class  int
	}{
		"length beyond the buffer": {always("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + big), "GET", 1 << 20, 0},
		"chunked":                  {always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + big + "\r\n0\r\n\r\n"), "GET", 1 << 20, 0},
		"until close":              {once("HTTP/1.1 200 OK\r\n\r\n" + big), "GET", 1 << 20, 0},
		"HTTP/1.0 until close":     {once("HTTP/1.0 200 OK\r\n\r\nhello"), "GET", 5, 0},
		"204":                      {always("HTTP/1.1 204 No Content\r\n\r\n"), "GET", 0, 0},
		"304":                      {always("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), "GET", 0, 1},
		"404":                      {always("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"), "GET", 2, 2},
		"503":                      {once("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"), "GET", 2, 3},
		"HEAD":                     {always("HTTP/1.1 200 OK\r\nContent-Length: 612\r\n\r\n"), "HEAD", 0, 0},
		"1xx first":                {always("HTTP/1.1 103 Early Hints\r\n\r\n" + ok), "GET", 5, 0},
		"slow bytes": {func(s *testServer, c net.Conn) {
			for r := bufio.NewReader(c); s.readRequest(r); {
				for i := range len(ok) {
					if _, err := c.Write([]byte{ok[i]}); err != nil {
						return
					}
				}
			}
		}, "GET", 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.answer)
			o := options(s.url)
			o.Requests, o.Method = 40, test.method
			r := load(t, context.Background(), o)
			if r.Responses[test.class] != 40 || r.BodyBytes != 40*test.body {
				t.Errorf("responses %v, body %d bytes, errors %v: %s", r.Responses, r.BodyBytes, r.Errors, r.ErrorExample)
			}
		})
	}
}

func TestErrorsByKind(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*testServer, net.Conn)
		kind   ErrorKind
	}{
		"closes at once":         {func(*testServer, net.Conn) {}, ErrRead},
		"closes after request":   {once(""), ErrRead},
		"closes within the head": {once("HTTP/1.1 200 OK\r\nContent-"), ErrRead},
		"closes within the body": {once("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"), ErrRead},
		"closes within a chunk":  {once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhello"), ErrRead},
		"resets": {func(s *testServer, c net.Conn) {
			s.readRequest(bufio.NewReader(c))
			c.(*net.TCPConn).SetLinger(0)
		}, ErrRead},
		"not HTTP":            {once("220 mail.example ESMTP\r\n"), ErrProtocol},
		"more than it said":   {once("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello"), ErrProtocol},
		"endless headers":     {once("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20_000)), ErrProtocol},
		"asks for an upgrade": {once("HTTP/1.1 101 Switching Protocols\r\n\r\n"), ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.answer)
			o := options(s.url)
			o.Requests = 12
			r := load(t, context.Background(), o)
			if r.ErrorExample == "" {
				t.Error("no example of the error")
			}
			if name == "closes at once" || name == "resets" {
				// The reset may come before the request is out.
				if r.Errors[ErrRead]+r.Errors[ErrWrite] != 12 {
					t.Errorf("errors %v", r.Errors)
				}
				return
			}
			wantErrors(t, r, test.kind, 12)
		})
	}
}

func TestTimeoutsEndAttempts(t *testing.T) {
	stuck := func(s *testServer, c net.Conn) {
		r := bufio.NewReader(c)
		for s.readRequest(r) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		}
	}
	s := serve(t, stuck)
	o := options(s.url)
	o.Requests, o.Timeout = 4, 50*time.Millisecond
	r := load(t, context.Background(), o)
	wantErrors(t, r, ErrTimeout, 4)
	if r.Seconds < 0.05 || r.LatencyMs.Max != 0 {
		t.Errorf("%f s, latency of errors %f", r.Seconds, r.LatencyMs.Max)
	}
}

func TestRefusedConnectionsUseUpRequestsAndBackOff(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String() + "/"
	listener.Close()
	o := options(url)
	o.Requests = 12
	r := load(t, context.Background(), o)
	wantErrors(t, r, ErrConnect, 12)
	if !strings.Contains(r.ErrorExample, "refused") {
		t.Errorf("example %q", r.ErrorExample)
	}
	// Three attempts a slot, with a pause of 10 and of 20 ms between them.
	if r.Seconds < 0.03 {
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
		waitFor(t, func() bool { return first.requests.Load() > 100 })
		first.stop()
		time.Sleep(100 * time.Millisecond) // the time the server is away
		second.Store(serveAt(t, address, always(ok)))
		waitFor(t, func() bool { return second.Load().requests.Load() > 100 })
	}()
	r := load(t, ctx, o)
	if s := second.Load(); s == nil || s.requests.Load() < 100 {
		t.Fatal("the second server got no requests")
	}
	if r.Errors[ErrConnect] == 0 || r.Responses[0] < 200 {
		t.Errorf("errors %v, responses %v", r.Errors, r.Responses)
	}
}

func TestAnswerBeforeTheWholeRequestIsAResponse(t *testing.T) {
	s := serve(t, func(s *testServer, c net.Conn) {
		s.readRequest(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, io.LimitReader(c, 1<<20))
	})
	o := options(s.url)
	o.Requests, o.Method, o.Body = 8, "POST", make([]byte, 64<<20)
	r := load(t, context.Background(), o)
	if r.Responses[2] != 8 {
		t.Errorf("responses %v, errors %v: %s", r.Responses, r.Errors, r.ErrorExample)
	}
}

func TestLargeRequestBodiesArriveWhole(t *testing.T) {
	var bytes atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		bytes.Add(n)
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	defer server.Close()
	o := options("http://" + listener.Addr().String() + "/up")
	o.Requests, o.Method, o.Body = 10, "PUT", make([]byte, 8<<20)
	r := load(t, context.Background(), o)
	if r.Responses[0] != 10 || bytes.Load() != 80<<20 || r.SentBytes < 80<<20 {
		t.Errorf("responses %v, %d bytes arrived, %d sent: %s", r.Responses, bytes.Load(), r.SentBytes, r.ErrorExample)
	}
}

func TestRequestsAsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"1.1":           {func(*Options) {}, "GET /a%20b?c=d HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		"1.1, close":    {func(o *Options) { o.KeepAlive = false }, "GET /a%20b?c=d HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"},
		"1.0":           {func(o *Options) { o.Protocol = HTTP10; o.KeepAlive = false }, "GET /a%20b?c=d HTTP/1.0\r\nHost: HOST\r\n\r\n"},
		"1.0, keep":     {func(o *Options) { o.Protocol = HTTP10 }, "GET /a%20b?c=d HTTP/1.0\r\nHost: HOST\r\nConnection: keep-alive\r\n\r\n"},
		"own host":      {func(o *Options) { o.Headers = []Header{{"host", "x.example"}} }, "GET /a%20b?c=d HTTP/1.1\r\nhost: x.example\r\n\r\n"},
		"headers, body": {func(o *Options) { o.Method, o.Headers, o.Body = "POST", []Header{{"A", "b"}}, []byte("hi") }, "POST /a%20b?c=d HTTP/1.1\r\nHost: HOST\r\nA: b\r\nContent-Length: 2\r\n\r\nhi"},
		"empty POST":    {func(o *Options) { o.Method = "POST" }, "POST /a%20b?c=d HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			s := serve(t, func(_ *testServer, c net.Conn) {
				buffer := make([]byte, len(test.want)+20)
				c.SetReadDeadline(time.Now().Add(5 * time.Second))
				// One write of the engine is one segment here: nothing follows it before the answer.
				n, _ := c.Read(buffer)
				got <- string(buffer[:n])
				io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			})
			o := options(s.url + "a%20b?c=d")
			o.Requests = 1
			test.change(&o)
			load(t, context.Background(), o)
			host := s.listener.Addr().String()
			if request := strings.ReplaceAll(<-got, host, "HOST"); request != test.want {
				t.Errorf("got  %q\nwant %q", request, test.want)
			}
		})
	}
}

func TestURLsAreAskedInTurn(t *testing.T) {
	var a, b atomic.Int64
	s := serve(t, func(_ *testServer, c net.Conn) {
		for r := bufio.NewReader(c); ; {
			request, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if request.URL.Path == "/a" {
				a.Add(1)
			} else {
				b.Add(1)
			}
			io.WriteString(c, ok)
		}
	})
	o := options(s.url)
	o.URLs, o.Requests = []string{s.url + "a", s.url + "b"}, 100
	load(t, context.Background(), o)
	if a.Load() < 48 || a.Load() > 52 || a.Load()+b.Load() != 100 {
		t.Errorf("%d of a, %d of b", a.Load(), b.Load())
	}
}

func TestIPv6AndHostNames(t *testing.T) {
	for _, host := range []string{"[::1]", "localhost"} {
		listenOn := host
		if host == "localhost" {
			listenOn = "127.0.0.1"
			if addrs, err := net.LookupHost("localhost"); err != nil || addrs[0] != "127.0.0.1" {
				listenOn = "[::1]"
			}
		}
		listener, err := net.Listen("tcp", listenOn+":0")
		if err != nil {
			t.Logf("%s: skipped, %v", host, err)
			continue
		}
		listener.Close()
		s := serveAt(t, listener.Addr().String(), always(ok))
		o := options(fmt.Sprintf("http://%s:%d/", host, s.listener.Addr().(*net.TCPAddr).Port))
		o.Requests = 10
		if r := load(t, context.Background(), o); r.Responses[0] != 10 {
			t.Errorf("%s: %v %s", host, r.Responses, r.ErrorExample)
		}
	}
}

func TestStopsWithin100msAndKeepsItsCounts(t *testing.T) {
	for name, answer := range map[string]func(*testServer, net.Conn){
		"busy":   always(ok),
		"silent": func(s *testServer, c net.Conn) { s.readRequest(bufio.NewReader(c)); io.Copy(io.Discard, c) },
	} {
		t.Run(name, func(t *testing.T) {
			// Other work on the machine can only delay it: the quickest of a few runs tells.
			quickest := time.Hour
			for range 5 {
				s := serve(t, answer)
				o := options(s.url)
				o.Duration, o.Threads = time.Minute, 2
				ctx, cancel := context.WithCancel(context.Background())
				var cancelled time.Time
				go func() {
					waitFor(t, func() bool { return s.requests.Load() >= 4 })
					cancelled = time.Now()
					cancel()
				}()
				r := load(t, ctx, o)
				quickest = min(quickest, time.Since(cancelled))
				if name == "silent" && (r.InFlight != 4 || r.Requests != 0) {
					t.Errorf("in flight %d, requests %d", r.InFlight, r.Requests)
				}
			}
			if quickest > 100*time.Millisecond {
				t.Errorf("ended %s after it was told to", quickest)
			}
		})
	}
}

func TestStopDuringWarmupLeavesAnEmptyWindow(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Duration, o.Warmup = time.Second, time.Minute
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		waitFor(t, func() bool { return s.requests.Load() > 100 })
		cancel()
	}()
	r := load(t, ctx, o)
	if r.Requests != 0 || r.InFlight != 0 || r.WarmupRequests < 100 || r.RPS != 0 {
		t.Errorf("requests %d, in flight %d, warm-up %d", r.Requests, r.InFlight, r.WarmupRequests)
	}
}

func TestAStallShowsAsLatency(t *testing.T) {
	const stall = 120 * time.Millisecond
	s := serve(t, func(s *testServer, c net.Conn) {
		r := bufio.NewReader(c)
		for s.readRequest(r) {
			if s.requests.Load() == 50 {
				time.Sleep(stall)
			}
			io.WriteString(c, ok)
		}
	})
	o := options(s.url)
	o.Connections, o.Requests = 1, 100
	r := load(t, context.Background(), o)
	if r.LatencyMs.Max < 120 || r.LatencyMs.P50 > 60 || r.LatencyMs.P999 < 119.9 {
		t.Errorf("max %f, p50 %f, p999 %f ms", r.LatencyMs.Max, r.LatencyMs.P50, r.LatencyMs.P999)
	}
}

func TestPerConnectionAndPerThreadRates(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Connections, o.Duration = 10, 550*time.Millisecond
	r := load(t, context.Background(), o)
	if sum := r.PerConnectionRPS.Mean * 10; sum < 0.999*r.RPS || sum > 1.001*r.RPS {
		t.Errorf("connections make %f requests/s, all together %f", sum, r.RPS)
	}
	if thread := r.PerThreadRPS; thread.Min > r.RPS || thread.Max < r.RPS/2 || thread.Mean < thread.Min || thread.Mean > thread.Max {
		t.Errorf("the thread makes %+v requests/s, all together %f", thread, r.RPS)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"url: give the address":               func(o *Options) { o.URLs = nil },
		"must start with http://":             func(o *Options) { o.URLs = []string{"127.0.0.1:80"} },
		"TLS is not supported":                func(o *Options) { o.URLs = []string{"https://127.0.0.1/"} },
		"names no host":                       func(o *Options) { o.URLs = []string{"http:///x"} },
		"a port is 1 to 65535":                func(o *Options) { o.URLs = []string{"http://127.0.0.1:0/"} },
		"carries a user name":                 func(o *Options) { o.URLs = []string{"http://u:p@127.0.0.1/"} },
		"all must have one host":              func(o *Options) { o.URLs = append(o.URLs, "http://127.0.0.1:1/") },
		"protocol: \"h3\"":                    func(o *Options) { o.Protocol = "h3" },
		"threads: must be":                    func(o *Options) { o.Threads = 0 },
		"connections: must be":                func(o *Options) { o.Connections = 0 },
		"too few for 5 threads":               func(o *Options) { o.Threads = 5 },
		"need a file limit":                   func(o *Options) { o.Connections = 900_000 },
		"give one of the two":                 func(o *Options) { o.Duration = time.Second },
		"must not be negative":                func(o *Options) { o.Warmup = -1 },
		"timeout: must be greater":            func(o *Options) { o.Timeout = 0 },
		"is not an HTTP method":               func(o *Options) { o.Method = "GET /" },
		"is not a header name":                func(o *Options) { o.Headers = []Header{{"a b", ""}} },
		"has a line break":                    func(o *Options) { o.Headers = []Header{{"a", "b\r\nc: d"}} },
		"Content-Length is set by the engine": func(o *Options) { o.Headers = []Header{{"Content-Length", "1"}} },
		"no.such.host.invalid":                func(o *Options) { o.URLs = []string{"http://no.such.host.invalid/"} },
	} {
		o := options("http://127.0.0.1:9/")
		o.Requests = 1
		change(&o)
		if _, err := Run(context.Background(), o, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestNothingIsAllocatedPerRequest(t *testing.T) {
	s := serve(t, always(ok))
	o := options(s.url)
	o.Connections, o.Warmup, o.Requests = 10, 50*time.Millisecond, 20_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	load(t, context.Background(), o)
	runtime.ReadMemStats(&after)
	// Set-up, the test server's connections and the result take a few hundred; one per request would be 20,000.
	if n := after.Mallocs - before.Mallocs; n > 4000 {
		t.Errorf("%d allocations for 20,000 requests", n)
	}
}

// BenchmarkKeepAlive is one request on one of 100 connections. Its allocations per operation have to be 0.
func BenchmarkKeepAlive(b *testing.B) { benchmark(b, true) }

// BenchmarkNewConnection is one request with a connection of its own. The allocations are the test server's.
func BenchmarkNewConnection(b *testing.B) { benchmark(b, false) }

func benchmark(b *testing.B, keepAlive bool) {
	s := serve(b, always(ok))
	o := options(s.url)
	o.Connections, o.KeepAlive, o.Requests = 100, keepAlive, int64(b.N)
	b.ReportAllocs()
	load(b, context.Background(), o)
}

// waitFor returns when the condition holds; it fails the test when that takes 20 s.
func waitFor(t *testing.T, condition func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("waited 20 s in vain")
			return
		}
	}
}
