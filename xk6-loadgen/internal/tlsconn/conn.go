// Package tlsconn is the client's side of TLS 1.2 (RFC 5246, 5288, 7905) and 1.3 (RFC 8446) on connections of a thread that must not block:
// handshakes, records and tickets. It knows nothing of sockets, clocks and loops.
//
// Conn is TLS on a connection. Bytes of the server go in by Next, which returns one event at a time. crypto/tls makes the handshake. After
// it, Half is the record layer: unlike that of crypto/tls it takes no lock, allocates nothing for a record, and decrypts in place.
package tlsconn

import (
	"bytes"
	"crypto/tls"
	"errors"
	"iter"
	"strings"
)

// Shared is what the connections of a thread share, since it runs one handshake at a time.
type Shared struct {
	config    *tls.Config
	keys      keyLog
	needsALPN bool
}

// NewShared shares a copy of config. With needsALPN a server must agree to the protocol that config offers. resume is the share, 0 to 1, of
// the connections with a session that resume it.
func NewShared(config *tls.Config, needsALPN bool, resume float64) *Shared {
	s := &Shared{config: config.Clone(), needsALPN: needsALPN}
	s.config.KeyLogWriter = &s.keys
	if resume > 0 {
		s.config.ClientSessionCache = &sessions{keys: &s.keys, share: resume}
	}
	return s
}

// Kind says what the server has done.
type Kind uint8

const (
	None    Kind = iota // None: more bytes have to come in. Those of an incomplete record are kept in Partial.
	Waiting             // Waiting: the handshake waits for the server, once Out has been sent.
	Up                  // Up: the handshake is over. It came to Agreed.
	Content             // Content: the record had content. It is valid as long as the bytes that came in.
	Closed              // Closed: the server has ended the session in order. No content follows.
	Fault               // Fault: the connection cannot go on. Fault is why.
)

// Agreed is what a handshake came to.
type Agreed struct {
	Version, CipherSuite uint16
	Curve                tls.CurveID
	IsResumed            bool
}

// Conn is TLS on one connection at a time. After the handshake of crypto/tls, the record layer has its keys from the key log.
type Conn struct {
	Out     *[]byte // Out is where a handshake appends what is to be sent.
	Partial []byte  // Partial is the beginning of a record whose end has not come in yet. The next bytes follow it.
	Agreed  Agreed
	Fault   string

	shared    *Shared
	handshake *handshake // nil once it is over
	in, out   Half
	tickets   *ticketReader // nil once there is a ticket, and without resumption
	kept      *kept         // what the next connection may resume
}

// Begin begins a connection in place of the one before. crypto/tls blocks in Read, so it runs as a coroutine that Read pauses.
func (c *Conn) Begin(shared *Shared) Kind {
	h := &handshake{conn: c, secrets: map[string][]byte{}}
	*c = Conn{Out: c.Out, shared: shared, handshake: h, Partial: c.Partial[:0], kept: c.kept}
	h.tls = tls.Client(h, shared.config)
	h.resume, h.cancel = iter.Pull(iter.Seq[struct{}](func(pause func(struct{}) bool) {
		h.pause = pause
		h.result = h.tls.Handshake()
	}))
	return c.advance(nil)
}

// IsHandshaking tells whether a handshake is under way.
func (c *Conn) IsHandshaking() bool { return c.handshake != nil }

// The random of both Hellos follows type, length and version (RFC 5246, section 7.4.1.2 and 3).
const randomStart, helloBytes = 1 + 3 + 2, 1 + 3 + 2 + 32

// advance gives the handshake a record (nil: at first none) and runs it until it needs another one, or is over.
func (c *Conn) advance(record []byte) Kind {
	h := c.handshake
	if missing := helloBytes - len(h.hello); missing > 0 && len(record) > 0 && RecordType(record[0]) == Handshake {
		content := record[HeaderBytes:]
		h.hello = append(h.hello, content[:min(missing, len(content))]...)
	}
	h.record, c.shared.keys.current = record, h
	if _, waits := h.resume(); waits {
		return Waiting
	}
	if h.result == nil {
		h.result = c.takeOver()
	}
	if h.result != nil {
		return c.fail(Explain(h.result))
	}
	return Up
}

func (c *Conn) fail(text string) Kind {
	c.Fault = text
	return Fault
}

// takeOver checks what was agreed on, and makes both halves from the logged secrets. crypto/tls has no part in what follows.
func (c *Conn) takeOver() error {
	h := c.handshake
	state := h.tls.ConnectionState()
	suite, err := SuiteOf(state.CipherSuite)
	if err != nil {
		return err
	}
	if c.shared.needsALPN && state.NegotiatedProtocol == "" {
		return ErrNoProtocol
	}
	if len(h.record) > 0 {
		return errors.New("a record goes on after the handshake's end")
	}
	if state.Version == tls.VersionTLS13 {
		if c.in, err = NewHalf13(suite, h.secrets["SERVER_TRAFFIC_SECRET_0"]); err != nil {
			return err
		}
		c.out, err = NewHalf13(suite, h.secrets["CLIENT_TRAFFIC_SECRET_0"])
	} else {
		c.in, c.out, err = NewHalves12(suite, h.secrets[master12], h.clientRandom, h.hello[randomStart:])
	}
	if err != nil {
		return err
	}
	c.Agreed = Agreed{state.Version, state.CipherSuite, state.CurveID, state.DidResume}
	c.handshake, h.pause = nil, nil
	c.awaitTickets(h)
	return nil
}

// Next takes records off p, decrypted in place, up to the next event, and returns the others. p begins with what was in Partial.
func (c *Conn) Next(p []byte) (event Kind, content, rest []byte) {
	for len(p) >= HeaderBytes {
		kind := RecordType(p[0])
		if kind < ChangeCipherSpec || kind > ApplicationData {
			if c.handshake != nil {
				return c.fail(speaksNoTLS), nil, nil
			}
			return c.fail("what came in is no TLS record"), nil, nil
		}
		length := int(p[3])<<8 | int(p[4])
		if length > MaxPlaintextBytes+maxGrowth12 || c.in.is13 && length > MaxPlaintextBytes+maxGrowth13 {
			return c.fail(errRecordSize.Error()), nil, nil
		}
		if len(p) < HeaderBytes+length {
			break
		}
		record := p[:HeaderBytes+length]
		p = p[len(record):]
		if c.handshake != nil {
			return c.advance(record), nil, p
		}
		if event, content = c.open(record); event != None {
			return event, content, p
		}
	}
	c.Partial = append(c.Partial[:0], p...)
	return None, nil, nil
}

func (c *Conn) open(record []byte) (event Kind, content []byte) {
	kind, content, err := c.in.Open(record)
	if err != nil {
		return c.fail(err.Error()), nil
	}
	switch kind {
	case ApplicationData:
		if len(content) > 0 {
			return Content, content
		}
	case Alert:
		return c.alert(content), nil
	case Handshake:
		// Session tickets (RFC 8446, section 4.6.1) and, in TLS 1.2, HelloRequests (RFC 5246, section 7.4.1.1) may be ignored.
		if c.in.is13 && bytes.HasPrefix(content, keyUpdate) {
			return c.fail("the server updates its keys within a connection, which the engine does not support"), nil
		}
		c.readTicket(content)
	default:
		return c.fail("a record of a type that does not belong there"), nil
	}
	return None, nil
}

const alertCloseNotify, alertUserCancelled = 0, 90

// keyUpdate begins a KeyUpdate message (RFC 8446, section 4.6.3). Servers send it after 2^24 records at the earliest.
var keyUpdate = []byte{24, 0, 0, 1}

var closeNotify = []byte{1, alertCloseNotify}

// alert handles an alert after the handshake (RFC 8446, section 6). Only close_notify ends the connection in order.
func (c *Conn) alert(content []byte) Kind {
	switch {
	case len(content) != 2:
		return c.fail("an alert is not 2 bytes long")
	case content[1] == alertCloseNotify:
		return Closed // The FIN may come later, but no byte before it
	case content[1] != alertUserCancelled:
		return c.fail(EndedByAlert + strings.TrimPrefix(tls.AlertError(content[1]).Error(), "tls: "))
	}
	return None
}

// Seal appends content to dst, encrypted.
func (c *Conn) Seal(dst, content []byte) []byte { return c.out.Seal(dst, ApplicationData, content) }

// SealEnd appends the alert that ends the session in order.
func (c *Conn) SealEnd(dst []byte) []byte { return c.out.Seal(dst, Alert, closeNotify) }

// Close ends a handshake under way, whose coroutine would otherwise stay, and the wait for a ticket.
func (c *Conn) Close() {
	c.tickets = nil
	if h := c.handshake; h != nil {
		c.handshake = nil
		c.shared.keys.current = h // crypto/tls takes back the session that this one was to resume
		h.cancel()
	}
}
