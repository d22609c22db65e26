package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
