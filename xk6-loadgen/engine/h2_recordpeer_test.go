package engine

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

// recordConn is the server's end of TLS after the handshake, which crypto/tls has made, with its records in the test's
// hands.
type recordConn struct {
	net.Conn
	in, out tlsconn.Half
	is13    bool
	// plain is what was read of the records so far.
	plain []byte
	// size, when set, is how much goes into a record; before, when set, may put others in front of it.
	size   int
	before func() []byte
	// pieces, when set, is the number of bytes that are sent at a time.
	pieces int
}

// keysOf notes the secrets of a handshake, as crypto/tls logs them.
type keysOf map[string][]byte

func (k keysOf) Write(line []byte) (int, error) {
	fields := strings.Fields(string(line))
	random, _ := hex.DecodeString(fields[1])
	secret, _ := hex.DecodeString(fields[2])
	k[fields[0]], k["client random"] = secret, random
	return len(line), nil
}

// recordByRecord reads no further than to the end of a record, and notes the random of the ServerHello it writes.
type recordByRecord struct {
	net.Conn
	left         *bytes.Buffer
	serverRandom *[]byte
}

func (c recordByRecord) Read(p []byte) (int, error) {
	if c.left.Len() == 0 {
		record, err := readRecord(c.Conn)
		if err != nil {
			return 0, err
		}
		c.left.Write(record)
	}
	return c.left.Read(p)
}

func (c recordByRecord) Write(p []byte) (int, error) {
	if *c.serverRandom == nil && len(p) > 43 && p[0] == 22 && p[5] == 2 {
		*c.serverRandom = bytes.Clone(p[11:43])
	}
	return c.Conn.Write(p)
}

func readRecord(r io.Reader) ([]byte, error) {
	record := make([]byte, 5, 5+1<<14+256)
	if _, err := io.ReadFull(r, record); err != nil {
		return nil, err
	}
	record = record[:5+int(record[3])<<8+int(record[4])]
	_, err := io.ReadFull(r, record[5:])
	return record, err
}

// takeRecords makes the handshake and takes its keys.
func takeRecords(t testing.TB, c net.Conn, config *tls.Config) *recordConn {
	config = config.Clone()
	keys, serverRandom := keysOf{}, []byte(nil)
	config.KeyLogWriter, config.SessionTicketsDisabled = keys, true
	server := tls.Server(recordByRecord{c, &bytes.Buffer{}, &serverRandom}, config)
	if server.Handshake() != nil {
		return nil
	}
	state := server.ConnectionState()
	suite, err := tlsconn.SuiteOf(state.CipherSuite)
	if err != nil {
		t.Error(err)
		return nil
	}
	r := &recordConn{Conn: c, is13: state.Version == tls.VersionTLS13}
	if r.is13 {
		r.in, _ = tlsconn.NewHalf13(suite, keys["CLIENT_TRAFFIC_SECRET_0"])
		r.out, _ = tlsconn.NewHalf13(suite, keys["SERVER_TRAFFIC_SECRET_0"])
	} else {
		// What the client calls out comes in here.
		r.out, r.in, err = tlsconn.NewHalves12(suite, keys["CLIENT_RANDOM"], keys["client random"], serverRandom)
	}
	if err != nil {
		t.Error(err)
	}
	return r
}

func (c *recordConn) NetConn() net.Conn { return c.Conn }

func (c *recordConn) CloseWrite() error {
	c.Conn.Write(c.record(tlsconn.Alert, 1, 0))
	return c.Conn.(*net.TCPConn).CloseWrite()
}

func (c *recordConn) Read(p []byte) (int, error) {
	for len(c.plain) == 0 {
		record, err := readRecord(c.Conn)
		if err != nil {
			return 0, err
		}
		kind, plain, err := c.in.Open(record)
		switch {
		case err != nil:
			return 0, err
		case kind == tlsconn.ApplicationData:
			c.plain = plain
		default:
			return 0, io.ErrUnexpectedEOF
		}
	}
	n := copy(p, c.plain)
	c.plain = c.plain[n:]
	return n, nil
}

// record seals one record.
func (c *recordConn) record(kind tlsconn.RecordType, content ...byte) []byte {
	return c.out.SealOne(nil, kind, content)
}

func (c *recordConn) Write(p []byte) (int, error) {
	var out []byte
	for rest := p; len(rest) > 0; {
		n := min(len(rest), tlsconn.MaxPlaintextBytes)
		if c.size > 0 {
			n = min(n, c.size)
		}
		if c.before != nil {
			out = append(out, c.before()...)
		}
		out = append(out, c.record(tlsconn.ApplicationData, rest[:n]...)...)
		rest = rest[n:]
	}
	return len(p), c.send(out)
}

func (c *recordConn) send(out []byte) error {
	for len(out) > 0 {
		n := len(out)
		if c.pieces > 0 {
			n = min(n, c.pieces)
		}
		if _, err := c.Conn.Write(out[:n]); err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

// serveRecords is serveH2TLS with the records in the script's hands.
func serveRecords(t testing.TB, config *tls.Config, script func(p *h2peer, c *recordConn)) *peerServer {
	return servePeer(t, true, func(s *peerServer, raw net.Conn) {
		if c := takeRecords(t, raw, config); c != nil {
			s.peer(t, c).play(func(p *h2peer) { script(p, c) })
		}
	})
}
