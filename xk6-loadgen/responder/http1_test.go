package responder

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const get = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

// answered is the response with a body of this length.
func answered(bodyBytes int, connection string) string {
	return answeredHead(bodyBytes, connection) + strings.Repeat("x", bodyBytes)
}

func answeredHead(bodyBytes int, connection string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n", bodyBytes, connection)
}

func TestOneRequestAfterTheOther(t *testing.T) {
	c := dial(t, start(t, Options{Protocol: HTTP11, BodyBytes: 5}))
	for range 3 {
		io.WriteString(c, get)
		mustRead(t, c, answered(5, "keep-alive"))
	}
	c.CloseWrite()
	if rest := mustEnd(t, c); rest != "" {
		t.Errorf("%q follows", rest)
	}
}

func TestPipelinedRequestsAreAllAnswered(t *testing.T) {
	for _, bodyBytes := range []int{0, 612, 100_000} {
		c := dial(t, start(t, Options{Protocol: HTTP11, BodyBytes: int64(bodyBytes)}))
		const n = 5000
		// Not read before all are sent: more than the socket's buffers hold has to wait its turn.
		go io.WriteString(c, strings.Repeat(get, n))
		one := answered(bodyBytes, "keep-alive")
		for i := 0; i < n; i += 100 {
			mustRead(t, c, strings.Repeat(one, 100))
		}
		io.WriteString(c, "HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n")
		if rest := mustEnd(t, c); rest != answeredHead(bodyBytes, "close") {
			t.Errorf("the last response is %.200q", rest)
		}
	}
}

// Whatever the pieces are in which requests come, of whatever kinds they are: the answers are the same.
func TestRequestsInPieces(t *testing.T) {
	r := start(t, Options{Protocol: HTTP11, BodyBytes: 20})
	kinds := []struct{ request, response string }{
		{get, answered(20, "keep-alive")},
		{"HEAD /a HTTP/1.1\r\n\r\n", answeredHead(20, "keep-alive")},
		{"POST /b?c=d HTTP/1.1\r\nContent-Length: 30\r\n\r\nGET / HTTP/1.1\r\n\r\nis not one\r\n", answered(20, "keep-alive")},
		{"PUT * HTTP/1.1\r\ncontent-length:\t0 \r\ncontent-length: 0\r\nX: " + strings.Repeat("y", 5000) + "\r\n\r\n", answered(20, "keep-alive")},
		{"GET / HTTP/1.0\r\nCONNECTION: upgrade , Keep-Alive\r\n\r\n", answered(20, "keep-alive")},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		var requests, want strings.Builder
		for range 20 {
			kind := kinds[random.IntN(len(kinds))]
			requests.WriteString(kind.request)
			want.WriteString(kind.response)
		}
		requests.WriteString("GET / HTTP/1.0\r\n\r\n")
		want.WriteString(answered(20, "close"))
		c := dial(t, r)
		c.SetNoDelay(true)
		go func() {
			for left := requests.String(); left != ""; {
				n := min(len(left), 1+random.IntN([]int{1, 50, 1000, 20_000}[round%4]))
				io.WriteString(c, left[:n])
				left = left[n:]
			}
		}()
		mustRead(t, c, want.String())
		if rest := mustEnd(t, c); rest != "" {
			t.Fatalf("%q follows", rest)
		}
	}
}

func TestWhichConnectionsAreKept(t *testing.T) {
	r := start(t, Options{Protocol: HTTP11, BodyBytes: 3})
	for head, kept := range map[string]bool{
		"GET / HTTP/1.1\r\n":                                          true,
		"GET / HTTP/1.1\r\nConnection: keep-alive\r\n":                true,
		"GET / HTTP/1.1\r\nConnection: closed\r\n":                    true,
		"GET / HTTP/1.1\r\nConnection: close\r\n":                     false,
		"GET / HTTP/1.1\r\nconnection:Upgrade,\tCLOSE\r\n":            false,
		"GET / HTTP/1.1\r\nConnection: keep-alive, close\r\n":         false,
		"GET / HTTP/1.0\r\n":                                          false,
		"GET / HTTP/1.0\r\nConnection: close\r\n":                     false,
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\n":                true,
		"GET / HTTP/1.0\r\nX-Connection: keep-alive\r\n":              false,
		"POST / HTTP/1.0\r\nContent-Length: 0\r\n":                    false,
		"BREW /pot HTTP/1.1\r\nHost: a\r\nContent-Length: 000000\r\n": true,
	} {
		c := dial(t, r)
		io.WriteString(c, head+"\r\n")
		if !kept {
			if all := mustEnd(t, c); all != answered(3, "close") {
				t.Errorf("%q: answered with %q", head, all)
			}
			continue
		}
		mustRead(t, c, answered(3, "keep-alive"))
		io.WriteString(c, get)
		mustRead(t, c, answered(3, "keep-alive"))
	}
}

// A client may say that it sends no more, and still wants its answers.
func TestAClientThatClosesItsSideIsAnswered(t *testing.T) {
	const bodyBytes, n = 300_000, 20
	c := dial(t, start(t, Options{Protocol: HTTP11, BodyBytes: bodyBytes}))
	io.WriteString(c, strings.Repeat(get, n))
	c.CloseWrite()
	if all := mustEnd(t, c); all != strings.Repeat(answered(bodyBytes, "keep-alive"), n) {
		t.Errorf("%d bytes come, want %d responses", len(all), n)
	}
}

// A request and the client's end may be there together when the responder looks.
func TestARequestTogetherWithTheEnd(t *testing.T) {
	r := start(t, Options{Protocol: HTTP11, BodyBytes: 10})
	for range 200 {
		c := dial(t, r)
		io.WriteString(c, get)
		mustRead(t, c, answered(10, "keep-alive"))
		io.WriteString(c, get)
		c.CloseWrite()
		if all := mustEnd(t, c); all != answered(10, "keep-alive") {
			t.Fatalf("answered with %q", all)
		}
		c.Close()
	}
}

func TestWhatIsNoRequestEndsTheConnection(t *testing.T) {
	r := start(t, Options{Protocol: HTTP11, BodyBytes: 3})
	for name, text := range map[string]string{
		"a TLS handshake":             "\x16\x03\x01\x00\x05hello",
		"HTTP/2":                      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP/0.9":                    "GET /\r\n\r\n",
		"HTTP/3":                      "GET / HTTP/3.0\r\n\r\n",
		"no version":                  "GET / \r\n\r\n",
		"no target":                   "GET  HTTP/1.1\r\n\r\n",
		"an empty line":               "\r\n\r\n",
		"no method":                   " / HTTP/1.1\r\n\r\n",
		"a method that is none":       "G@T / HTTP/1.1\r\n\r\n",
		"zeros":                       strings.Repeat("\x00", 1000),
		"a header without a colon":    "GET / HTTP/1.1\r\nhello\r\n\r\n",
		"a header without a name":     "GET / HTTP/1.1\r\n: hello\r\n\r\n",
		"a folded header":             "GET / HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n",
		"a length that is no number":  "POST / HTTP/1.1\r\nContent-Length: ten\r\n\r\n",
		"a negative length":           "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"no length":                   "POST / HTTP/1.1\r\nContent-Length: \r\n\r\n",
		"a length that is very large": "POST / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n",
		"two lengths":                 "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"chunks":                      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a head without end":          "GET / HTTP/1.1\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 100),
		"a line without end":          "GET /" + strings.Repeat("a", 2*maxHeadBytes),
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []string{"", get} {
				c := dial(t, r)
				want := ""
				if before != "" {
					want = answered(3, "keep-alive")
				}
				io.WriteString(c, before+text)
				if all := mustEnd(t, c); all != want && all != "" {
					t.Errorf("answered with %q", all)
				}
			}
		})
	}
	// It lives on.
	c := dial(t, r)
	io.WriteString(c, get)
	mustRead(t, c, answered(3, "keep-alive"))
	eventually(t, func() bool { return r.connections() == 1 }, "connections stay open")
}

func TestALargeBodyForASlowReader(t *testing.T) {
	const bodyBytes = 20 << 20
	c := dial(t, start(t, Options{Protocol: HTTP11, BodyBytes: bodyBytes}))
	c.SetReadBuffer(64 << 10)
	io.WriteString(c, get+get)
	buffer := make([]byte, 1<<20)
	for range 2 {
		mustRead(t, c, answeredHead(bodyBytes, "keep-alive"))
		for left := bodyBytes; left > 0; {
			n, err := c.Read(buffer[:min(left, 1+rand.IntN(len(buffer)))])
			if err != nil {
				t.Fatal(err)
			}
			if i := strings.Trim(string(buffer[:n]), "x"); i != "" {
				t.Fatalf("in the body is %q", i)
			}
			left -= n
		}
	}
}

func TestABodyLongerThanMemory(t *testing.T) {
	const bodyBytes = 300 << 20
	before := heapBytes()
	for _, w := range []way{ways[2], ways[3], ways[4], ways[6]} {
		r := w.start(t, bodyBytes, 1)
		o := w.options(r)
		o.Connections, o.Requests = 2, 2
		wantAnswers(t, o, bodyBytes)
	}
	if more := heapBytes() - before; more > 30<<20 {
		t.Errorf("%d bytes more are in use", more)
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// Clients that ask without end and never read cost a bounded amount of memory.
func TestClientsThatNeverRead(t *testing.T) {
	for _, bodyBytes := range []int64{0, 612, 1 << 30} {
		r := start(t, Options{Protocol: HTTP11, BodyBytes: bodyBytes})
		before := heapBytes()
		const clients = 50
		var floods sync.WaitGroup
		for range clients {
			c := dial(t, r)
			floods.Go(func() {
				for flood := []byte(strings.Repeat(get, 1000)); ; {
					c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
					if _, err := c.Write(flood); err != nil {
						if e, ok := err.(net.Error); !ok || !e.Timeout() {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		floods.Wait()
		if more := heapBytes() - before; more > clients*(maxHeadBytes+readBufferBytes) {
			t.Errorf("%d clients cost %d bytes", clients, more)
		}
		// Others are answered all the same.
		c := dial(t, r)
		io.WriteString(c, "HEAD / HTTP/1.1\r\n\r\n")
		mustRead(t, c, answeredHead(int(bodyBytes), "keep-alive"))
		r.Close()
	}
}
