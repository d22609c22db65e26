package engine

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// opensslServer is openssl s_server with a cipher of TLS 1.3, to be launched, and the address that it will listen on. The test is
// skipped without openssl.
func opensslServer(t *testing.T, cipher string, more ...string) (server *exec.Cmd, address string) {
	t.Helper()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	file := filepath.Join(t.TempDir(), "server.pem")
	key, err := x509.MarshalPKCS8PrivateKey(ecdsaKey().PrivateKey)
	must(t, err)
	both := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ecdsaKey().Certificate[0]})...)
	must(t, os.WriteFile(file, both, 0o600))
	address = freeAddress(t)
	words := []string{"s_server", "-accept", address, "-cert", file, "-key", file, "-tls1_3", "-ciphersuites", cipher}
	return exec.Command(openssl, append(words, more...)...), address
}

// TestEveryCipherOfTLS13 needs a server whose ciphers can be chosen in TLS 1.3, which Go's cannot.
func TestEveryCipherOfTLS13(t *testing.T) {
	for _, cipher := range []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"} {
		t.Run(cipher, func(t *testing.T) {
			server, address := opensslServer(t, cipher, "-www", "-quiet")
			launch(t, server)
			dialSoon(t, address).Close()
			// It serves one connection after the other, and closes each after its response.
			o := options("https://" + address + "/")
			o.Connections, o.Requests, o.TLS.InsecureSkipVerify = 1, 5, true
			r := load(t, o)
			if want := (TLSState{"TLSv1.3", cipher, "X25519"}); r.Responses[0] != 5 || r.TLS == nil || *r.TLS != want || r.BodyTotal() < 5*500 {
				t.Errorf("responses %v, %d bytes, TLS %+v: %s", r.Responses, r.BodyTotal(), r.TLS, r.ErrorExample)
			}
		})
	}
}
