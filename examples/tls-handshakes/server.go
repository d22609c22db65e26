// go run server.go KEY, with KEY rsa or ecdsa: answers over TLS with a certificate of its own making. It has session tickets, and
// X25519MLKEM768 from Go 1.24 on.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"time"
)

func newKey(kind string) (crypto.Signer, error) {
	if kind == "rsa" {
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func main() {
	key, err := newKey(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"localhost"}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{
		Addr:      "127.0.0.1:" + os.Getenv("PORT"),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}},
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello\n") }),
		ErrorLog:  log.New(io.Discard, "", 0), // of clients that hang up
	}
	log.Fatal(server.ListenAndServeTLS("", ""))
}
