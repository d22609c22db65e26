package engine

import (
	"context"
	"io"
	"math"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

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
				c.SetReadDeadline(time.Now().Add(patient))
				// One write of the engine is one segment here: nothing follows it before the answer.
				n, _ := c.Read(buffer)
				got <- string(buffer[:n])
				io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			})
			o := options(s.url + "a%20b?c=d")
			o.Requests = 1
			test.change(&o)
			load(t, o)
			host := s.listener.Addr().String()
			if request := strings.ReplaceAll(<-got, host, "HOST"); request != test.want {
				t.Errorf("got  %q\nwant %q", request, test.want)
			}
		})
	}
}

func TestAHostHasAName(t *testing.T) {
	o := options(strings.Replace(serve(t, always(ok)).url, "127.0.0.1", "localhost", 1))
	o.Requests = 10
	wantResponses(t, load(t, o), 10)
}

func TestHostHeaderHasNoZone(t *testing.T) {
	for host, want := range map[string]string{"[fe80::1%eth0]:80": "[fe80::1]:80", "[::1]": "[::1]", "a.example:80": "a.example:80"} {
		if got := withoutZone(host); got != want {
			t.Errorf("%s became %s, want %s", host, got, want)
		}
	}
}

func TestFileLimitIsNamed(t *testing.T) {
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	lower := syscall.Rlimit{Cur: 500, Max: before.Max}
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lower))
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)
	o := options(nobody)
	o.Requests, o.Connections = 1, 450
	if _, err := Run(context.Background(), o, nil); err == nil || !strings.Contains(err.Error(), "ulimit -n 514") {
		t.Errorf("got %v", err)
	}
	// Each by itself has enough.
	o.Connections = 300
	if _, err := Alternate(context.Background(), []Side{{Options: o}, {Options: o}}, Turns{Slice: ms}); err == nil || !strings.Contains(err.Error(), "all together: connections: 600 need a file limit of 664") {
		t.Errorf("got %v", err)
	}
}

func https(o *Options) { o.URL = "https://127.0.0.1:9/" }

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Options)
	}{
		{"url: give the address", func(o *Options) { o.URL = "" }},
		{"must start with http://", func(o *Options) { o.URL = "127.0.0.1:80" }},
		{"h2 is HTTP/2 over TLS", func(o *Options) { o.Protocol = H2 }},
		{"h2c is HTTP/2 without TLS", func(o *Options) { o.Protocol, o.URL = H2C, "https://127.0.0.1/" }},
		{"tls: is for https://", func(o *Options) { o.TLS.MaxVersion = "TLSv1.2" }},
		{`there is no version "1.2"; there are`, func(o *Options) { https(o); o.TLS.MinVersion = "1.2" }},
		{`there is no version "TLSv1.1"`, func(o *Options) { https(o); o.TLS.MaxVersion = "TLSv1.1" }},
		{"minVersion is above", func(o *Options) { https(o); o.TLS.MinVersion, o.TLS.MaxVersion = "TLSv1.3", "TLSv1.2" }},
		{"no cipher \"RC4-SHA\"", func(o *Options) { https(o); o.TLS.Ciphers = []string{"RC4-SHA"} }},
		{"set it in the server's config", func(o *Options) { https(o); o.TLS.Ciphers = []string{"TLS_AES_128_GCM_SHA256"} }},
		{"resume is the share of new connections that resume a session, 0 to 1, got -0.1", func(o *Options) { https(o); o.TLS.Resume = -0.1 }},
		{"resume is the share of new connections that resume a session, 0 to 1, got 1.5", func(o *Options) { https(o); o.TLS.Resume = 1.5 }},
		{"resume is the share of new connections that resume a session, 0 to 1, got NaN", func(o *Options) { https(o); o.TLS.Resume = math.NaN() }},
		{"resume is not for HTTP/3", func(o *Options) { https(o); o.Protocol, o.TLS.Resume = H3, 0.9 }},
		{"no curve \"X448\"", func(o *Options) { https(o); o.TLS.Curves = []string{"P-256", "X448"} }},
		{"streams: must be", func(o *Options) { o.Streams = 0 }},
		{"one request at a time", func(o *Options) { o.Streams = 2 }},
		{"has one stream", func(o *Options) { o.Protocol, o.Streams, o.KeepAlive = H2C, 2, false }},
		{"te is not allowed", func(o *Options) { o.Protocol, o.Headers = H2C, []Header{{"te", "trailers"}} }},
		{"headers: take 17", func(o *Options) { o.Protocol, o.Headers = H2C, []Header{{"a", strings.Repeat("~", 17_000)}} }},
		{"rate: must be", func(o *Options) { o.Rate = math.Inf(1) }},
		{"requests/s, got -1", func(o *Options) { o.Rate = -1 }},
		{"must be greater than zero and asc", func(o *Options) { o.Buckets = []time.Duration{2, 2} }},
		{"names no host", func(o *Options) { o.URL = "http:///x" }},
		{"a port is 1 to 65535", func(o *Options) { o.URL = "http://127.0.0.1:0/" }},
		{"carries a user name", func(o *Options) { o.URL = "http://u:p@127.0.0.1/" }},
		{"mix: at most 262144 requests", func(o *Options) { o.Mix = make([]Request, MaxMix+1) }},
		{"mix[1].target: \"b\" must begin", func(o *Options) { o.Mix = []Request{{Target: "/a"}, {Target: "b"}} }},
		{"mix[0].target: \"/a b\" has a space", func(o *Options) { o.Mix = []Request{{Target: "/a b"}} }},
		{"mix[0].method: \"CONNECT\"", func(o *Options) { o.Mix = []Request{{Target: "/", Method: "CONNECT"}} }},
		{"mix[0].weight: must be 1 to", func(o *Options) { o.Mix = []Request{{Target: "/", Weight: -1}} }},
		{"mix[0].status: must be 200 to 599", func(o *Options) { o.Mix = []Request{{Target: "/", Status: 100}} }},
		{"mix[0].headers: Host is given twice", func(o *Options) {
			o.Mix = []Request{{Target: "/", Headers: []Header{{"Host", "a"}, {"host", "b"}}}}
		}},
		{"protocol: \"spdy\"", func(o *Options) { o.Protocol = "spdy" }},
		{"h3 is HTTP/3 over QUIC", func(o *Options) { o.Protocol = H3 }},
		{"HTTP/3 has no other", func(o *Options) { https(o); o.Protocol, o.TLS.MaxVersion = H3, "TLSv1.2" }},
		{"threads: must be", func(o *Options) { o.Threads = 0 }},
		{"connections: must be", func(o *Options) { o.Connections = 0 }},
		{"too few for 5 threads", func(o *Options) { o.Threads = 5 }},
		{"threads need a core each, and k6", func(o *Options) { o.Spin, o.Threads, o.Connections = true, len(linux.Cores())+1, 1000 }},
		{"give one of the two", func(o *Options) { o.Duration = time.Second }},
		{"timeout: must be greater", func(o *Options) { o.Timeout = 0 }},
		{"method: \"GET /\" is not", func(o *Options) { o.Method = "GET /" }},
		{"method: \"CONNECT\" is not", func(o *Options) { o.Method = "CONNECT" }},
		{"has a space or control", func(o *Options) { o.URL = "http://127.0.0.1/?a=b c" }},
		{"is not a header name", func(o *Options) { o.Headers = []Header{{"a b", ""}} }},
		{"has a line break", func(o *Options) { o.Headers = []Header{{"a", "b\r\nc: d"}} }},
		{"Host is given twice", func(o *Options) { o.Headers = []Header{{"Host", "a"}, {"host", "b"}} }},
		{"Content-Length is set by the engine", func(o *Options) { o.Headers = []Header{{"Content-Length", "1"}} }},
		{"no.such.host.invalid", func(o *Options) { o.URL = "http://no.such.host.invalid/" }},
	} {
		o := options(nobody)
		o.Requests = 1
		c.change(&o)
		if _, err := Run(context.Background(), o, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}
