//gosec:disable G104 G115 -- an error changes nothing there, the numbers are small
package engine

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

// noAnswerLimit is how long a load that has had no answer over QUIC waits for one. A server without HTTP/3 is so reported soon.
const noAnswerLimit = 2200 * time.Millisecond

const noQUIC = "no answer over QUIC (UDP) on this port; for h3 the server's config has to turn HTTP/3 on, and no firewall may drop UDP"

// h3Session is HTTP/3 as the loop sees it: peer makes the packets on other goroutines, and the loop's inbox brings its events.
type h3Session struct {
	streaming
	peer *h3.Conn[h3Attempt]
}

// h3Attempt is an attempt with a stream. isAgain: it had another one before.
type h3Attempt struct {
	attempt
	isAgain bool
}

// newInbox makes the inbox of a loop's connections; now is the loop's clock, and wake ends its wait.
func newInbox(p *plan, now func() int64, wake func()) *h3.Inbox[h3Attempt] {
	return &h3.Inbox[h3Attempt]{
		Now: now, Notify: wake, TLS: p.tls, Timeout: p.Timeout, Uploads: p.uploads,
		StreamWindow: uint64(p.Window.Stream), Window: uint64(p.Window.Connection),
	}
}

// dial begins a connection. What becomes of it is an event of the inbox.
func (s *h3Session) dial() {
	c := s.conn
	l := c.loop
	p := l.plan
	var from *net.UDPAddr
	if p.sources > 0 {
		from = net.UDPAddrFromAddrPort(p.sources.address(l.connection(int(c.slot))))
	}
	to := net.UDPAddrFromAddrPort(p.target.at)
	var socket *net.UDPConn
	err := p.network.run(func() (err error) {
		socket, err = net.DialUDP("udp", from, to)
		return err
	})
	if err != nil {
		errno := syscall.EIO
		errors.As(err, &errno)
		c.failCall(ErrConnect, "socket", errno)
		return
	}
	c.state, c.answered, c.peerClosed, c.writeBroken = connecting, false, false, false
	l.open++
	s.peer, c.hangUp = h3.Dial(l.inbox, s.peer, int(c.slot), socket, to)
	if l.tls.state == nil {
		l.checkTimeoutsBy(s.answerBy())
	}
}

// answerBy returns the time, on the run's clock, at which a load without any answer over QUIC gives up.
func (s *h3Session) answerBy() int64 {
	return s.conn.openedAt + int64(cmp.Or(s.conn.loop.plan.patience, noAnswerLimit))
}

func (s *h3Session) connected() {
	s.streaming = s.renewed()
	s.fill()
}

func (s *h3Session) fill() {
	for s.active() < s.conn.loop.plan.Streams && !s.draining && !s.peer.AtLimit && s.haveWaiting() {
		if !s.peer.OpenStream() {
			break
		}
		s.send(s.nextWaiting())
	}
}

// send gives an attempt the stream that OpenStream has opened.
func (s *h3Session) send(a attempt) {
	l := s.conn.loop
	isAgain := a.start != 0
	if !isAgain {
		a.start = l.model.latencyFrom(a.begun, a.due)
		l.model.noteSent(a.due)
	}
	s.oldest = min(s.oldest, a.begun)
	s.draining = s.draining || !l.plan.KeepAlive
	l.counts.current.SentBytes += int64(s.peer.Request(h3Attempt{a, isAgain}, a.request.bytes, a.request.body))
}

// readInbox takes what has happened on the loop's connections. A response ends when its last byte was read, not when the loop polls.
func (l *loop) readInbox() {
	for _, e := range l.inbox.Take() {
		s := l.conns[e.Conn.Number].session.(*h3Session)
		if s.peer != e.Conn || s.conn.state == closed {
			continue // of a connection that the loop has given up
		}
		l.clock = e.At
		s.take(e)
		l.clock = l.shared.now()
		if s.conn.state == established {
			s.refill()
		}
	}
}

// take handles an event of the present connection. The loop's clock is that of the event.
func (s *h3Session) take(e h3.Event[h3Attempt]) {
	c := s.conn
	l := c.loop
	switch e.Kind {
	case h3.Up:
		if l.tls.state == nil {
			state := s.peer.QUIC.ConnectionState().TLS
			l.tls.state = stateOf(state.Version, state.CipherSuite, state.CurveID)
		}
		c.isUp()
		l.clock = l.shared.now()
		s.connected()
	case h3.Raised:
		s.peer.Raise(e)
	case h3.GoAway:
		s.draining, s.goneAway = true, true
		s.peer.GiveUp(false, func(st *h3.Stream[h3Attempt]) bool {
			if st.QUIC.StreamID() < e.Last {
				return false
			}
			s.waiting = append(s.waiting, st.Of.attempt)
			return true
		})
	case h3.Done:
		if st := e.Stream; st.IsOpen() {
			s.endStream(st)
		}
	case h3.Down:
		f, example := faultOf(e.Err), l.exampleOf(e.Err) // A stream may tell first
		if c.state == connecting {
			example = l.plan.withHint(example)
			if f.kind != ErrTLS {
				f.kind = ErrConnect
			}
		}
		s.ended(f.kind, f.cause, example)
	}
}

// endStream ends an attempt when its stream was read to the end, and adds up its bytes.
func (s *h3Session) endStream(st *h3.Stream[h3Attempt]) {
	c := s.conn
	n := c.loop.counts.current
	n.ReceivedBytes += st.Bytes
	n.SentBytes += st.Sent.Load()
	if st.FirstAt > 0 && !c.answered {
		c.answered = true
		c.loop.tally.firstByteTimes.record(st.FirstAt - c.openedAt)
	}
	if st.Err == nil {
		st.Remove(true)
		r := &st.Response
		s.end(&st.Of.attempt, r.Status, r.Length, r.HeaderBytes, r.DecodedBytes, r.BodyBytes)
		return
	}
	f := faultOf(st.Err)
	if f.endsAll {
		s.ended(f.kind, f.cause, c.loop.exampleOf(st.Err))
		return
	}
	st.Remove(false)
	if f.code == h3.RequestRejected && (s.goneAway || !st.Of.isAgain) {
		// The server has not handled the request (RFC 9114, section 4.1.1). It shuts down, and its GOAWAY may come a moment later.
		s.waiting = append(s.waiting, st.Of.attempt)
		return
	}
	st.Cancel()
	c.loop.failure(c, f.kind, f.cause, c.loop.exampleOf(st.Err), &st.Of.attempt)
}

// A loop reads no bytes of QUIC, so these have nothing to do. quic-go ends connections in order by itself.
func (s *h3Session) received([]byte)                {}
func (s *h3Session) flush()                         {}
func (s *h3Session) closedByPeer()                  {}
func (s *h3Session) appendGoAway(dst []byte) []byte { return dst }
func (s *h3Session) active() int                    { return len(s.peer.Open) }
func (s *h3Session) heard() int64                   { return s.peer.Heard.Load() }

func (s *h3Session) each(resets bool, ends func(*attempt) bool) {
	s.peer.GiveUp(resets, func(st *h3.Stream[h3Attempt]) bool { return ends(&st.Of.attempt) })
}

// expire also ends the connect of a load that QUIC has never answered, sooner than the time-out.
func (s *h3Session) expire(before int64) {
	if c := s.conn; c.state == connecting && c.loop.tls.state == nil {
		if c.loop.clock >= s.answerBy() {
			c.fail(ErrConnect, CauseTimedOut, noQUIC)
			return
		}
		c.loop.checkTimeoutsBy(s.answerBy())
	}
	s.streaming.expire(before)
}

// encodeH3Requests makes whole requests. A long body is not copied: uploads tells whether there is one.
func encodeH3Requests(scheme string, mix []Request) (requests []request, uploads bool) {
	for _, r := range mix {
		encoded := request{bytes: h3.Encode(h2Fields(scheme, r), len(r.Body))}
		if len(r.Body) < h3.PieceBytes {
			encoded.bytes = append(encoded.bytes, r.Body...)
		} else {
			encoded.body, uploads = r.Body, true
		}
		requests = append(requests, encoded)
	}
	return requests, uploads
}

// h3Fault is the reason for which a stream, or the connection with all of its streams, ended without a response.
type h3Fault struct {
	kind    ErrorKind
	cause   ErrorCause
	code    quic.StreamErrorCode // with which the server reset the stream
	endsAll bool
}

// faultOf sorts an error of HTTP/3 or QUIC into the engine's kinds and causes.
func faultOf(err error) h3Fault {
	f := h3Fault{kind: ErrRead, cause: CauseOther, endsAll: true}
	if stream, isReset := errors.AsType[*quic.StreamError](err); isReset {
		f.cause, f.code, f.endsAll = CauseReset, stream.ErrorCode, false
		return f
	}
	if breach, isBreach := errors.AsType[*h3.Breach](err); isBreach {
		f.kind, f.endsAll = ErrProtocol, breach.EndsAll
		if breach.IsShort {
			f.cause = CauseShort
		}
		return f
	}
	application, isApplication := errors.AsType[*quic.ApplicationError](err)
	transport, isTransport := errors.AsType[*quic.TransportError](err)
	_, isReset := errors.AsType[*quic.StatelessResetError](err)
	_, isIdle := errors.AsType[*quic.IdleTimeoutError](err)
	_, isHandshake := errors.AsType[*quic.HandshakeTimeoutError](err)
	errno, isErrno := errors.AsType[syscall.Errno](err)
	switch {
	case isApplication && application.ErrorCode == h3.NoError:
		f.cause = CauseShort
	case isApplication:
		f.cause = CauseReset
	case isTransport && transport.ErrorCode.IsCryptoError():
		f.kind = ErrTLS
	case isTransport && transport.Remote && transport.ErrorCode == quic.ConnectionRefused:
		f.cause = CauseRefused
	case isReset, isTransport && transport.Remote:
		f.cause = CauseReset
	case isTransport && !isErrno:
		f.kind = ErrProtocol
	case isIdle, isHandshake:
		f.kind, f.cause = ErrTimeout, CauseTimedOut
	case isErrno:
		f.cause = causes[errno]
	}
	return f
}

// exampleOf is the text of an error of HTTP/3 or QUIC. Only the first error makes one, so that a flood of resets builds no texts.
func (l *loop) exampleOf(err error) string {
	if l.counts.example != "" {
		return ""
	}
	return explainH3(err)
}

// explainH3 says in words why a stream or its connection ended.
func explainH3(err error) string {
	if breach, isBreach := errors.AsType[*h3.Breach](err); isBreach {
		return breach.Text
	}
	if stream, isReset := errors.AsType[*quic.StreamError](err); isReset {
		return fmt.Sprintf("the server reset the stream (HTTP/3 code %#x)", uint64(stream.ErrorCode))
	}
	if application, isApplication := errors.AsType[*quic.ApplicationError](err); isApplication {
		if application.ErrorCode == h3.NoError {
			return closedEarly
		}
		text := fmt.Sprintf("the server closed the connection (HTTP/3 code %#x) %s", uint64(application.ErrorCode), application.ErrorMessage)
		return strings.TrimSpace(text)
	}
	if transport, isTransport := errors.AsType[*quic.TransportError](err); isTransport && transport.ErrorCode.IsCryptoError() {
		return tlsconn.Explain(alertOf(transport))
	}
	if errno, isErrno := errors.AsType[syscall.Errno](err); isErrno {
		text := "QUIC: " + errno.Error()
		if errno == syscall.ECONNREFUSED {
			text += ": no process listens on this UDP port; for h3 the server's config has to turn HTTP/3 on"
		}
		return text
	}
	firstLine, _, _ := strings.Cut(err.Error(), "\n")
	return "QUIC: " + firstLine
}

// alertOf is the TLS error within one of QUIC, as crypto/tls would have it over TCP.
func alertOf(e *quic.TransportError) error {
	var certificate *tls.CertificateVerificationError
	switch alert := tls.AlertError(e.ErrorCode - 0x100); {
	case errors.As(e, &certificate):
		return certificate
	case e.Remote:
		return errors.New("remote error: " + alert.Error())
	default:
		return alert
	}
}
