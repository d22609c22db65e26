package engine

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"runtime"
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
	raw.SetDeadline(time.Now().Add(patient))
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
