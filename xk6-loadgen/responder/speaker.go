package responder

// speaker is one protocol on one connection. It owns no buffers for what it sends: a transport lends it a workspace for
// each call, and either sends all that is pending or lets go in order, by hold.
type speaker interface {
	// received acts on what came in and returns how much of it was taken. The rest is to come again once nothing is pending.
	received(w *workspace, p []byte) int
	// pending is what is to be sent next; empty when there is nothing. It is valid until the next call.
	pending(w *workspace) []byte
	// sent: the first n bytes of what pending has just returned are on their way.
	sent(w *workspace, n int)
	// hold keeps what is pending for later, when the workspace may be another one.
	hold(w *workspace)
	// ends tells whether the connection is to be closed when nothing is pending.
	ends() bool
	// reset makes it ready for a new connection.
	reset()
}

// keptBytes is what a speaker that waits for its next connection may hold on to.
const keptBytes = 4 << 10

// emptied is a buffer for reuse; a large one is let go.
func emptied(p []byte) []byte {
	if cap(p) > keptBytes {
		return nil
	}
	return p[:0]
}

// workspace is what a thread's connections share: one of them uses it at a time.
type workspace struct {
	// out is where HTTP/2 gathers frames; the first outSent bytes have left.
	out     []byte
	outSent int
	// frames is a block of DATA frames, whose headers are written anew for each send.
	frames []byte
	// lastHead is the request that HTTP/1 saw last, and what it asks for: load is one request over and over.
	lastHead    []byte
	lastRequest request
	// lastBlock is the header block that began the last HTTP/2 connection; lastIsHead tells whether its method was HEAD.
	lastBlock  []byte
	lastIsHead bool
}

// clear drops what a connection that is closed has left to send.
func (w *workspace) clear() { w.out, w.outSent = w.out[:0], 0 }
