package engine

import (
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

// handleTLS handles an event of TLS. A fault ends the connection.
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

// withHint adds to what a handshake failed for what in the options may be why: curves that the server does not know, or an address, which has
// no name for SNI (RFC 6066, section 3).
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
