package engine

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
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

// named is something that a handshake offers or comes to, in OpenSSL's words: another word may be understood for it, too.
type named[ID comparable] struct {
	name, alias string
	id          ID
}

// cipherSuites are the AEAD suites of TLS 1.2 that Go and the record layer speak.
var cipherSuites = []named[uint16]{
	{name: "ECDHE-ECDSA-AES128-GCM-SHA256", id: tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	{name: "ECDHE-RSA-AES128-GCM-SHA256", id: tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
	{name: "ECDHE-ECDSA-AES256-GCM-SHA384", id: tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
	{name: "ECDHE-RSA-AES256-GCM-SHA384", id: tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384},
	{name: "ECDHE-ECDSA-CHACHA20-POLY1305", id: tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
	{name: "ECDHE-RSA-CHACHA20-POLY1305", id: tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256},
}

// curves are h2load's defaults. Go would add key shares of 1.2 kB for post-quantum ones.
var curves = []named[tls.CurveID]{
	{"X25519", "x25519", tls.X25519},
	{"P-256", "prime256v1", tls.CurveP256},
	{"P-384", "secp384r1", tls.CurveP384},
	{"P-521", "secp521r1", tls.CurveP521},
}

var tlsVersions = []named[uint16]{{name: "TLSv1.2", id: tls.VersionTLS12}, {name: "TLSv1.3", id: tls.VersionTLS13}}

// config is what all handshakes of a run have in common. Its errors name the option.
func (t TLSOptions) config(protocol Protocol, host string) (*tls.Config, error) {
	if t.ServerName != "" {
		host = t.ServerName
	}
	c := &tls.Config{
		ServerName: host, InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the person's choice
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
	if protocol != HTTP10 {
		// The protocols are called as in ALPN, where HTTP/1.0 does not take part.
		c.NextProtos = []string{string(protocol)}
	}
	var minErr, maxErr, orderErr, cipherErr, curveErr error
	c.MinVersion, minErr = versionID("minVersion", cmp.Or(t.MinVersion, "TLSv1.2"))
	c.MaxVersion, maxErr = versionID("maxVersion", cmp.Or(t.MaxVersion, "TLSv1.3"))
	if c.MinVersion > c.MaxVersion {
		orderErr = errors.New("tls: minVersion is above maxVersion")
	}
	c.CipherSuites, cipherErr = idsOf("cipher", t.Ciphers, cipherSuites)
	c.CurvePreferences, curveErr = idsOf("curve", t.Curves, curves)
	return c, cmp.Or(minErr, maxErr, orderErr, cipherErr, curveErr)
}

func versionID(option, name string) (uint16, error) {
	for _, v := range tlsVersions {
		if v.name == name {
			return v.id, nil
		}
	}
	return 0, fmt.Errorf("tls: %s must be TLSv1.2 or TLSv1.3, got %q", option, name)
}

// idsOf are those of these words; without any, those of all that there are.
func idsOf[ID comparable](what string, words []string, all []named[ID]) (ids []ID, err error) {
	var names []string
	for _, one := range all {
		names = append(names, one.name)
		if len(words) == 0 {
			ids = append(ids, one.id)
		}
	}
	for _, word := range words {
		i := slices.IndexFunc(all, func(one named[ID]) bool {
			return strings.EqualFold(one.name, word) || one.alias != "" && strings.EqualFold(one.alias, word)
		})
		switch {
		case i >= 0:
			ids = append(ids, all[i].id)
		case what == "cipher" && strings.HasPrefix(strings.ToUpper(word), "TLS_"):
			return nil, fmt.Errorf("tls: ciphers choose for TLS 1.2; %s is TLS 1.3's, set it in the server's config", word)
		default:
			return nil, fmt.Errorf("tls: there is no %s %q; there are: %s", what, word, strings.Join(names, ", "))
		}
	}
	return ids, nil
}

// stateOf names what was negotiated. The names of TLS 1.3's suites are the same in Go and OpenSSL.
func stateOf(state tls.ConnectionState) *TLSState {
	return &TLSState{
		Version:     nameOf(state.Version, tlsVersions, ""),
		Cipher:      nameOf(state.CipherSuite, cipherSuites, tls.CipherSuiteName(state.CipherSuite)),
		KeyExchange: nameOf(state.CurveID, curves, state.CurveID.String()),
	}
}

func nameOf[ID comparable](id ID, all []named[ID], otherwise string) string {
	for _, one := range all {
		if one.id == id {
			return one.name
		}
	}
	return otherwise
}
