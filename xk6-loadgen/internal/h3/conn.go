// Package h3 is the client's side of HTTP/3 (RFC 9114) over QUIC: connections, streams, frames and header blocks (QPACK, RFC 9204). It knows
// nothing of loops and of what a load counts.
//
// quic-go makes the packets on goroutines of its own. Conn has one goroutine for its life, and each of its streams one that reads the response.
// They tell a single caller what happens by an Inbox, which has the events of all its connections. The caller never waits: it opens streams by
// OpenStream and Request, and takes events by Take. With each stream it keeps a value of its own, Stream.Of. A violation of HTTP/3 is a Breach;
// all other errors are quic-go's.
//
// A request allocates its Stream, the closures of the goroutine that reads and, with an upload, of another one, and what quic-go does. Buffers
// and decoded header blocks are shared.
//
//gosec:disable G104 G115 G118 -- an error changes nothing there, the numbers are small, the function that Dial returns ends a connection
package h3

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	PieceBytes      = 64 << 10         // PieceBytes of a long body are handed to QUIC at a time.
	keepAliveEvery  = 10 * time.Second // a connection without requests lasts, as those over TCP do
	longestDatagram = 1200             // A tunnel may drop longer ones (RFC 9000, section 14). Probes find out how long they may be.
)

// Kind says what has happened on a connection.
type Kind uint8

const (
	Up     Kind = iota // Up: the handshake is over.
	Raised             // Raised: the server allows another stream. The caller passes the event to Raise.
	GoAway             // GoAway: the server takes no new streams, and has ignored those from Last on.
	Done               // Done: Stream was read to its end. Its Err says why there is no complete response.
	Down               // Down: the connection could not be made, or has ended. Err says why.
)

// Event is what happened on a connection, and when on the caller's clock.
type Event[T any] struct {
	Kind   Kind
	Conn   *Conn[T]
	At     int64
	Stream *Stream[T]
	Last   quic.StreamID
	Err    error

	opened *quic.Stream // what Raised brings
}

// Inbox brings the events of connections from their goroutines to one caller, and has what they have in common. Its lock is held for moments.
type Inbox[T any] struct {
	Now     func() int64
	Notify  func() // Notify is called, by any goroutine, for the first event since the last Take.
	TLS     *tls.Config
	Timeout time.Duration // of a handshake. A connection on which nothing comes in lasts twice as long, so the caller looks for time-outs.
	// StreamWindow and Window are the receive windows of each stream and of a connection, in bytes. QUIC renews them once a quarter is used.
	StreamWindow, Window uint64
	Uploads              bool // There are requests with a body that is sent in pieces.

	Goroutines   sync.WaitGroup // Goroutines are those of all connections, which end with these.
	mutex        sync.Mutex
	events, read []Event[T]
	blocks       cache // the header blocks of all streams
}

// post gives an event to the caller, from any goroutine, and notes when it happened.
func (in *Inbox[T]) post(e Event[T]) {
	e.At = in.Now()
	in.mutex.Lock()
	in.events = append(in.events, e)
	isFirst := len(in.events) == 1
	in.mutex.Unlock()
	if isFirst {
		in.Notify()
	}
}

// Take returns the events since the last call; they are valid until the next one.
func (in *Inbox[T]) Take() []Event[T] {
	clear(in.read)
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.events, in.read = in.read[:0], in.events
	return in.read
}

// Conn is a connection. Only the caller's thread may call its exported methods.
type Conn[T any] struct {
	// The caller's thread alone has these.
	AtLimit bool         // AtLimit: the server allows no more streams, and Raised is awaited. The caller only reads it.
	Open    []*Stream[T] // Open are the streams that have not ended; Remove fills a place with the last one. The caller only reads them.
	spare   *quic.Stream // spare is open for the next Request.

	// The caller and the goroutines read these. They do not change, except for QUIC, which a goroutine sets before Up.
	Number int // the caller's own
	QUIC   *quic.Conn
	inbox  *Inbox[T]
	ctx    context.Context

	Heard atomic.Int64 // Heard is when a stream last had bytes. Goroutines set it, the caller reads it at any time.
}

// Dial begins a connection over a socket that is connected to this address, and owns the socket. The function it returns ends the connection.
// The new connection reuses the list of open streams of the one before, which must have ended; a zero Conn stands before the first.
func Dial[T any](in *Inbox[T], before *Conn[T], number int, socket *net.UDPConn, to net.Addr) (*Conn[T], func()) {
	ctx, hangUp := context.WithCancel(context.Background())
	c := &Conn[T]{Number: number, Open: before.Open[:0], inbox: in, ctx: ctx}
	c.Heard.Store(in.Now())
	in.Goroutines.Go(func() { c.run(socket, to) })
	return c, hangUp
}

// run is the connection's whole life, until it is hung up.
func (c *Conn[T]) run(socket *net.UDPConn, to net.Addr) {
	defer socket.Close()
	transport := quic.Transport{Conn: newBareSocket(socket, to)}
	if c.inbox.Uploads {
		transport.Conn = connectedSocket{socket} // A long body goes out in bursts
	}
	defer transport.Close()
	var err error
	c.QUIC, err = transport.Dial(c.ctx, to, c.inbox.TLS, &quic.Config{
		InitialPacketSize: longestDatagram, HandshakeIdleTimeout: c.inbox.Timeout, MaxIdleTimeout: 2 * c.inbox.Timeout,
		KeepAlivePeriod: keepAliveEvery, MaxIncomingStreams: -1,
		InitialStreamReceiveWindow: c.inbox.StreamWindow, MaxStreamReceiveWindow: c.inbox.StreamWindow,
		InitialConnectionReceiveWindow: c.inbox.Window, MaxConnectionReceiveWindow: c.inbox.Window,
	})
	if err == nil {
		var control *quic.SendStream
		if control, err = c.QUIC.OpenUniStream(); err == nil {
			_, err = control.Write(opening)
		}
	}
	if err != nil {
		c.inbox.post(Event[T]{Kind: Down, Conn: c, Err: err})
		return
	}
	c.inbox.post(Event[T]{Kind: Up, Conn: c})
	closeNow := func() { c.QUIC.CloseWithError(NoError, "") } //nolint:errcheck // it returns none
	context.AfterFunc(c.ctx, closeNow)
	if err := c.awaitEnd(); c.ctx.Err() == nil {
		c.inbox.post(Event[T]{Kind: Down, Conn: c, Err: err})
	}
	<-c.ctx.Done()
	closeNow() // This waits for the other one
}

// awaitEnd reads the control stream to its end, and returns why it ended. Without a dynamic table the other streams say nothing.
func (c *Conn[T]) awaitEnd() error {
	r := reader{buffer: bufio.NewReaderSize(nil, 64)}
	for isControl := false; !isControl; {
		stream, err := c.QUIC.AcceptUniStream(c.ctx)
		if err != nil {
			return err
		}
		r.begin(stream, c.inbox.Now, &c.Heard)
		var isKnown bool
		if isControl, isKnown = readStreamType(r.buffer); !isKnown {
			stream.CancelRead(streamCreationError)
		}
	}
	err := readControl(r.buffer, func(id uint64) {
		c.inbox.post(Event[T]{Kind: GoAway, Conn: c, Last: quic.StreamID(id)})
	})
	if _, isReset := errors.AsType[*quic.StreamError](err); isReset || err == io.EOF || err == io.ErrUnexpectedEOF {
		return &Breach{Text: "the server closed its control stream", EndsAll: true}
	}
	return err
}

// OpenStream opens the stream of the next Request, unless one is open for it already. It returns false if the connection has ended, and at the
// server's limit: it sets AtLimit, and a goroutine waits for a stream until Raised. It must not be called in the meantime.
func (c *Conn[T]) OpenStream() bool {
	if c.spare != nil {
		return true
	}
	var err error
	c.spare, err = c.QUIC.OpenStream()
	if _, c.AtLimit = errors.AsType[*quic.StreamLimitReachedError](err); c.AtLimit {
		c.inbox.Goroutines.Go(c.awaitStream)
	}
	return err == nil
}

// awaitStream is a goroutine that waits until the server allows another stream.
func (c *Conn[T]) awaitStream() {
	if stream, err := c.QUIC.OpenStreamSync(c.ctx); err == nil {
		c.inbox.post(Event[T]{Kind: Raised, Conn: c, opened: stream})
	}
}

// Raise takes the stream that an event of the kind Raised brings. AtLimit is over.
func (c *Conn[T]) Raise(e Event[T]) { c.spare, c.AtLimit = e.opened, false }

// Request sends a request on the stream that OpenStream has opened: at once if QUIC takes all of it, otherwise by a goroutine. Another goroutine
// reads the response. It returns how many bytes have left at once. bytes and body must not change until the stream ends.
func (c *Conn[T]) Request(of T, bytes, body []byte) (sent int) {
	st := &Stream[T]{Of: of, conn: c, QUIC: c.spare, place: len(c.Open)}
	c.spare = nil
	c.Open = append(c.Open, st)
	if len(body) > 0 || st.QUIC.TryWriteAll(bytes) != nil {
		c.inbox.Goroutines.Go(func() { st.upload(bytes, body) })
	} else {
		sent = len(bytes)
		st.isSent.Store(true)
		st.QUIC.Close() //nolint:errcheck // reading the stream reports the error, too
	}
	c.inbox.Goroutines.Go(st.read)
	return sent
}

// GiveUp ends the open streams of which `ends` is true, in the order of Open; resets tells the server so. `ends` must end no stream itself.
func (c *Conn[T]) GiveUp(resets bool, ends func(*Stream[T]) bool) {
	left := c.Open[:0]
	for _, st := range c.Open {
		if !ends(st) {
			st.place = len(left)
			left = append(left, st)
			continue
		}
		if resets {
			st.Cancel()
		}
		st.place = -1
	}
	clear(c.Open[len(left):])
	c.Open = left
}

// Stream is a request with its response. A goroutine reads it and sets the exported fields; the caller reads these once it is done.
type Stream[T any] struct {
	Of             T // the caller's own
	Response       Response
	Bytes, FirstAt int64        // what came in, and when its first byte did
	Err            error        // nil for a complete response
	QUIC           *quic.Stream // set from the begin, as Sent is, which has the bytes that Request did not return
	Sent           atomic.Int64

	conn   *Conn[T]
	place  int         // its place among the open streams; -1: the caller is through with it
	isSent atomic.Bool // the whole request has left
}

// IsOpen tells whether the caller still awaits the response.
func (st *Stream[T]) IsOpen() bool { return st.place >= 0 }

// Remove ends the stream for the caller. The server does not want the rest of an answered request; it resets the stream in any case.
func (st *Stream[T]) Remove(isAnswered bool) {
	if isAnswered && !st.isSent.Load() {
		st.QUIC.CancelWrite(NoError)
	}
	c := st.conn
	last := len(c.Open) - 1
	c.Open[st.place] = c.Open[last]
	c.Open[st.place].place = st.place
	c.Open[last], c.Open, st.place = nil, c.Open[:last], -1
}

// Cancel gives up both directions of the stream with H3_REQUEST_CANCELLED (RFC 9114, section 4.1.1).
func (st *Stream[T]) Cancel() {
	st.QUIC.CancelRead(requestCancelled)
	st.QUIC.CancelWrite(requestCancelled)
}

// upload is a goroutine that sends a request which is long, or which QUIC did not take at once.
func (st *Stream[T]) upload(bytes, body []byte) {
	for _, p := range [][]byte{bytes, body} {
		for len(p) > 0 {
			n := min(len(p), PieceBytes)
			st.Sent.Add(int64(n)) // Before: the response may come before Write returns
			if _, err := st.QUIC.Write(p[:n]); err != nil {
				return
			}
			p = p[n:]
		}
	}
	st.isSent.Store(true)
	st.QUIC.Close() //nolint:errcheck // read has the error, too
}

// read is a goroutine that reads a response, and then posts the stream. Peek comes first: a stream without bytes holds no reader.
func (st *Stream[T]) read() {
	var first [1]byte
	st.QUIC.Peek(first[:]) //nolint:errcheck // A stream that waits has no buffer; reading it has the error, too
	in := st.conn.inbox
	r := readers.Get().(*reader)
	r.begin(st.QUIC, in.Now, &st.conn.Heard)
	st.Err = st.Response.read(r.buffer, &in.blocks)
	st.Bytes, st.FirstAt = r.bytes, r.firstAt
	readers.Put(r)
	in.post(Event[T]{Kind: Done, Conn: st.conn, Stream: st})
}

// reader reads a stream through its buffer, and notes what comes in and when.
type reader struct {
	buffer         *bufio.Reader
	stream         io.Reader
	now            func() int64
	heard          *atomic.Int64 // the connection's
	bytes, firstAt int64
}

// readers are those of all loads. A stream holds one from its first byte to its end.
var readers = sync.Pool{New: func() any { return &reader{buffer: bufio.NewReaderSize(nil, 16<<10)} }}

func (r *reader) begin(stream io.Reader, now func() int64, heard *atomic.Int64) {
	*r = reader{buffer: r.buffer, stream: stream, now: now, heard: heard}
	r.buffer.Reset(r)
}

// Read notes how much came in and when, before it is parsed.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.stream.Read(p)
	if n > 0 {
		now := r.now()
		r.heard.Store(now)
		if r.bytes += int64(n); r.firstAt == 0 {
			r.firstAt = now
		}
	}
	return n, err
}
