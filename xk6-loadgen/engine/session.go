package engine

// session is one protocol on one connection. The loop drives it with the calls below; it reports every attempt back as
// exactly one loop.response or loop.failure, and asks loop.take before it starts one.
//
// The connection with its transport (TCP, TLS), its reconnects, the clock, the phases and the counting are the same for
// all protocols.
type session interface {
	// next starts as many attempts as may be under way, opening the connection when it is closed. It does nothing when
	// the slot is busy, pausing or lingering.
	next()
	// connected: the transport is up, or may be: when conn.send finds that it is not, connected is called once more.
	connected()
	// received gets bytes, which are valid during the call only.
	received(p []byte)
	// discardable is how many of the bytes that come next need not be seen, only counted, by discarded. 0: none.
	discardable() int64
	discarded(n int64)
	// flush sends what the calls before it have queued: it is called once after all that was readable was received, and
	// when the kernel takes bytes again.
	flush()
	// closedByPeer: the peer has closed, and all that it sent has been received.
	closedByPeer()
	// abort ends every attempt under way as an error of this kind and cause; the connection is closed already.
	abort(kind ErrorKind, cause ErrorCause, example string)
	// expire ends the attempts that began before this time as timed out. While the connection is being opened, only those
	// that had another one before: the connection has the same time.
	expire(before int64)
	// goodbye appends what ends the connection in order to dst.
	goodbye(dst []byte) []byte
	// underWay is the number of attempts not yet answered.
	underWay() int64
	// eachDue calls with the time at which each of them was to start: at once in the closed model.
	eachDue(call func(due int64))
}
