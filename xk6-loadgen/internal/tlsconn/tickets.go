package tlsconn

import (
	"crypto/tls"
	"errors"
	"os"
)

// Resumption by tickets (RFC 8446, section 2.2; RFC 5077). A Conn is one client: its next connection may resume what its last one was given,
// so there is a session for each Conn at most, and no ticket gets to another server. Which connections resume is spread evenly over those
// that can. Only handshakes and the server's handshake messages come here, no request does.

// kept is a session that the next connection may resume.
type kept struct {
	state  *tls.ClientSessionState
	master []byte // the session's master secret in TLS 1.2, which crypto/tls logs in whole handshakes only; nil in TLS 1.3
}

// sessions is the tls.ClientSessionCache of a thread. crypto/tls calls it for the handshake that runs, which the key log knows.
type sessions struct {
	keys             *keyLog
	share            float64 // of the connections with a session, how many resume it, 0 to 1
	able, resumption int64   // how many connections had a session, and how many of these were to resume it
}

// Get returns the connection's session if this connection is to resume it.
func (s *sessions) Get(string) (*tls.ClientSessionState, bool) {
	h := s.keys.current
	session := h.conn.kept
	if session == nil {
		return nil, false
	}
	s.able++
	if int64(s.share*float64(s.able)+rounding) <= s.resumption {
		return nil, false
	}
	s.resumption++
	if session.master != nil {
		h.secrets[master12] = session.master
	}
	return session.state, true
}

// rounding is more than what products such as 0.9 × 10 lose, and less than a connection.
const rounding = 1e-6

// master12 is the key log's label of TLS 1.2's master secret.
const master12 = "CLIENT_RANDOM"

// Put keeps a session in place of the last one; nil says that this one has expired.
func (s *sessions) Put(_ string, state *tls.ClientSessionState) {
	h := s.keys.current
	h.conn.kept = nil
	if state != nil {
		h.conn.kept = &kept{state, h.secrets[master12]}
	}
}

// ticketReader waits for a ticket of TLS 1.3, which comes after the handshake, encrypted. Only crypto/tls can make a session of it.
type ticketReader struct {
	handshake *handshake
	again     Half // seals what the server sent once more, with the record numbers that crypto/tls expects
	nothing   [1]byte
}

// awaitTickets has the connection that h has made keep the server's ticket. In TLS 1.2 the ticket came in the handshake.
func (c *Conn) awaitTickets(h *handshake) {
	if c.in.is13 && c.shared.config.ClientSessionCache != nil {
		c.tickets = &ticketReader{handshake: h, again: c.in}
	}
}

// readTicket gives crypto/tls a handshake message, or a part of one, until the first ticket, or a message that it does not take.
func (c *Conn) readTicket(content []byte) {
	t, before := c.tickets, c.kept
	if t == nil {
		return
	}
	c.shared.keys.current = t.handshake
	t.handshake.record = t.again.Seal(nil, Handshake, content)
	_, err := t.handshake.tls.Read(t.nothing[:])
	if c.kept != before || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.tickets = nil
	}
}
