//gosec:disable G402 -- the user asks for it
package engine

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

// loopTLS is a loop's part in TLS over TCP. QUIC has only the state.
type loopTLS struct {
	shared     *tlsconn.Shared // nil without TLS
	state      *TLSState       // the outcome of the first handshake
	handshakes int             // handshakes are under way, or will be once TCP is connected.
}

// receivedTLS handles the records in p, and keeps the beginning of one.
func (c *conn) receivedTLS(p []byte) {
	for generation := c.generation; c.generation == generation; {
		event, content, rest := c.secure.Next(p)
		if event == tlsconn.None {
			return
		}
		c.handleTLS(event, content)
		p = rest
	}
}

func (c *conn) handleTLS(event tlsconn.Kind, content []byte) {
	l := c.loop
	switch event {
	case tlsconn.Content:
		c.deliver(content)
	case tlsconn.Waiting:
		c.pump()
	case tlsconn.Up:
		agreed := c.secure.Agreed
		if l.tls.state == nil {
			l.tls.state = stateOf(agreed.Version, agreed.CipherSuite, agreed.Curve)
		}
		l.wire.Handshakes++
		if agreed.IsResumed {
			l.wire.Resumed++
		}
		l.clock = l.shared.now() // The client's own work for the handshake is part of the connect time
		l.tls.handshakes--
		c.isUp()
		c.session.connected() // The rest of the handshake goes out with its first bytes
	case tlsconn.Closed:
		c.peerClosed = true
	case tlsconn.Fault:
		example := c.secure.Fault
		if c.secure.IsHandshaking() {
			example = l.plan.withHint(example)
		}
		c.fail(ErrTLS, CauseOther, example)
	}
}

// ofNoName are alerts of servers that have no certificate for the name, or without one (RFC 8446, section 6.2).
var ofNoName = []string{"internal error", "unrecognized name", "handshake failure"}

// withHint adds which options may have made a handshake fail: curves, or an address, which has no name for SNI (RFC 6066, section 3).
func (p *plan) withHint(text string) string {
	alert, isAlert := strings.CutPrefix(text, tlsconn.EndedByAlert)
	if isAlert && alert == "handshake failure" && len(p.TLS.Curves) > 0 {
		return text + " (the load offers no other curves than " + strings.Join(p.TLS.Curves, ", ") + ": does the server know one of them?)"
	}
	if name := p.tls.ServerName; !isAlert || !slices.Contains(ofNoName, alert) || net.ParseIP(name) == nil {
		return text
	}
	return text + " (the load has no name for SNI, since its URL has an address: take the name of a site that the server has a certificate for)"
}

// TLSOptions say what the client offers. Unless Resume says otherwise, each connection pays for a whole handshake.
type TLSOptions struct {
	InsecureSkipVerify bool     `js:"insecureSkipVerify"` // InsecureSkipVerify accepts any certificate, as load generators do
	MinVersion         string   `js:"minVersion"`         // MinVersion and MaxVersion are "TLSv1.2" or "TLSv1.3"; empty: both
	MaxVersion         string   `js:"maxVersion"`
	Ciphers            []string `js:"ciphers"`    // Ciphers of TLS 1.2 in OpenSSL's names; empty: all of cipherSuites. Their order is Go's own.
	Curves             []string `js:"curves"`     // Curves are key exchanges, also in OpenSSL's names; empty: the four of h2load. Their order is Go's own.
	ServerName         string   `js:"serverName"` // for SNI and the certificate; empty: the address's own, none for a number
	// Resume is the share, 0 to 1, of the connections after a slot's first one that resume its session by a ticket.
	Resume float64 `js:"resume"`
}

// isZero tells whether an http:// address may have these. insecureSkipVerify does no harm there.
func (t TLSOptions) isZero() bool {
	return t.MinVersion == "" && t.MaxVersion == "" && len(t.Ciphers) == 0 && len(t.Curves) == 0 && t.ServerName == "" && t.Resume == 0
}

// TLSState is what a handshake negotiated, in OpenSSL's names.
type TLSState struct{ Version, Cipher, KeyExchange string }

// named is a part of a handshake by OpenSSL's name, or an alias.
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

// usualCurves are h2load's defaults. Browsers offer a post-quantum key exchange as well, with a key share of 1.2 kB.
var usualCurves = []named[tls.CurveID]{
	{"X25519", "x25519", tls.X25519},
	{"P-256", "prime256v1", tls.CurveP256},
	{"P-384", "secp384r1", tls.CurveP384},
	{"P-521", "secp521r1", tls.CurveP521},
}

var curves = append(slices.Clone(usualCurves),
	named[tls.CurveID]{name: "X25519MLKEM768", id: tls.X25519MLKEM768},
	named[tls.CurveID]{name: "SecP256r1MLKEM768", id: tls.SecP256r1MLKEM768})

var tlsVersions = []named[uint16]{{name: "TLSv1.2", id: tls.VersionTLS12}, {name: "TLSv1.3", id: tls.VersionTLS13}}

// config is the configuration that tlsconn.NewShared clones for a loop's key log and sessions. Without Resume it leaves tickets out of the ClientHello.
func (t TLSOptions) config(protocol Protocol, host string) (*tls.Config, error) {
	c := &tls.Config{
		ServerName: cmp.Or(t.ServerName, host), InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the person's choice
		SessionTicketsDisabled: t.Resume == 0, DynamicRecordSizingDisabled: true,
	}
	if protocol != HTTP10 {
		c.NextProtos = []string{string(protocol)} // Protocols are named as in ALPN. HTTP/1.0 is offered without, as by ab
	}
	versions, err := idsOf("version", []string{cmp.Or(t.MinVersion, "TLSv1.2"), cmp.Or(t.MaxVersion, "TLSv1.3")}, tlsVersions)
	if err != nil {
		return nil, err
	}
	c.MinVersion, c.MaxVersion = versions[0], versions[1]
	var offerErr, cipherErr, curveErr error
	switch {
	case !(t.Resume >= 0 && t.Resume <= 1):
		offerErr = fmt.Errorf("tls: resume is the share of new connections that resume a session, 0 to 1, got %g", t.Resume)
	case t.Resume > 0 && protocol == H3:
		offerErr = errors.New("tls: resume is not for HTTP/3, which makes a whole handshake for each connection here; leave it out")
	case c.MinVersion > c.MaxVersion:
		offerErr = errors.New("tls: minVersion is above maxVersion")
	case protocol == H3 && c.MaxVersion == tls.VersionTLS12:
		offerErr = errors.New("tls: maxVersion must be TLSv1.3, since HTTP/3 has no other")
	case protocol == H3:
		c.MinVersion = tls.VersionTLS13 // QUIC has no other (RFC 9001, section 4.2)
	}
	c.CipherSuites, cipherErr = idsOf("cipher", t.Ciphers, cipherSuites)
	offered := curves
	if len(t.Curves) == 0 {
		offered = usualCurves
	}
	c.CurvePreferences, curveErr = idsOf("curve", t.Curves, offered)
	return c, cmp.Or(offerErr, cipherErr, curveErr)
}

// idsOf looks names up, without regard to case; no names are all of them. Its error lists what there is.
func idsOf[ID comparable](what string, words []string, all []named[ID]) (ids []ID, err error) {
	var names []string
	for _, known := range all {
		names = append(names, known.name)
		if len(words) == 0 {
			ids = append(ids, known.id)
		}
	}
	for _, word := range words {
		i := slices.IndexFunc(all, func(known named[ID]) bool {
			return strings.EqualFold(known.name, word) || known.alias != "" && strings.EqualFold(known.alias, word)
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

func stateOf(version, cipherSuite uint16, curve tls.CurveID) *TLSState {
	return &TLSState{
		Version:     nameOf(version, tlsVersions, ""),
		Cipher:      nameOf(cipherSuite, cipherSuites, tls.CipherSuiteName(cipherSuite)),
		KeyExchange: nameOf(curve, curves, curve.String()),
	}
}

func nameOf[ID comparable](id ID, all []named[ID], otherwise string) string {
	for _, known := range all {
		if known.id == id {
			return known.name
		}
	}
	return otherwise
}
