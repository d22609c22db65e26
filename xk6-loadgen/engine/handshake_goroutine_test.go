package engine

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The handshake runs in a coroutine of the loop. That holds as long as crypto/tls reads and writes on the goroutine that called
// Handshake, and on no other: here it is told by each of its calls.

// boundConn is a connection that may be used by one goroutine. What crypto/tls would call beside Read and Write panics.
type boundConn struct {
	net.Conn
	t             *testing.T
	raw           net.Conn
	goroutine     string
	reads, writes int
}

// goroutine is what the runtime calls the goroutine that asks.
func goroutine() string {
	stack := make([]byte, 64)
	name, _, _ := bytes.Cut(stack[:runtime.Stack(stack, false)], []byte(" ["))
	return string(name)
}

func (c *boundConn) check(what string) {
	if at := goroutine(); at != c.goroutine {
		c.t.Errorf("a %s on %s, Handshake was called on %s", what, at, c.goroutine)
	}
}

func (c *boundConn) Read(p []byte) (int, error) {
	c.reads++
	c.check("read")
	return c.raw.Read(p)
}

func (c *boundConn) Write(p []byte) (int, error) {
	c.writes++
	c.check("write")
	return c.raw.Write(p)
}

// shakeHands makes a handshake as the engine does, and returns what it came to.
func shakeHands(t *testing.T, address string, o TLSOptions) tls.ConnectionState {
	t.Helper()
	o.InsecureSkipVerify = true
	config, err := o.config(HTTP11, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	config = config.Clone()
	keys := keysOf{}
	config.KeyLogWriter = loggedOn{t, goroutine(), keys}
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(20 * time.Second))
	c := &boundConn{t: t, raw: raw, goroutine: goroutine()}
	client := tls.Client(c, config)
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if c.reads == 0 || c.writes == 0 {
		t.Errorf("%d reads and %d writes", c.reads, c.writes)
	}
	state := client.ConnectionState()
	// Without these there is nothing to take over.
	labels := []string{"CLIENT_RANDOM"}
	if state.Version == tls.VersionTLS13 {
		labels = []string{"CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"}
	}
	for _, label := range labels {
		if len(keys[label]) == 0 {
			t.Errorf("%s is not in the key log", label)
		}
	}
	return state
}

// loggedOn is a key log that may be written by one goroutine.
type loggedOn struct {
	t         *testing.T
	goroutine string
	keysOf
}

func (l loggedOn) Write(line []byte) (int, error) {
	if at := goroutine(); at != l.goroutine {
		l.t.Errorf("the key log is written on %s, Handshake was called on %s", at, l.goroutine)
	}
	return l.keysOf.Write(line)
}

func TestAHandshakeStaysOnItsGoroutine(t *testing.T) {
	plain := func(*tls.Config) {}
	for name, server := range map[string]func(*tls.Config){
		"plain":              plain,
		"asked to try again": func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP521} },
		"asked for a certificate": func(c *tls.Config) {
			c.ClientAuth = tls.RequestClientCert
		},
		"with tickets off": func(c *tls.Config) { c.SessionTicketsDisabled = true },
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for kind, key := range map[string]func() tls.Certificate{"RSA": rsaKey, "ECDSA": ecdsaKey} {
				suites := []string{""}
				if version == tls.VersionTLS12 {
					suites = nil
					for _, cipher := range []string{"AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"} {
						suites = append(suites, "ECDHE-"+kind+"-"+cipher)
					}
				}
				for _, suite := range suites {
					t.Run(fmt.Sprintf("%s, %s, %s %s", name, tls.VersionName(version), kind, suite), func(t *testing.T) {
						config := serverTLS(key)
						config.MinVersion, config.MaxVersion = version, version
						server(config)
						// The client may be through, and gone, before the server is.
						s := serve(t, func(_ *testServer, c net.Conn) { tls.Server(c, config).Handshake() })
						var o TLSOptions
						if suite != "" {
							o.Ciphers = []string{suite}
						}
						state := shakeHands(t, s.listener.Addr().String(), o)
						if got := openSSLName(state.CipherSuite); state.Version != version || suite != "" && got != suite {
							t.Errorf("negotiated %s, %s", tls.VersionName(state.Version), got)
						}
					})
				}
			}
		}
	}
}

// keyUpdater is a server with a given cipher of TLS 1.3, which updates its keys when it is told to: openssl s_server, whose
// standard input has commands. It takes one connection after another. command sends a line and waits until something of it is on
// its way to the client; wasAsked waits until a request has come.
func keyUpdater(t *testing.T, cipher string) (s *testServer, wasAsked func(), command func(string)) {
	t.Helper()
	server, address := opensslServer(t, cipher, "-num_tickets", "0")
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &said{}
	server.Stdout = out
	launch(t, server)
	// What goes through is counted on the way.
	var answered atomic.Int64
	s = serve(t, func(_ *testServer, c net.Conn) {
		upstream := dialSoon(t, address)
		defer upstream.Close()
		go func() {
			io.Copy(upstream, c)
			upstream.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(c, countingReader{upstream, &answered})
	})
	wasAsked = func() { waitFor(t, func() bool { return strings.Contains(out.text(), "GET / HTTP/1.1") }) }
	return s, wasAsked, func(line string) {
		before := answered.Load()
		if _, err := io.WriteString(in, line); err != nil {
			t.Error(err)
		}
		waitFor(t, func() bool { return answered.Load() > before })
	}
}

func TestKeyUpdatesOfEveryCipher(t *testing.T) {
	for _, cipher := range []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"} {
		t.Run(cipher, func(t *testing.T) {
			s, wasAsked, command := keyUpdater(t, cipher)
			address := s.listener.Addr().String()
			if state := shakeHands(t, address, TLSOptions{}); tls.CipherSuiteName(state.CipherSuite) != cipher {
				t.Errorf("negotiated %s", tls.CipherSuiteName(state.CipherSuite))
			}
			done := make(chan outcome)
			go func() {
				o := options("https://" + address + "/")
				o.Connections, o.Requests, o.TLS.InsecureSkipVerify = 1, 1, true
				done <- load(t, context.Background(), o)
			}()
			wasAsked()
			// With an answer asked for and without, before the response and within it.
			for _, line := range []string{"k\n", "K\n", "K\n", "HTTP/1.1 200 OK\nContent-Length: 6\n\n", "k\n", "hello\n"} {
				command(line)
			}
			r := <-done
			if want := (TLSState{"TLSv1.3", cipher, "X25519"}); r.Responses[0] != 1 || r.TLS == nil || *r.TLS != want || r.BodyBytes != 6 {
				t.Errorf("responses %v, %d bytes, TLS %+v: %s", r.Responses, r.BodyBytes, r.TLS, r.ErrorExample)
			}
		})
	}
}

// said is what a program has written so far.
type said struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}
