package engine

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync"
	"time"
)

var (
	rsaKey   = sync.OnceValue(func() tls.Certificate { return certificate(rsa.GenerateKey(rand.Reader, 2048)) })
	ecdsaKey = sync.OnceValue(func() tls.Certificate { return certificate(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
)

func certificate[key crypto.Signer](private key, err error) tls.Certificate {
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

func serverTLS(key func() tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{key()}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
}
