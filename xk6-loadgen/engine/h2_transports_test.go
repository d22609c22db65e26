package engine

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

type transport struct {
	name     string
	protocol Protocol
	isTLS    bool
	streams  int
}

var transports = []transport{
	{"http1.0", HTTP10, false, 1},
	{"http1.0 over TLS", HTTP10, true, 1},
	{"http1.1", HTTP11, false, 1},
	{"http1.1 over TLS", HTTP11, true, 1},
	{"h2c", H2C, false, 1},
	{"h2c, 8 streams", H2C, false, 8},
	{"h2", H2, true, 1},
	{"h2, 8 streams", H2, true, 8},
	{"h3", H3, true, 1},
	{"h3, 8 streams", H3, true, 8},
}

func (x transport) isH2() bool { return x.protocol == H2 || x.protocol == H2C }

func (x transport) config() *tls.Config {
	if !x.isTLS {
		return nil
	}
	return serverTLS(ecdsaKey)
}

func (x transport) options(url string) Options {
	o := options(url)
	o.Protocol, o.Streams = x.protocol, x.streams
	o.TLS.InsecureSkipVerify = x.isTLS
	return o
}

type asked struct {
	method, path string
	header       map[string]string
	body         []byte
}

type answer struct {
	status int
	body   string
	ending ending
}

type ending int

const (
	wholly ending = iota
	closing
	closingWithin
	resetting
	stalling
)

// serve starts a scripted server for the transport; with HTTP/2 it has these settings.
func (x transport) serve(t testing.TB, answer func(asked) answer, settings ...http2.Setting) *peerServer {
	t.Helper()
	if x.protocol == H3 {
		return serveH3(t, nil, func(st *h3PeerStream) { st.answer(answer(st.asked)) })
	}
	if x.isH2() {
		return serveH2TLS(t, x.config(), answering(func(p *h2peer, r *h2stream) {
			header := map[string]string{}
			for _, f := range r.fields {
				header[f.Name] = f.Value
			}
			request := asked{method: r.value(":method"), path: r.value(":path"), header: header, body: r.body}
			request.header["host"] = r.value(":authority")
			p.answer(r, request, answer(request))
		}, settings...))
	}
	return servePeer(t, x.isTLS, func(s *peerServer, raw net.Conn) {
		c := raw
		if x.isTLS {
			c = tls.Server(raw, x.config())
			defer c.Close()
		}
		for r := bufio.NewReader(countingReader{c, &s.received}); ; {
			request, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			s.requests.Add(1)
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return
			}
			header := map[string]string{"host": request.Host}
			if request.ContentLength > 0 {
				header["content-length"] = strconv.FormatInt(request.ContentLength, 10)
			}
			for name := range request.Header {
				header[strings.ToLower(name)] = request.Header.Get(name)
			}
			a := answer(asked{method: request.Method, path: request.RequestURI, header: header, body: body})
			if !s.answerHTTP1(c, raw.(*net.TCPConn), request, a) {
				return
			}
		}
	})
}

func (a answer) hasBody(method string) bool {
	return method != http.MethodHead && a.status != 204 && a.status != 304
}

// answerHTTP1 tells whether the connection is kept.
func (s *peerServer) answerHTTP1(c net.Conn, raw *net.TCPConn, request *http.Request, a answer) bool {
	switch a.ending {
	case closing:
		return false
	case resetting:
		raw.SetLinger(0)
		raw.Close()
		return false
	case stalling:
		io.Copy(io.Discard, c)
		return false
	}
	head := fmt.Sprintf("HTTP/1.%d %d %s\r\n", request.ProtoMinor, a.status, http.StatusText(a.status))
	if a.status != 204 && a.status != 304 {
		head += fmt.Sprintf("content-length: %d\r\n", len(a.body))
	}
	if request.ProtoMinor == 0 && !request.Close {
		head += "connection: keep-alive\r\n"
	}
	head += "\r\n"
	body := a.body
	if !a.hasBody(request.Method) {
		body = ""
	} else if a.ending == closingWithin {
		body = body[:len(body)/2]
	}
	s.headers.Add(int64(len(head)))
	s.decoded.Add(int64(len(head)))
	s.body.Add(int64(len(body)))
	s.answered.Add(1)
	n, err := io.WriteString(c, head+body)
	s.sent.Add(int64(n))
	return err == nil && !request.Close && a.ending == wholly
}

// answer does in HTTP/2 what answerHTTP1 does in HTTP/1.
func (p *h2peer) answer(r *h2stream, request asked, a answer) {
	switch a.ending {
	case closing:
		p.close()
	case resetting:
		p.reset()
	case stalling:
		return
	}
	fields := []string{":status", strconv.Itoa(a.status)}
	if a.status != 204 && a.status != 304 {
		fields = append(fields, "content-length", strconv.Itoa(len(a.body)))
	}
	body := a.body
	if !a.hasBody(request.method) {
		body = ""
	}
	p.headers(r, body == "", fields...)
	if a.ending == closingWithin {
		p.data(r, body[:len(body)/2], false)
		p.close()
	}
	if body != "" {
		p.data(r, body, true)
	}
}
