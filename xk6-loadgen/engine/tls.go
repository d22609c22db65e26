package engine

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"iter"
	"net"
	"os"
	"slices"
	"strings"
)

// secure is TLS on one connection: crypto/tls makes the handshake, and record.go takes over its keys, which come from the key log.
type secure struct {
	conn      *conn
	handshake *handshake // nil once it is over
	in, out   half
	partial   []byte        // the beginning of a record whose end has not come in yet
	tickets   *ticketReader // nil once there is a ticket, and without resumption
	kept      *kept         // what the slot's next connection may resume
}

// handshake runs as a coroutine on the loop's thread. Each record that comes in resumes it. crypto/tls uses it as its net.Conn.
type handshake struct {
	// Conn is nil: crypto/tls calls none of its methods that handshake does not have.
	net.Conn
	conn         *conn
	tls          *tls.Conn
	resume       func() (struct{}, bool) // resume continues the handshake, cancel ends it; in it, pause waits for the next record
	cancel       func()
	pause        func(struct{}) bool // nil once the handshake is over
	result       error
	record       []byte // the unread rest of the present record
	hello        []byte // the beginning of the ServerHello, which may span records. Its random is for TLS 1.2's keys
	clientRandom []byte
	secrets      map[string][]byte // secrets by their labels in the key log
}

// keyLog receives the secrets of the handshake that runs. A loop runs one at a time, so it has one keyLog.
type keyLog struct{ current *handshake }

// Write reads a line of NSS's key log format: label, client random, secret.
func (k *keyLog) Write(line []byte) (int, error) {
	label, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	_, secret, _ := bytes.Cut(rest, []byte(" "))
	k.current.secrets[string(label)], _ = hex.AppendDecode(nil, secret)
	return len(line), nil
}

var errNoProtocol = errors.New("the server does not offer the protocol on this port (ALPN); for h2 or h3 its config has to turn HTTP/2 or HTTP/3 on")

// Read returns bytes of the present record only: crypto/tls must not keep bytes that come after the handshake. Once that is over, the end of
// the record is an error that crypto/tls takes to be temporary.
func (h *handshake) Read(p []byte) (int, error) {
	for len(h.record) == 0 {
		if h.pause == nil {
			return 0, os.ErrDeadlineExceeded
		}
		if !h.pause(struct{}{}) {
			return 0, net.ErrClosed
		}
	}
	n := copy(p, h.record)
	h.record = h.record[n:]
	return n, nil
}

// Write gathers bytes until the handshake waits or ends, so that they leave in one piece. The first are the ClientHello, with its random.
// What crypto/tls has to say after the handshake is not sent: the record layer counts its own records.
func (h *handshake) Write(p []byte) (int, error) {
	if h.pause == nil {
		return len(p), nil
	}
	if h.clientRandom == nil {
		h.clientRandom = bytes.Clone(p[recordHeaderBytes+randomStart : recordHeaderBytes+helloBytes])
	}
	h.conn.backlog = append(h.conn.backlog, p...)
	return len(p), nil
}

// Close leaves the socket to conn, which closes it.
func (*handshake) Close() error { return nil }

// begin starts a handshake. crypto/tls blocks in Read, so it runs as a coroutine that Read pauses, on the loop's thread.
func (s *secure) begin() {
	h := &handshake{conn: s.conn, secrets: map[string][]byte{}}
	*s = secure{conn: s.conn, handshake: h, partial: s.partial[:0], kept: s.kept}
	h.tls = tls.Client(h, s.conn.loop.tls.config)
	h.resume, h.cancel = iter.Pull(iter.Seq[struct{}](func(pause func(struct{}) bool) {
		h.pause = pause
		h.result = h.tls.Handshake()
	}))
	s.advance(nil)
}

// The random of both Hellos follows type, length and version (RFC 5246, section 7.4.1.2 and 3).
const randomStart, helloBytes = 1 + 3 + 2, 1 + 3 + 2 + 32

// advance gives the handshake a record (nil: at first none) and runs it until it needs another one, or is over.
func (s *secure) advance(record []byte) {
	h, l := s.handshake, s.conn.loop
	if missing := helloBytes - len(h.hello); missing > 0 && len(record) > 0 && recordType(record[0]) == recordHandshake {
		content := record[recordHeaderBytes:]
		h.hello = append(h.hello, content[:min(missing, len(content))]...)
	}
	h.record, l.tls.keys.current = record, h
	if _, waits := h.resume(); waits {
		s.conn.pump()
		return
	}
	if h.result == nil {
		h.result = s.takeOver()
	}
	if h.result != nil {
		s.conn.fail(ErrTLS, CauseOther, l.plan.withHint(explainTLS(h.result)))
		return
	}
	l.clock = l.shared.now() // The client's own work for the handshake is part of the connect time
	l.tls.handshakes--
	s.conn.isUp()
	s.conn.session.connected() // The rest of the handshake goes out with its first bytes
}

// takeOver checks what was agreed on, and makes both halves from the logged secrets. crypto/tls has no part in what follows.
func (s *secure) takeOver() error {
	h, l := s.handshake, s.conn.loop
	state := h.tls.ConnectionState()
	suite, err := suiteOf(state.CipherSuite)
	if err != nil {
		return err
	}
	if l.plan.Protocol == H2 && state.NegotiatedProtocol != "h2" {
		return errNoProtocol
	}
	if len(h.record) > 0 {
		return errors.New("a record goes on after the handshake's end")
	}
	if state.Version == tls.VersionTLS13 {
		if s.in, err = newHalf13(suite, h.secrets["SERVER_TRAFFIC_SECRET_0"]); err != nil {
			return err
		}
		s.out, err = newHalf13(suite, h.secrets["CLIENT_TRAFFIC_SECRET_0"])
	} else {
		s.in, s.out, err = newHalves12(suite, h.secrets[master12], h.clientRandom, h.hello[randomStart:])
	}
	if err != nil {
		return err
	}
	if l.tls.state == nil {
		l.tls.state = stateOf(state)
	}
	s.handshake, h.pause = nil, nil
	s.awaitTickets(h)
	l.wire.Handshakes++
	if state.DidResume {
		l.wire.Resumed++
	}
	return nil
}

// received gets whole records and perhaps the beginning of one, which is kept.
func (s *secure) received(p []byte) {
	c := s.conn
	generation := c.generation
	for len(p) >= recordHeaderBytes {
		kind := recordType(p[0])
		if kind < recordChangeCipherSpec || kind > recordApplicationData {
			example := "what came in is no TLS record"
			if s.handshake != nil {
				example = speaksNoTLS
			}
			c.fail(ErrTLS, CauseOther, example)
			return
		}
		length := int(p[3])<<8 | int(p[4])
		if length > maxPlaintextBytes+maxGrowth12 || s.in.is13 && length > maxPlaintextBytes+maxGrowth13 {
			c.fail(ErrTLS, CauseOther, errRecordSize.Error())
			return
		}
		if len(p) < recordHeaderBytes+length {
			break
		}
		record := p[:recordHeaderBytes+length]
		p = p[len(record):]
		if s.handshake != nil {
			s.advance(record)
		} else if err := s.open(record); err != nil {
			c.fail(ErrTLS, CauseOther, err.Error())
		}
		if c.generation != generation {
			return
		}
	}
	s.partial = append(s.partial[:0], p...)
}

// open handles one record after the handshake. Its errors end the connection.
func (s *secure) open(record []byte) error {
	kind, content, err := s.in.open(record)
	if err != nil {
		return err
	}
	switch kind {
	case recordApplicationData:
		if len(content) > 0 {
			s.conn.deliver(content)
		}
	case recordAlert:
		return s.alert(content)
	case recordHandshake:
		// Session tickets (RFC 8446, section 4.6.1) and, in TLS 1.2, HelloRequests (RFC 5246, section 7.4.1.1) may be ignored.
		if s.in.is13 && bytes.HasPrefix(content, keyUpdate) {
			return errors.New("the server updates its keys within a connection, which the engine does not support")
		}
		s.readTicket(content)
	default:
		return errors.New("a record of a type that does not belong there")
	}
	return nil
}

const alertCloseNotify, alertUserCancelled = 0, 90

// keyUpdate begins a KeyUpdate message (RFC 8446, section 4.6.3). Servers send it after 2^24 records at the earliest.
var keyUpdate = []byte{24, 0, 0, 1}

var closeNotify = []byte{1, alertCloseNotify}

// alert handles an alert after the handshake (RFC 8446, section 6). Only close_notify ends the connection in order.
func (s *secure) alert(content []byte) error {
	switch {
	case len(content) != 2:
		return errors.New("an alert is not 2 bytes long")
	case content[1] == alertCloseNotify:
		s.conn.peerClosed = true // The FIN may come later, but no byte before it
	case content[1] != alertUserCancelled:
		return errors.New("the server ended the TLS session: " + strings.TrimPrefix(tls.AlertError(content[1]).Error(), "tls: "))
	}
	return nil
}

// close ends a handshake under way, whose coroutine would otherwise stay, and the wait for a ticket.
func (s *secure) close() {
	s.tickets = nil
	if h := s.handshake; h != nil {
		s.handshake = nil
		s.conn.loop.tls.keys.current = h // crypto/tls takes back the session that this one was to resume
		h.cancel()
	}
}

const endedByAlert = "the server ended the TLS session: "

// ofNoName are alerts of servers that have no certificate for the name, or without one (RFC 8446, section 6.2).
var ofNoName = []string{"internal error", "unrecognized name", "handshake failure"}

// withHint adds to what a handshake failed for what in the options may be why: curves that the server does not know, or an address, which has
// no name for SNI (RFC 6066, section 3).
func (p *plan) withHint(text string) string {
	alert, isAlert := strings.CutPrefix(text, endedByAlert)
	if isAlert && alert == "handshake failure" && len(p.TLS.Curves) > 0 {
		return text + " (the load offers no other curves than " + strings.Join(p.TLS.Curves, ", ") + ": does the server know one of them?)"
	}
	if name := p.tls.ServerName; !isAlert || !slices.Contains(ofNoName, alert) || net.ParseIP(name) == nil {
		return text
	}
	return text + " (the load has no name for SNI, since its URL has an address: take the name of a site that the server has a certificate for)"
}

const speaksNoTLS = "the server does not speak TLS on this port; use http://"

// explainTLS makes one line of a handshake's error, with what to do if that is known.
func explainTLS(err error) string {
	text := strings.TrimPrefix(err.Error(), "tls: ")
	// crypto/tls exports no type for an alert during the handshake.
	alert, isAlert := strings.CutPrefix(text, "remote error: tls: ")
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case isAlert && alert == "no application protocol", err == errNoProtocol:
		return errNoProtocol.Error()
	case isAlert:
		return endedByAlert + alert
	case errors.As(err, &certificate):
		return "the server's certificate is not accepted (" + certificate.Err.Error() + "); set tls.insecureSkipVerify to take any"
	case errors.As(err, &record):
		return speaksNoTLS
	}
	return "TLS handshake: " + text
}
