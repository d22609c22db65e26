//gosec:disable G104 G115 G118 -- an error changes nothing there, the numbers are small, the loop calls what ends a connection
package engine

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/tlsconn"
)

const (
	keepAliveEvery = 10 * time.Second // a connection without requests lasts, as those over TCP do
	pieceBytes     = 64 << 10         // A long body is handed to QUIC in such pieces
	windowBytes    = 1<<30 - 1        // for a connection and each stream: no server ever waits for one
)

// inbox brings events from the goroutines of QUIC to the loop. Its lock is for them and the loop alone, and held for moments.
type inbox struct {
	mutex        sync.Mutex
	events, read []quicEvent
	now          func() int64  // the loop's clock
	notify       func()        // notify wakes the loop.
	wakeup       chan struct{} // wakeup wakes a loop that is a goroutine, timer ends its wait
	timer        *time.Timer
	goroutines   sync.WaitGroup
	blocks       h3.Cache // the header blocks of all streams
}

// newInbox makes an inbox that tells the time by now. Its notify is still to be set.
func newInbox(now func() int64) *inbox {
	return &inbox{now: now, wakeup: make(chan struct{}, 1), timer: time.NewTimer(0)}
}

// quicEvent is what happened on a connection: a stream's end if there is one, otherwise what is set of the others, or the connection's end.
type quicEvent struct {
	of        *quicConn
	at        int64
	stream    *h3Stream
	connected bool
	opened    *quic.Stream
	isGoAway  bool
	goAway    quic.StreamID // the first one that the server ignores
	fault     *h3Fault
}

// post gives an event to the loop, from any goroutine, and notes when it happened. Only the first of several wakes the loop.
func (in *inbox) post(e quicEvent) {
	e.at = in.now()
	in.mutex.Lock()
	in.events = append(in.events, e)
	isFirst := len(in.events) == 1
	in.mutex.Unlock()
	if isFirst {
		in.notify()
	}
}

// wait waits on wakeup for at most this long. Other goroutines that can run go first, so that their events are taken together.
func (in *inbox) wait(events []syscall.EpollEvent, nanoseconds int64) int {
	events[0].Fd = noSlot
	if nanoseconds <= 0 {
		select {
		case <-in.wakeup:
			return 1
		default:
			return 0
		}
	}
	in.timer.Reset(time.Duration(nanoseconds))
	select {
	case <-in.wakeup:
		in.timer.Stop()
		runtime.Gosched()
		return 1
	case <-in.timer.C:
		return 0
	}
}

// The inbox is the poller of a loop that is a goroutine: each wait yields, and it has nothing to open.
func (in *inbox) open() error { return nil }
func (in *inbox) close()      {}

func (in *inbox) poll(events []syscall.EpollEvent) int { return in.wait(events, 0) }

func (in *inbox) waitYielding(events []syscall.EpollEvent, nanoseconds int64) int {
	return in.wait(events, nanoseconds)
}

// wake is remembered once: a loop that does not wait sees it at its next poll.
func (in *inbox) wake() {
	select {
	case in.wakeup <- struct{}{}:
	default:
	}
}

func (in *inbox) pause(length time.Duration) { time.Sleep(length) }

// take returns the events since the last call; they are valid until the next one.
func (in *inbox) take() []quicEvent {
	clear(in.read)
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.events, in.read = in.read[:0], in.events
	return in.read
}

// h3Fault is why a stream, or the connection with all of them, ended without a response.
type h3Fault struct {
	kind    ErrorKind
	cause   ErrorCause
	text    string
	code    quic.StreamErrorCode // with which the server reset the stream
	endsAll bool
}

// quicConn is one connection, as its goroutines see it.
type quicConn struct {
	session *h3Session // the loop's: goroutines only pass it on
	inbox   *inbox
	socket  *net.UDPConn
	conn    *quic.Conn      // set before the loop learns that it is connected
	ctx     context.Context // ended by the loop's hangUp
	heard   atomic.Int64    // heard is when a stream last had bytes
}

// connectedSocket sends to one peer, so that the kernel reports a closed port. Each has a port, by which servers divide connections.
type connectedSocket struct{ *net.UDPConn }

// WriteMsgUDP leaves the address out, which Go refuses on a connected socket.
func (s connectedSocket) WriteMsgUDP(p, oob []byte, _ *net.UDPAddr) (n, oobn int, err error) {
	return s.UDPConn.WriteMsgUDP(p, oob, nil)
}

// bareSocket is a connectedSocket without control messages: no ECN, no segmentation by the kernel, and one buffer of a packet instead of
// eight. Go's scheduler does not see its calls, which saves it handing on their processor each time.
type bareSocket struct {
	packetSocket
	peer    net.Addr
	in, out *direction
}

// packetSocket is what quic-go asks of a socket. It would use more of a *net.UDPConn, such as ECN.
type packetSocket interface {
	net.PacketConn
	syscall.Conn
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

// direction is one way through a socket, for a datagram at a time.
type direction struct {
	sync.Mutex
	wait  func(try func(fd uintptr) bool) error // until try returns true
	try   func(fd uintptr) bool
	bytes []byte
	n     int
	errno syscall.Errno
}

// newBareSocket makes both directions once, with their closures, so that a datagram allocates nothing here.
func newBareSocket(socket *net.UDPConn, peer net.Addr) *bareSocket {
	raw, _ := socket.SyscallConn() //nolint:errcheck // a socket has one
	transfer := func(wait func(func(uintptr) bool) error, call func(int, []byte) (int, syscall.Errno)) *direction {
		d := &direction{wait: wait}
		d.try = func(fd uintptr) bool {
			d.n, d.errno = call(int(fd), d.bytes)
			return d.errno != syscall.EAGAIN
		}
		return d
	}
	return &bareSocket{socket, peer, transfer(raw.Read, linux.Recv), transfer(raw.Write, linux.Send)}
}

// transfer moves one datagram. The goroutine waits in Go's poller until the socket is ready.
func (d *direction) transfer(p []byte) (int, error) {
	d.Lock()
	defer d.Unlock()
	d.bytes = p
	if err := d.wait(d.try); err != nil {
		return 0, err
	}
	if d.errno != 0 {
		return 0, d.errno
	}
	return d.n, nil
}

// ReadFrom reads a datagram for quic-go. The socket is connected, so it came from the peer.
func (s *bareSocket) ReadFrom(p []byte) (int, net.Addr, error) {
	n, err := s.in.transfer(p)
	return n, s.peer, err
}

func (s *bareSocket) WriteTo(p []byte, _ net.Addr) (int, error) { return s.out.transfer(p) }

// collectSooner has garbage collected when the heap of a load over QUIC has grown by a quarter, not doubled: after 10 MB instead of 40.
func collectSooner(connections int) {
	const many, percent = 500, 25
	if connections < many {
		return
	}
	if was := debug.SetGCPercent(percent); was < percent {
		debug.SetGCPercent(was)
	}
}

// run is the connection's whole life, until hangUp.
func (q *quicConn) run(to net.Addr, p *plan) {
	defer q.socket.Close()
	transport := quic.Transport{Conn: newBareSocket(q.socket, to)}
	if slices.ContainsFunc(p.requests, func(r request) bool { return r.body != nil }) {
		transport.Conn = connectedSocket{q.socket} // A long body goes out in bursts
	}
	defer transport.Close()
	var err error
	q.conn, err = transport.Dial(q.ctx, to, p.tls, &quic.Config{
		// A tunnel may drop longer datagrams (RFC 9000, section 14). Probes find out how long they may be.
		InitialPacketSize: 1200,
		// The loop looks for time-outs itself.
		HandshakeIdleTimeout: p.Timeout, MaxIdleTimeout: 2 * p.Timeout, KeepAlivePeriod: keepAliveEvery, MaxIncomingStreams: -1,
		InitialStreamReceiveWindow: windowBytes, MaxStreamReceiveWindow: windowBytes,
		InitialConnectionReceiveWindow: windowBytes, MaxConnectionReceiveWindow: windowBytes,
	})
	if err == nil {
		var control *quic.SendStream
		if control, err = q.conn.OpenUniStream(); err == nil {
			_, err = control.Write(h3.Opening)
		}
	}
	if err != nil {
		f := faultOf(err)
		if f.text = p.withHint(f.text); f.kind != ErrTLS {
			f.kind = ErrConnect
		}
		q.inbox.post(quicEvent{of: q, fault: f})
		return
	}
	q.inbox.post(quicEvent{of: q, connected: true})
	closeNow := func() { q.conn.CloseWithError(h3.NoError, "") } //nolint:errcheck // it returns none
	context.AfterFunc(q.ctx, closeNow)
	if f := q.readControl(); q.ctx.Err() == nil {
		q.inbox.post(quicEvent{of: q, fault: f})
	}
	<-q.ctx.Done()
	closeNow() // This waits for the other one
}

func (q *quicConn) awaitStream() {
	if stream, err := q.conn.OpenStreamSync(q.ctx); err == nil {
		q.inbox.post(quicEvent{of: q, opened: stream})
	}
}

// readControl reads the control stream to its end, and returns why it ended. Without a dynamic table the other streams say nothing.
func (q *quicConn) readControl() *h3Fault {
	r := h3Reader{Reader: bufio.NewReaderSize(nil, 64)}
	for isControl := false; !isControl; {
		stream, err := q.conn.AcceptUniStream(q.ctx)
		if err != nil {
			return faultOf(err)
		}
		r.begin(stream, q)
		var isKnown bool
		if isControl, isKnown = h3.ReadStreamType(r.Reader); !isKnown {
			stream.CancelRead(h3.StreamCreationError)
		}
	}
	err := h3.ReadControl(r.Reader, func(id uint64) {
		q.inbox.post(quicEvent{of: q, isGoAway: true, goAway: quic.StreamID(id)})
	})
	if f := faultOf(err); f.endsAll && err != io.EOF && err != io.ErrUnexpectedEOF {
		return f
	}
	return faultOf(&h3.Breach{Text: "the server closed its control stream", EndsAll: true})
}

// faultOf sorts an error of HTTP/3 or QUIC into the engine's kinds and causes.
func faultOf(err error) *h3Fault {
	f := &h3Fault{kind: ErrRead, cause: CauseOther, text: "QUIC: " + strings.SplitN(err.Error(), "\n", 2)[0], endsAll: true}
	var breach *h3.Breach
	var stream *quic.StreamError
	var application *quic.ApplicationError
	var transport *quic.TransportError
	var reset *quic.StatelessResetError
	var idle *quic.IdleTimeoutError
	var handshake *quic.HandshakeTimeoutError
	var errno syscall.Errno
	switch {
	case errors.As(err, &breach):
		f.kind, f.text, f.endsAll = ErrProtocol, breach.Text, breach.EndsAll
		if breach.IsShort {
			f.cause = CauseShort
		}
	case errors.As(err, &stream):
		f.cause, f.code, f.endsAll = CauseReset, stream.ErrorCode, false
		f.text = fmt.Sprintf("the server reset the stream (HTTP/3 code %#x)", uint64(stream.ErrorCode))
	case errors.As(err, &application) && application.ErrorCode == h3.NoError:
		f.cause, f.text = CauseShort, closedEarly
	case errors.As(err, &application):
		f.cause = CauseReset
		f.text = strings.TrimSpace(fmt.Sprintf("the server closed the connection (HTTP/3 code %#x) %s",
			uint64(application.ErrorCode), application.ErrorMessage))
	case errors.As(err, &transport) && transport.ErrorCode.IsCryptoError():
		f.kind, f.text = ErrTLS, tlsconn.Explain(alertOf(transport))
	case errors.As(err, &transport) && transport.Remote && transport.ErrorCode == quic.ConnectionRefused:
		f.cause = CauseRefused
	case errors.As(err, &reset), errors.As(err, &transport) && transport.Remote:
		f.cause = CauseReset
	case errors.As(err, &transport) && !errors.As(err, &errno):
		f.kind = ErrProtocol
	case errors.As(err, &idle), errors.As(err, &handshake):
		f.kind, f.cause = ErrTimeout, CauseTimedOut
	case errors.As(err, &errno):
		f.cause, f.text = causes[errno], "QUIC: "+errno.Error()
		if errno == syscall.ECONNREFUSED {
			f.text += ": no process listens on this UDP port; for h3 the server's config has to turn HTTP/3 on"
		}
	}
	return f
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
