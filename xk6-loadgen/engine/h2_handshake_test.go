package engine

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

func TestServersThatEndTheHandshake(t *testing.T) {
	readHello := func(c net.Conn) { c.Read(make([]byte, 64<<10)) }
	for name, test := range map[string]struct {
		handler func(c net.Conn)
		cause   ErrorCause
		hint    string
	}{
		"speaks HTTP":            {func(c net.Conn) { readHello(c); io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, CauseOther, "http://"},
		"speaks first":           {func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n"); io.Copy(io.Discard, c) }, CauseOther, "http://"},
		"closes when asked":      {func(c net.Conn) { c.(*net.TCPConn).CloseWrite(); io.Copy(io.Discard, c) }, CauseShort, ""},
		"closes within a record": {func(c net.Conn) { readHello(c); io.WriteString(c, "\x16\x03\x03\x00\x7a\x02\x00") }, CauseShort, ""},
		"handshake_failure": {func(c net.Conn) {
			readHello(c)
			io.WriteString(c, "\x15\x03\x03\x00\x02\x02\x28")
			io.Copy(io.Discard, c)
		}, CauseOther, "handshake"},
		"resets":             {func(c net.Conn) { readHello(c); c.(*net.TCPConn).SetLinger(0) }, CauseReset, ""},
		"never shakes hands": {func(c net.Conn) { io.Copy(io.Discard, c) }, CauseTimedOut, ""},
		"an endless message": {func(c net.Conn) {
			record := append([]byte("\x16\x03\x03\x40\x00"), make([]byte, 16384)...)
			copy(record[5:], "\x02\xff\xff\xff")
			for {
				if _, err := c.Write(record); err != nil {
					return
				}
			}
		}, CauseOther, ""},
		"endless empty records": {func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, strings.Repeat("\x16\x03\x03\x00\x00", 1000)); err != nil {
					return
				}
			}
		}, CauseOther, ""},
		"endless warnings": {func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, strings.Repeat("\x15\x03\x03\x00\x02\x01\x5a", 1000)); err != nil {
					return
				}
			}
		}, CauseOther, ""},
		"a record of 64 KiB":   {func(c net.Conn) { io.WriteString(c, "\x16\x03\x03\xff\xff"); io.Copy(io.Discard, c) }, CauseOther, ""},
		"data before its time": {func(c net.Conn) { readHello(c); io.WriteString(c, "\x17\x03\x03\x00\x05hello"); io.Copy(io.Discard, c) }, CauseOther, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servePeer(t, true, func(_ *peerServer, c net.Conn) { test.handler(c) })
			o := h2Options(s)
			if o.Timeout = 2 * time.Second; test.cause == CauseTimedOut {
				o.Timeout = 200 * ms
			}
			wantTLSFailure(t, o, test.cause, test.hint)
		})
	}
}

func TestAHandshakeInManyRecords(t *testing.T) {
	// Messages may be cut into records anywhere (RFC 8446, section 5.1; RFC 5246, section 6.2.1).
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, size := range []int{1, 3, 30, 70, 200} {
			t.Run(fmt.Sprintf("%x, records of %d bytes", version, size), func(t *testing.T) {
				t.Parallel()
				config := serverTLS(ecdsaKey)
				config.MaxVersion = version
				s := servePeer(t, true, func(s *peerServer, raw net.Conn) {
					c := tls.Server(&cuttingConn{Conn: raw, size: size}, config)
					if c.Handshake() == nil {
						s.peer(t, c).play(answering(hello))
					}
				})
				o := h2Options(s)
				o.Requests = 10
				wantResponses(t, load(t, o), 10)
			})
		}
	}
}

// cuttingConn cuts the handshake records that are not encrypted into smaller ones.
type cuttingConn struct {
	net.Conn
	size      int
	encrypted bool
}

func (c *cuttingConn) Write(p []byte) (int, error) {
	var out []byte
	for rest := p; len(rest) >= 5; {
		n := 5 + int(rest[3])<<8 + int(rest[4])
		record := rest[:n]
		rest = rest[n:]
		if c.encrypted = c.encrypted || record[0] != byte(tlsconn.Handshake); c.encrypted {
			out = append(out, record...)
			continue
		}
		for content := record[5:]; len(content) > 0; {
			n := min(len(content), c.size)
			out = append(append(out, record[0], record[1], record[2], 0, byte(n)), content[:n]...)
			content = content[n:]
		}
	}
	_, err := c.Conn.Write(out)
	return len(p), err
}
