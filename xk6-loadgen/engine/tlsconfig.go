package engine

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
)

// TLSOptions say what the client offers in the handshake. Sessions are never resumed: each connection pays for a whole
// handshake.
type TLSOptions struct {
	// InsecureSkipVerify accepts any certificate, as load generators do.
	InsecureSkipVerify bool
	// MinVersion and MaxVersion are "TLSv1.2" or "TLSv1.3"; empty: both are offered.
	MinVersion, MaxVersion string
	// Ciphers are those of TLS 1.2 in OpenSSL's names; empty: all of cipherSuites. Their order is crypto/tls's own, and
	// TLS 1.3's are not for the client to choose in Go.
	Ciphers []string
	// Curves for the key exchange: X25519, P-256, P-384, P-521 (OpenSSL's prime256v1, secp384r1 and secp521r1 are
	// understood); empty: these four, as h2load offers them. Their order is crypto/tls's own.
	Curves []string
	// ServerName is the name that is asked for (SNI), and that a certificate is checked for; empty: the address's own, which
	// is none where the address is a number.
	ServerName string
}

func (t TLSOptions) isZero() bool {
	return t.MinVersion == "" && t.MaxVersion == "" && len(t.Ciphers) == 0 && len(t.Curves) == 0 && t.ServerName == ""
}

// TLSState is what a handshake came to, in OpenSSL's names.
type TLSState struct{ Version, Cipher, KeyExchange string }

// cipherSuites are the AEAD suites of TLS 1.2 that Go and the record layer speak.
var cipherSuites = []struct {
	name string
	id   uint16
}{
	{"ECDHE-ECDSA-AES128-GCM-SHA256", tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	{"ECDHE-RSA-AES128-GCM-SHA256", tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
	{"ECDHE-ECDSA-AES256-GCM-SHA384", tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
	{"ECDHE-RSA-AES256-GCM-SHA384", tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384},
	{"ECDHE-ECDSA-CHACHA20-POLY1305", tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
	{"ECDHE-RSA-CHACHA20-POLY1305", tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256},
}

// curves are h2load's defaults. Go would add key shares of 1.2 kB for post-quantum ones.
var curves = []struct {
	name, alias string
	id          tls.CurveID
}{
	{"X25519", "x25519", tls.X25519},
	{"P-256", "prime256v1", tls.CurveP256},
	{"P-384", "secp384r1", tls.CurveP384},
	{"P-521", "secp521r1", tls.CurveP521},
}

var tlsVersions = []struct {
	name string
	id   uint16
}{{"TLSv1.2", tls.VersionTLS12}, {"TLSv1.3", tls.VersionTLS13}}

// config is what all handshakes of a run have in common. Its errors name the option.
func (t TLSOptions) config(protocol Protocol, host string) (*tls.Config, error) {
	if t.ServerName != "" {
		host = t.ServerName
	}
	c := &tls.Config{
		ServerName: host, InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the person's choice
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13,
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
	switch protocol {
	case H2:
		c.NextProtos = []string{"h2"}
	case HTTP11:
		c.NextProtos = []string{"http/1.1"}
	}
	var err error
	if c.MinVersion, err = versionID("minVersion", t.MinVersion, c.MinVersion); err != nil {
		return nil, err
	}
	if c.MaxVersion, err = versionID("maxVersion", t.MaxVersion, c.MaxVersion); err != nil {
		return nil, err
	}
	if c.MinVersion > c.MaxVersion {
		return nil, errors.New("tls: minVersion is above maxVersion")
	}
	for _, name := range t.Ciphers {
		id, err := cipherID(name)
		if err != nil {
			return nil, err
		}
		c.CipherSuites = append(c.CipherSuites, id)
	}
	if len(t.Ciphers) == 0 {
		for _, suite := range cipherSuites {
			c.CipherSuites = append(c.CipherSuites, suite.id)
		}
	}
	for _, name := range t.Curves {
		id, err := curveID(name)
		if err != nil {
			return nil, err
		}
		c.CurvePreferences = append(c.CurvePreferences, id)
	}
	if len(t.Curves) == 0 {
		for _, curve := range curves {
			c.CurvePreferences = append(c.CurvePreferences, curve.id)
		}
	}
	return c, nil
}

func versionID(option, name string, otherwise uint16) (uint16, error) {
	if name == "" {
		return otherwise, nil
	}
	for _, v := range tlsVersions {
		if v.name == name {
			return v.id, nil
		}
	}
	return 0, fmt.Errorf("tls: %s must be TLSv1.2 or TLSv1.3, got %q", option, name)
}

func cipherID(name string) (uint16, error) {
	var names []string
	for _, suite := range cipherSuites {
		if strings.EqualFold(suite.name, name) {
			return suite.id, nil
		}
		names = append(names, suite.name)
	}
	if strings.HasPrefix(strings.ToUpper(name), "TLS_") {
		return 0, fmt.Errorf("tls: ciphers choose for TLS 1.2; %s is TLS 1.3's, set it in the server's config", name)
	}
	return 0, fmt.Errorf("tls: there is no cipher %q; there are: %s", name, strings.Join(names, ", "))
}

func curveID(name string) (tls.CurveID, error) {
	var names []string
	for _, curve := range curves {
		if strings.EqualFold(curve.name, name) || strings.EqualFold(curve.alias, name) {
			return curve.id, nil
		}
		names = append(names, curve.name)
	}
	return 0, fmt.Errorf("tls: there is no curve %q; there are: %s", name, strings.Join(names, ", "))
}

// stateOf names what was negotiated. The names of TLS 1.3's suites are the same in Go and OpenSSL.
func stateOf(state tls.ConnectionState) *TLSState {
	s := &TLSState{Cipher: tls.CipherSuiteName(state.CipherSuite), KeyExchange: state.CurveID.String()}
	for _, v := range tlsVersions {
		if v.id == state.Version {
			s.Version = v.name
		}
	}
	for _, suite := range cipherSuites {
		if suite.id == state.CipherSuite {
			s.Cipher = suite.name
		}
	}
	for _, curve := range curves {
		if curve.id == state.CurveID {
			s.KeyExchange = curve.name
		}
	}
	return s
}
