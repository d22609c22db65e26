package engine

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func onTLSVersions(t *testing.T, test func(t *testing.T, config *tls.Config)) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(fmt.Sprintf("%x", version), func(t *testing.T) {
			t.Parallel()
			config := serverTLS(ecdsaKey)
			config.MaxVersion = version
			test(t, config)
		})
	}
}

func TestHowTLSConnectionsEnd(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		for name, test := range map[string]struct {
			end  func(c *tls.Conn)
			kind ErrorKind
		}{
			"in order": {func(c *tls.Conn) { c.CloseWrite() }, ErrRead},
			"within a record": {func(c *tls.Conn) {
				io.WriteString(c.NetConn(), "\x17\x03\x03\x00\x20abc")
				c.NetConn().(*net.TCPConn).CloseWrite()
			}, ErrRead},
			"with an illegal record": {func(c *tls.Conn) { io.WriteString(c.NetConn(), "\x17\x03\x03\x00\x20"+strings.Repeat("x", 32)) }, ErrTLS},
		} {
			s := serveH2TLS(t, config, func(p *h2peer) {
				p.settings()
				p.next()
				p.flush()
				test.end(p.conn.(*tls.Conn))
			})
			o := h2Options(s)
			o.Streams, o.Requests, o.Timeout = 1, 4, 2*time.Second
			r := load(t, o)
			wantErrors(t, r, test.kind, 4)
			if r.ErrorExample == "" {
				t.Errorf("%s: no example of the error", name)
			}
		}
	})
}

// close_notify takes the place of the FIN that an announced close has.
func TestCloseNotify(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		for answer, corks := range map[string]bool{
			"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello": false, // announced, without a FIN
			ok: true, // not announced, in one segment with body and FIN
		} {
			s := servePeer(t, true, func(s *peerServer, raw net.Conn) {
				c := tls.Server(raw, config)
				if c.Handshake() != nil {
					return
				}
				if corks {
					cork(t, raw)
				}
				once(answer)(s.testServer, c)
				if c.CloseWrite(); corks {
					raw.(*net.TCPConn).CloseWrite()
				}
				io.Copy(io.Discard, raw)
			})
			o := options(s.url)
			o.Requests, o.TLS.InsecureSkipVerify = 8, true
			if r := load(t, o); r.Responses[0] != 8 || s.connections.Load() != 8 {
				t.Errorf("%q: %s %s", answer, s, r)
			}
		}
	})
}

// cork holds what is written back until a segment is full or the connection is closed.
func cork(t *testing.T, c net.Conn) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CORK, 1) })
	}
	if err != nil {
		t.Error(err)
	}
}
