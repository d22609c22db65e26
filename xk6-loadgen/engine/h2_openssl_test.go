package engine

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// opensslAndKey is where openssl is, and a file with a key and its certificate; the test is skipped without openssl.
func opensslAndKey(t *testing.T) (openssl, file string) {
	t.Helper()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	file = filepath.Join(t.TempDir(), "server.pem")
	key, err := x509.MarshalPKCS8PrivateKey(ecdsaKey().PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ecdsaKey().Certificate[0]})...)
	if err := os.WriteFile(file, both, 0o600); err != nil {
		t.Fatal(err)
	}
	return openssl, file
}

// TestEveryCipherOfTLS13 needs a server whose ciphers can be chosen in TLS 1.3, which Go's cannot.
func TestEveryCipherOfTLS13(t *testing.T) {
	openssl, file := opensslAndKey(t)
	for _, cipher := range []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"} {
		t.Run(cipher, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := listener.Addr().String()
			listener.Close()
			server := exec.Command(openssl, "s_server", "-accept", address, "-cert", file, "-key", file, "-tls1_3", "-ciphersuites", cipher, "-www", "-quiet")
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			defer server.Wait()
			defer server.Process.Kill()
			waitFor(t, func() bool {
				c, err := net.Dial("tcp", address)
				if err == nil {
					c.Close()
				}
				return err == nil
			})
			// It serves one connection after the other, and closes each after its response.
			o := options("https://" + address + "/")
			o.Connections, o.Requests, o.TLS.InsecureSkipVerify = 1, 5, true
			r := load(t, context.Background(), o)
			if want := (TLSState{"TLSv1.3", cipher, "X25519"}); r.Responses[0] != 5 || r.TLS == nil || *r.TLS != want || r.BodyBytes < 5*500 {
				t.Errorf("responses %v, %d bytes, TLS %+v: %s", r.Responses, r.BodyBytes, r.TLS, r.ErrorExample)
			}
		})
	}
}
