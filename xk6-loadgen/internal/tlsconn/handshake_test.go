package tlsconn

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"iter"
	"math/big"
	"net"
	"testing"
	"time"
)

// server is a TLS server of crypto/tls that says hello and closes. It runs as a coroutine, so that no test waits for it.
type server struct {
	net.Conn
	in, out []byte
	pause   func(struct{}) bool
}

func (s *server) Read(p []byte) (int, error) {
	for len(s.in) == 0 {
		if !s.pause(struct{}{}) {
			return 0, io.EOF
		}
	}
	n := copy(p, s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *server) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	return len(p), nil
}

func (*server) Close() error                     { return nil }
func (*server) SetWriteDeadline(time.Time) error { return nil }

const hello = "hello"

// converse makes a connection to a new server, whose bytes come in pieces of n, with the one at a place changed by flip. It returns what the
// client saw, the content, and whether there was such a byte.
func converse(c *Conn, shared *Shared, config *tls.Config, n, at int, flip byte) (events []Kind, content []byte, isChanged bool) {
	s := &server{}
	run, stop := iter.Pull(iter.Seq[struct{}](func(pause func(struct{}) bool) {
		s.pause = pause
		peer := tls.Server(s, config)
		if peer.Handshake() == nil {
			io.WriteString(peer, hello)
			peer.Close()
		}
	}))
	defer stop()
	*c.Out = (*c.Out)[:0]
	event, sent := c.Begin(shared), 0
	for events = []Kind{event}; ; {
		s.in, *c.Out = append(s.in, *c.Out...), nil
		run()
		if len(s.out) == 0 || event == Fault {
			return events, content, isChanged
		}
		if at >= sent && at < sent+len(s.out) {
			s.out[at-sent] ^= flip
			isChanged = flip != 0
		}
		sent += len(s.out)
		for event = None; len(s.out) > 0 && event != Fault; {
			piece := append(bytes.Clone(c.Partial), s.out[:min(n, len(s.out))]...)
			s.out = s.out[min(n, len(s.out)):]
			for event = Content; event != None && event != Fault; {
				var plain []byte
				event, plain, piece = c.Next(piece)
				if content = append(content, plain...); event != None {
					events = append(events, event)
				}
			}
		}
	}
}

// serverConfig is of a server with tickets and a certificate that nobody knows.
func serverConfig(t testing.TB, version uint16) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(10, 0, 0)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, MinVersion: version, MaxVersion: version,
	}
}

// FuzzHandshake has a client connect twice to a real server of TLS 1.2 or 1.3 with tickets, wherever its bytes are cut. The second connection
// resumes the first one if that had a session to keep. If a byte of the first connection is changed, nothing but the server's own content
// passes, and the second one still works.
func FuzzHandshake(f *testing.F) {
	configs := map[bool]*tls.Config{false: serverConfig(f, tls.VersionTLS12), true: serverConfig(f, tls.VersionTLS13)}
	for _, is13 := range []bool{false, true} {
		f.Add(is13, 0, 0, byte(0))
		f.Add(is13, 1<<16-1, 0, byte(0))
		for _, at := range []int{0, 4, 5, 20, 50, 130, 400, 700, 900} {
			f.Add(is13, 100, at, byte(1))
		}
	}
	f.Fuzz(func(t *testing.T, is13 bool, n, at int, flip byte) {
		n = 1 + n&0xffff
		shared := NewShared(&tls.Config{ServerName: "localhost", InsecureSkipVerify: true}, false, 1)
		c := &Conn{Out: new([]byte)}
		defer c.Close()
		events, content, isChanged := converse(c, shared, configs[is13], n, at, flip)
		c.Close()
		if !bytes.HasPrefix([]byte(hello), content) {
			t.Fatalf("%q passed", content)
		}
		if isWhole := string(content) == hello; !isChanged && !isWhole {
			t.Fatalf("content %q: %v, %q", content, events, c.Fault)
		}
		hasSession := c.kept != nil
		if !isChanged && !hasSession {
			t.Fatal("no session was kept")
		}
		events, content, _ = converse(c, shared, configs[is13], n, -1, 0)
		if string(content) != hello || c.Agreed.IsResumed != hasSession {
			t.Errorf("the second connection: %q, resumed %t: %v, %q", content, c.Agreed.IsResumed, events, c.Fault)
		}
	})
}

// What is no ticket is passed over, and a ticket may be in pieces or come after others.
func TestTicketsOfAnyShape(t *testing.T) {
	config := serverConfig(t, tls.VersionTLS13)
	config.SessionTicketsDisabled = true
	for name, test := range map[string]struct {
		records [][]byte
		isKept  bool
	}{
		"none":              {},
		"no message":        {[][]byte{{99, 0, 0, 0}}, false},
		"not a ticket":      {[][]byte{append([]byte{4, 0, 0, 200}, make([]byte, 200)...)}, false},
		"too long":          {[][]byte{{4, 0xff, 0xff, 0xff}, make([]byte, 16384)}, false},
		"of a broken shape": {[][]byte{{4, 0, 0, 1, 0}, ticketOf("x")}, false},
		"one":               {[][]byte{ticketOf("x")}, true},
		"many":              {[][]byte{bytes.Repeat(ticketOf("x"), 50)}, true},
		"one byte a record": {pieces(ticketOf("x"), 1), true},
		"in two":            {pieces(ticketOf("x"), 7), true},
	} {
		shared := NewShared(&tls.Config{ServerName: "localhost", InsecureSkipVerify: true}, false, 1)
		c := &Conn{Out: new([]byte)}
		defer c.Close()
		converse(c, shared, config, 1<<16, -1, 0)
		server := c.in
		for _, record := range test.records {
			if event, _, _ := c.Next(server.SealOne(nil, Handshake, record)); event != None {
				t.Errorf("%s: %v %s", name, event, c.Fault)
			}
		}
		if isKept := c.kept != nil; isKept != test.isKept {
			t.Errorf("%s: there is a session to resume: %t", name, isKept)
		}
	}
}

func ticketOf(label string) []byte {
	body := []byte{0, 0, 0x0e, 0x10, 0, 0, 0, 0, 1, 0, 0, byte(len(label))}
	body = append(append(body, label...), 0, 0)
	return append([]byte{4, 0, 0, byte(len(body))}, body...)
}

func pieces(p []byte, n int) (parts [][]byte) {
	for ; len(p) > n; p = p[n:] {
		parts = append(parts, p[:n])
	}
	return append(parts, p)
}
