package responder

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// start runs a responder for the test, after which nothing of it is left.
func start(t testing.TB, o Options) *Responder {
	t.Helper()
	if o.Threads == 0 {
		o.Threads = 1
	}
	// Start may change it, and the testing package minds.
	procs := runtime.GOMAXPROCS(0)
	files := openFiles(t)
	r, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		runtime.GOMAXPROCS(procs)
		// What the test itself has opened may take a moment to close.
		eventually(t, func() bool { return openFiles(t) <= files }, "files stay open")
	})
	return r
}

func openFiles(t testing.TB) int {
	t.Helper()
	// What Go's network poller opens once and keeps is left out.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	sockets := 0
	for _, entry := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && (strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "pipe:")) {
			sockets++
		}
	}
	return sockets
}

func eventually(t testing.TB, holds func() bool, complaint string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error(complaint)
			return
		}
	}
}

// dial connects, with a time limit for all that follows.
func dial(t testing.TB, r *Responder) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", r.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c.(*net.TCPConn)
}

// mustRead reads exactly these bytes.
func mustRead(t testing.TB, c io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("read %q (%v), want %q", got[:n], err, want)
	}
}

// mustEnd reads to the end, of which a reset is one too, and returns what came before it.
func mustEnd(t testing.TB, c io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(c)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Fatalf("the connection stays open after %q", all)
	}
	return string(all)
}

// certificateFile writes a key and its certificate as bakeoff keeps them.
func certificateFile(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	file := filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestOptionsThatAreWrong(t *testing.T) {
	certificate := certificateFile(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		`--protocol "h3" is not known; use http/1.1, h2 or h2c`:               {Protocol: "h3", Threads: 1},
		"--body-bytes must be 0 to 1099511627776, got -1":                     {Protocol: HTTP11, BodyBytes: -1, Threads: 1},
		"--body-bytes must be 0 to 1099511627776, got 1099511627777":          {Protocol: HTTP11, BodyBytes: 1<<40 + 1, Threads: 1},
		"--threads must be 1 to 256, got 0":                                   {Protocol: HTTP11},
		"--threads must be 1 to 256, got 257":                                 {Protocol: HTTP11, Threads: 257},
		"--protocol h2 is HTTP/2 over TLS: name a file with --certificate, o": {Protocol: H2, Threads: 1},
		"--protocol h2c is HTTP/2 without TLS: leave --certificate out, or u": {Protocol: H2C, Threads: 1, Certificate: certificate},
		"--certificate cannot be read: open /nowhere: no such file":           {Protocol: H2, Threads: 1, Certificate: "/nowhere"},
		"--certificate " + empty + " has no key with its chain in it: ":       {Protocol: H2, Threads: 1, Certificate: empty},
	} {
		r, err := Start(o)
		if err == nil {
			r.Close()
			t.Errorf("%+v is taken, want %q", o, want)
		} else if !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %q, want one line that begins with %q", o, err, want)
		}
	}
}

func TestItListensOnLoopbackOnly(t *testing.T) {
	for _, o := range []Options{{Protocol: HTTP11}, {Protocol: H2, Certificate: certificateFile(t)}} {
		r := start(t, o)
		host, port, err := net.SplitHostPort(r.Address())
		if err != nil || host != "127.0.0.1" || port == "0" {
			t.Errorf("the address is %s (%v)", r.Address(), err)
		}
		// Another address of this machine's loopback network.
		if c, err := net.DialTimeout("tcp", "127.0.0.2:"+port, time.Second); err == nil {
			c.Close()
			t.Errorf("%s is answered on 127.0.0.2 too", o.Protocol)
		}
	}
}

func TestCloseEndsWhatIsOpen(t *testing.T) {
	certificate := certificateFile(t)
	for _, o := range []Options{{Protocol: HTTP11, Threads: 2}, {Protocol: H2C}, {Protocol: HTTP11, Certificate: certificate}} {
		r := start(t, o)
		idle := dial(t, r)
		if o.Certificate != "" {
			// In the middle of a handshake.
			idle.Write([]byte{22, 3, 1})
		}
		busy := io.ReadWriter(dial(t, r))
		if o.Certificate != "" {
			busy = tls.Client(busy.(net.Conn), &tls.Config{InsecureSkipVerify: true})
		}
		// The beginning of a request, or of HTTP/2's preface.
		busy.Write([]byte("PRI * HTTP/"))
		eventually(t, func() bool { return r.connections() == 2 }, fmt.Sprintf("%+v: two connections are not seen, %d are", o, r.connections()))
		r.Close()
		mustEnd(t, idle)
		mustEnd(t, busy)
		if _, err := net.Dial("tcp", r.Address()); err == nil {
			t.Error("it still listens")
		}
	}
}

// connections are those that are open.
func (r *Responder) connections() int {
	if r.secure != nil {
		r.secure.mu.Lock()
		defer r.secure.mu.Unlock()
		return len(r.secure.open)
	}
	return int(r.open.Load())
}
