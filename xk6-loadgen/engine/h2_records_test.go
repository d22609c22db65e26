package engine

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

// recordProtections are TLS 1.3, and TLS 1.2 with both kinds of nonce.
var recordProtections = map[string]func(*tls.Config){
	"TLS 1.3": func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 },
	"TLS 1.2, AES-GCM": func(c *tls.Config) {
		c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	},
	"TLS 1.2, ChaCha20": func(c *tls.Config) {
		c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}
	},
}

func onProtections(t *testing.T, test func(t *testing.T, config *tls.Config)) {
	for name, change := range recordProtections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := serverTLS(ecdsaKey)
			change(config)
			test(t, config)
		})
	}
}

func TestRecordsOfAnyShape(t *testing.T) {
	ticket := func(size int) []byte {
		return append([]byte{4, byte(size >> 16), byte(size >> 8), byte(size)}, make([]byte, size)...)
	}
	onProtections(t, func(t *testing.T, config *tls.Config) {
		for name, set := range map[string]func(c *recordConn){
			"a byte in each":          func(c *recordConn) { c.size = 1 },
			"full":                    func(c *recordConn) { c.size = 16384 },
			"sent byte by byte":       func(c *recordConn) { c.pieces = 1 },
			"sent in odd pieces":      func(c *recordConn) { c.size, c.pieces = 100, 7 },
			"with empty ones between": func(c *recordConn) { c.size, c.before = 50, func() []byte { return c.record(tlsconn.ApplicationData) } },
			"with warnings between":   func(c *recordConn) { c.before = func() []byte { return c.record(tlsconn.Alert, 1, 90) } },
			"with handshake messages": func(c *recordConn) {
				c.before = func() []byte { return c.record(tlsconn.Handshake, harmless(c.is13)...) }
			},
			"with large session tickets": func(c *recordConn) {
				if c.is13 {
					// One ticket over several records.
					message := ticket(40_000)
					c.before = func() (out []byte) {
						for rest := message; len(rest) > 0; {
							n := min(len(rest), 9999)
							out = append(out, c.record(tlsconn.Handshake, rest[:n]...)...)
							rest = rest[n:]
						}
						return out
					}
				}
			},
			"padded": func(c *recordConn) {
				if c.is13 {
					// The content's type, then zeros; SealOne adds one more.
					c.before = func() []byte {
						return c.out.SealOne(nil, 0, append([]byte{byte(tlsconn.ApplicationData)}, make([]byte, 1000)...))
					}
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				body := strings.Repeat("0123456789", 2000)
				if name == "sent byte by byte" || name == "a byte in each" {
					body = "0123456789"
				}
				s := serveRecords(t, config, func(p *h2peer, c *recordConn) {
					set(c)
					answering(func(p *h2peer, r *h2stream) { p.respond(r, 200, body) })(p)
				})
				o := h2Options(s)
				o.Requests = 10
				r := load(t, o)
				if r.Responses[0] != 10 || s.connections.Load() != 2 {
					t.Error(s, r)
				}
				wantWire(t, s, r)
			})
		}
	})
}

// harmless is a handshake message that a client may get and ignore: a HelloRequest, or a session ticket.
func harmless(is13 bool) []byte {
	if is13 {
		return append([]byte{4, 0, 0, 200}, make([]byte, 200)...)
	}
	return []byte{0, 0, 0, 0}
}

func TestCloseNotify(t *testing.T) {
	onProtections(t, func(t *testing.T, config *tls.Config) {
		s := serveRecords(t, config, func(p *h2peer, c *recordConn) {
			p.settings()
			p.next()
			p.flush()
			c.send(c.record(tlsconn.Alert, 1, 0))
			io.Copy(io.Discard, c.Conn)
		})
		o := h2Options(s)
		o.Streams, o.Requests, o.Timeout = 1, 4, 2*time.Second
		wantErrors(t, load(t, o), ErrRead, 4)

		// It takes the place of the FIN that an announced close has.
		answers := func(answer string, corks bool) func(*peerServer, net.Conn) {
			return func(s *peerServer, raw net.Conn) {
				c := takeRecords(t, raw, config)
				if corks {
					cork(t, raw)
				}
				once(answer)(s.testServer, c)
				c.send(c.record(tlsconn.Alert, 1, 0))
				if corks {
					raw.(*net.TCPConn).CloseWrite()
				}
				io.Copy(io.Discard, raw)
			}
		}
		for name, handler := range map[string]func(*peerServer, net.Conn){
			"announced, without a FIN":                        answers("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", false),
			"not announced, in one segment with body and FIN": answers(ok, true),
		} {
			s = servePeer(t, true, handler)
			o = options(s.url)
			o.Requests, o.TLS.InsecureSkipVerify = 8, true
			if r := load(t, o); r.Responses[0] != 8 || s.connections.Load() != 8 {
				t.Errorf("%s: %s %s", name, s, r)
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

func TestIllegalRecordsAreTLSErrors(t *testing.T) {
	flip := func(record []byte, at int) []byte {
		record[(at+len(record))%len(record)] ^= 1
		return record
	}
	onProtections(t, func(t *testing.T, config *tls.Config) {
		for name, illegal := range map[string]func(c *recordConn) []byte{
			"a bit of the content flipped": func(c *recordConn) []byte { return flip(c.record(tlsconn.ApplicationData, make([]byte, 50)...), 20) },
			"a bit of the tag flipped":     func(c *recordConn) []byte { return flip(c.record(tlsconn.ApplicationData, 1, 2, 3), -1) },
			"another type":                 func(c *recordConn) []byte { return flip(c.record(tlsconn.ApplicationData, 1, 2, 3), 0) },
			"no type of TLS":               func(*recordConn) []byte { return []byte("\x63\x03\x03\x00\x05hello") },
			"HTTP in the middle of it":     func(*recordConn) []byte { return []byte("HTTP/1.1 200 OK\r\n\r\n") },
			"not encrypted":                func(*recordConn) []byte { return []byte("\x17\x03\x03\x00\x20" + strings.Repeat("x", 32)) },
			"too short for a tag":          func(*recordConn) []byte { return []byte("\x17\x03\x03\x00\x05hello") },
			"empty":                        func(*recordConn) []byte { return []byte("\x17\x03\x03\x00\x00") },
			"longer than TLS allows":       func(*recordConn) []byte { return []byte("\x17\x03\x03\xff\xff") },
			"content longer than 16 KiB":   func(c *recordConn) []byte { return c.record(tlsconn.ApplicationData, make([]byte, 16385)...) },
			"one twice": func(c *recordConn) []byte {
				record := c.record(tlsconn.ApplicationData)
				return append(bytes.Clone(record), record...)
			},
			"one left out": func(c *recordConn) []byte {
				c.record(tlsconn.ApplicationData)
				return c.record(tlsconn.ApplicationData)
			},
			"a change of ciphers":      func(c *recordConn) []byte { return c.record(tlsconn.ChangeCipherSpec, 1) },
			"an alert of one byte":     func(c *recordConn) []byte { return c.record(tlsconn.Alert, 2) },
			"an alert of three bytes":  func(c *recordConn) []byte { return c.record(tlsconn.Alert, 2, 80, 0) },
			"the alert internal_error": func(c *recordConn) []byte { return c.record(tlsconn.Alert, 2, 80) },
			"an alert nobody knows":    func(c *recordConn) []byte { return c.record(tlsconn.Alert, 2, 199) },
			"a key update":             func(c *recordConn) []byte { return only13(c, c.record(tlsconn.Handshake, 24, 0, 0, 1, 0)) },
			"padding only":             func(c *recordConn) []byte { return only13(c, c.out.SealOne(nil, 0, make([]byte, 100))) },
		} {
			t.Run(name, func(t *testing.T) {
				s := serveRecords(t, config, func(p *h2peer, c *recordConn) {
					p.settings()
					p.next()
					p.flush()
					c.send(illegal(c))
				})
				o := h2Options(s)
				o.Streams, o.Requests, o.Timeout = 1, 2, 2*time.Second
				r := load(t, o)
				wantErrors(t, r, ErrTLS, 2)
				if r.ErrorExample == "" {
					t.Error("no example of the error")
				}
			})
		}
	})
}

// only13 is the record in TLS 1.3, and one that does not decrypt in TLS 1.2, which knows nothing like it.
func only13(c *recordConn, record []byte) []byte {
	if !c.is13 {
		record[len(record)-1] ^= 1
	}
	return record
}

func TestARecordThatIsCutOffIsAnError(t *testing.T) {
	onProtections(t, func(t *testing.T, config *tls.Config) {
		for _, n := range []int{1, 4, 5, 20, 50} {
			s := serveRecords(t, config, func(p *h2peer, c *recordConn) {
				p.settings()
				p.next()
				p.flush()
				c.send(c.record(tlsconn.ApplicationData, make([]byte, 100)...)[:n])
				c.Conn.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, c.Conn)
			})
			o := h2Options(s)
			o.Streams, o.Requests = 1, 2
			if r := load(t, o); r.Errors[ErrRead]+r.Errors[ErrTLS] != 2 {
				t.Errorf("%d bytes: %s", n, r)
			}
		}
	})
}
