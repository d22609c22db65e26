package engine

// session is one protocol on one connection. The loop drives it with the calls below; it reports every attempt back as
// exactly one loop.response or loop.failure, and asks loop.take before it starts one.
//
// A second protocol is a second implementation: the connection, its reconnects, the clock, the phases and the counting
// stay as they are.
type session interface {
	// next starts as many attempts as may be under way, opening the connection when it is closed. It does nothing when
	// the slot is busy, pausing or lingering.
	next()
	// connected: the transport is up, or may be: when conn.send finds that it is not, connected is called once more.
	connected()
	// received gets bytes, which are valid during the call only.
	received(p []byte)
	// closedByPeer: the peer has closed, and all that it sent has been received.
	closedByPeer()
	// abort ends every attempt under way as an error of this kind; the connection is closed already.
	abort(kind ErrorKind, example string)
	// oldest is when the oldest attempt under way became due, and whether there is one.
	oldest() (due int64, waiting bool)
	// underWay is the number of attempts not yet answered.
	underWay() int64
}
