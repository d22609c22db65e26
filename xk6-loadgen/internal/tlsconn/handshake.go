package tlsconn

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"strings"
)

// handshake runs as a coroutine on the caller's thread. Each record that comes in resumes it. crypto/tls uses it as its net.Conn.
type handshake struct {
	// Conn is nil: crypto/tls calls none of its methods that handshake does not have.
	net.Conn
	conn         *Conn
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

// keyLog receives the secrets of the handshake that runs. A thread runs one at a time, so it has one keyLog.
type keyLog struct{ current *handshake }

// Write reads a line of NSS's key log format: label, client random, secret.
func (k *keyLog) Write(line []byte) (int, error) {
	label, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	_, secret, _ := bytes.Cut(rest, []byte(" "))
	k.current.secrets[string(label)], _ = hex.AppendDecode(nil, secret)
	return len(line), nil
}

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
		h.clientRandom = bytes.Clone(p[HeaderBytes+randomStart : HeaderBytes+helloBytes])
	}
	*h.conn.Out = append(*h.conn.Out, p...)
	return len(p), nil
}

// Close leaves the socket to the caller.
func (*handshake) Close() error { return nil }

// ErrNoProtocol is the error of a server that does not agree to the only protocol that was offered.
var ErrNoProtocol = errors.New("the server does not offer the protocol on this port (ALPN); for h2 or h3 its config has to turn HTTP/2 or HTTP/3 on")

const (
	// EndedByAlert begins the text of an alert.
	EndedByAlert = "the server ended the TLS session: "
	speaksNoTLS  = "the server does not speak TLS on this port; use http://"
)

// Explain makes one line of a handshake's error, with what to do if that is known.
func Explain(err error) string {
	text := strings.TrimPrefix(err.Error(), "tls: ")
	// crypto/tls exports no type for an alert during the handshake.
	alert, isAlert := strings.CutPrefix(text, "remote error: tls: ")
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case isAlert && alert == "no application protocol", err == ErrNoProtocol:
		return ErrNoProtocol.Error()
	case isAlert:
		return EndedByAlert + alert
	case errors.As(err, &certificate):
		return "the server's certificate is not accepted (" + certificate.Err.Error() + "); set tls.insecureSkipVerify to take any"
	case errors.As(err, &record):
		return speaksNoTLS
	}
	return "TLS handshake: " + text
}
