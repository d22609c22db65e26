//gosec:disable G115 -- the numbers are small
package engine

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

const (
	readsPerIteration = 32       // A connection that always has more to read yields to the others after this many reads.
	sealBytes         = 64 << 10 // Bytes to send over TLS are encrypted in pieces of this size, so that a long body is not in memory twice
)

// send hands p to the transport; p must not change until the response. While the connection is not up nothing is taken, see connected.
func (c *conn) send(p []byte) {
	c.unsent = p
	c.sendUnsent()
	if c.state == connecting {
		c.unsent = nil
	}
}

// write hands p to the transport, which keeps the rest in the backlog: p is free again.
func (c *conn) write(p []byte) {
	if c.writeBroken {
		return
	}
	l := c.loop
	l.counts.current.SentBytes += int64(len(p))
	if c.secure != nil {
		l.buffers.sealed = c.secure.Seal(l.buffers.sealed[:0], p)
		p = l.buffers.sealed
	}
	c.departures.written(len(p))
	if len(c.backlog) > 0 {
		c.backlog = append(c.backlog, p...)
		c.pumpBacklog()
		return
	}
	n, ok := c.transmit(p)
	if !ok {
		return
	}
	c.backlog = append(c.backlog, p[n:]...)
	c.noteDepartures()
	if n < len(p) {
		c.watchWrites()
	}
}

// pump goes on sending when the socket takes bytes again, the backlog first.
func (c *conn) pump() {
	if len(c.backlog) == 0 || c.pumpBacklog() {
		c.sendUnsent()
	}
}

// sendUnsent encrypts in pieces over TLS; the first one goes out with the rest of the handshake.
func (c *conn) sendUnsent() {
	for c.secure != nil && len(c.unsent) > 0 && len(c.backlog) < sealBytes {
		p := c.unsent[:min(len(c.unsent), sealBytes)]
		c.unsent = c.unsent[len(p):]
		c.write(p)
	}
	if c.secure != nil || len(c.unsent) == 0 {
		return
	}
	if n, ok := c.transmit(c.unsent); ok {
		c.loop.counts.current.SentBytes += int64(n)
		if c.unsent = c.unsent[n:]; len(c.unsent) > 0 {
			c.watchWrites()
		}
	}
}

// pumpBacklog sends the backlog, and tells whether none is left.
func (c *conn) pumpBacklog() bool {
	n, ok := c.transmit(c.backlog)
	if !ok {
		return false
	}
	left := copy(c.backlog, c.backlog[n:])
	if c.backlog = c.backlog[:left]; left == 0 {
		c.backlog = nil // It is rare, so its memory is not kept
	}
	if len(c.departures.waiting) > 0 {
		c.loop.clock = c.loop.shared.now() // They have waited for longer than this iteration
		c.noteDepartures()
	}
	if left > 0 {
		c.watchWrites()
	}
	return left == 0
}

// sending tells whether bytes wait for the kernel to take them.
func (c *conn) sending() bool { return len(c.unsent) > 0 || len(c.backlog) > 0 }

// transmit returns how much of p the kernel took: nothing while the connection is not up; false when it has failed.
func (c *conn) transmit(p []byte) (int, bool) {
	n, errno := linux.Send(c.fd, p)
	if errno == syscall.EAGAIN {
		return 0, true
	}
	if errno != 0 {
		c.sendFailed(errno)
		return 0, false
	}
	if c.state == connecting {
		if c.secure != nil {
			c.state = handshaking
		} else {
			c.isUp()
		}
	}
	return n, true
}

// closeInOrder tells the peer that the connection ends (GOAWAY, close_notify), unless something is half sent or the server has gone.
func (c *conn) closeInOrder() {
	if c.state != established || c.peerClosed || c.writeBroken || c.sending() {
		return
	}
	l := c.loop
	out := c.session.appendGoAway(l.h2.Out[:0])
	plain := int64(len(out))
	if c.secure != nil {
		l.buffers.sealed = c.secure.Seal(l.buffers.sealed[:0], out)
		l.buffers.sealed = c.secure.SealEnd(l.buffers.sealed)
		out = l.buffers.sealed
	}
	if len(out) == 0 {
		return
	}
	if _, errno := linux.Send(c.fd, out); errno == 0 {
		l.counts.current.SentBytes += plain
	}
}

// watchWrites has epoll report when the socket takes bytes again. connect does so itself at its end.
func (c *conn) watchWrites() {
	if c.registered && !c.watchesOut {
		c.watch(true)
	}
}

// sendFailed handles a refused send. The connection is read once more, since its server may have answered before it closed.
func (c *conn) sendFailed(errno syscall.Errno) {
	if c.state == connecting {
		c.failCall(ErrConnect, "connect", errno)
		return
	}
	c.writeBroken, c.writeErrno, c.unsent, c.backlog = true, errno, nil, nil
	if !c.reading {
		c.readLast()
	}
}

// departures are requests of a rate, on one HTTP/2 connection, that wait for the kernel to take their headers: only then they have left.
type departures struct {
	handed  int64 // bytes that the connection was given to send, with the backlog
	waiting []departure
}

// departure is a request of a rate that the kernel has not taken yet.
type departure struct {
	due int64
	end int64 // where in the connection's bytes the request ends; 0: not known yet
}

// written notes bytes that contain all new requests.
func (d *departures) written(bytes int) {
	d.handed += int64(bytes)
	for i := len(d.waiting) - 1; i >= 0 && d.waiting[i].end == 0; i-- {
		d.waiting[i].end = d.handed
	}
}

// noteDepartures records the requests that the kernel has taken to their last byte.
func (c *conn) noteDepartures() {
	d := &c.departures
	taken, left := d.handed-int64(len(c.backlog)), 0
	for left < len(d.waiting) && d.waiting[left].end > 0 && d.waiting[left].end <= taken {
		c.loop.model.noteSent(d.waiting[left].due)
		left++
	}
	d.waiting = slices.Delete(d.waiting, 0, left)
}

// read handles what came in, and then sends what the session gathered meanwhile in one piece.
func (c *conn) read(events uint32) {
	c.noteProgress()
	c.reading = true
	if c.readAll(events); c.state == established {
		c.session.flush()
	}
	c.reading = false
	if c.fd >= 0 && c.writeBroken {
		c.readLast()
	}
}

// readLast is for a connection that takes no more bytes: a server may answer (413, say) and close before it has the whole request.
func (c *conn) readLast() {
	generation := c.generation
	c.reading = true
	c.readAll(0)
	c.reading = false
	switch {
	case c.generation != generation:
	case c.session.underWay() > 0:
		c.failCall(ErrWrite, "write", c.writeErrno)
	default:
		c.close()
		c.loop.starts.push(c)
	}
}

// readAll reads until nothing is left, or it is another connection's turn. With the peer's FIN before it (RDHUP) a short read has the last
// byte; a reset sets RDHUP too, but may cut off a response: only the next read tells. To copy long bodies would be most of the work.
func (c *conn) readAll(events uint32) {
	l := c.loop
	generation := c.generation
	c.peerClosed = events&(syscall.EPOLLRDHUP|linux.EpollError) != 0
	wasReset := events&linux.EpollError != 0
	l.receipts.delay = 0 // A FIN, too, may end a response
	for reads := 1; ; reads++ {
		kept, most, discards := 0, len(l.buffers.read), false
		if c.secure != nil {
			kept = copy(l.buffers.read[:], c.secure.Partial)
			most -= kept
		} else if uncounted := c.session.discardable(); uncounted > int64(most) {
			most, discards = int(uncounted), true
		}
		var n int
		var received int64
		var errno syscall.Errno
		switch {
		case discards:
			n, errno = linux.Discard(c.fd, most)
		case c.isStamped:
			n, received, errno = l.receipts.reader.Recv(c.fd, l.buffers.read[kept:])
		default:
			n, errno = linux.Recv(c.fd, l.buffers.read[kept:])
		}
		if errno == syscall.EAGAIN {
			return
		}
		if errno != 0 && c.state != lingering {
			c.failCall(ErrRead, "read", errno)
			return
		}
		if errno != 0 || n == 0 {
			c.peerClosed = true
			c.endOfStream()
			return
		}
		l.clock = l.shared.now()
		l.receipts.note(received)
		switch {
		case discards:
			l.counts.current.ReceivedBytes += int64(n)
			c.session.discarded(int64(n))
		case c.secure != nil:
			c.receivedTLS(l.buffers.read[:kept+n])
		default:
			c.deliver(l.buffers.read[:n])
		}
		if c.generation != generation {
			return
		}
		if n < most && !wasReset {
			// Edge-triggered: later bytes are a new event.
			if c.peerClosed {
				c.endOfStream()
			}
			return
		}
		if reads == readsPerIteration {
			c.watch(c.watchesOut) // If there is more, registering again makes an event
			return
		}
	}
}

// deliver passes decrypted bytes to the session. After its last response a connection's are only counted.
func (c *conn) deliver(p []byte) {
	c.loop.counts.current.ReceivedBytes += int64(len(p))
	if c.state != lingering {
		c.session.received(p)
	}
}

// firstByte records, once per connection, the time from the connect to the first byte of a response.
func (c *conn) firstByte() {
	if !c.answered {
		c.answered = true
		c.loop.tally.firstByteTimes.record(c.loop.clock - c.openedAt)
	}
}

// To read the kernel's counts is 2 % of a connection with one request. After readEach of them, one in readOneIn stands for all of these.
const readEach, readOneIn = 1024, 16

// Bytes of headers on the wire. Linux sends TCP's timestamps in every segment if both ends agreed on them (RFC 7323).
const ipv4Header, ipv6Header, udpHeader, tcpHeader, timestampOption = 20, 40, 8, 20, 12

// wireCount is what a loop's closed connections had on the wire.
type wireCount struct {
	Wire
	info unix.TCPInfo // info is what the last of them came to.
}

// countWire reads the kernel's counts of a connection that is about to close: at most one call for a connection, none for a request.
func (c *conn) countWire() {
	l := c.loop
	if c.state == connecting {
		return
	}
	s, isQUIC := c.session.(*h3Session)
	l.wire.Connections++
	if isQUIC {
		l.wire.Handshakes++
	}
	times := 1
	if l.wire.Connections > readEach {
		if times = readOneIn; l.wire.Connections%readOneIn != 0 {
			return
		}
	}
	header := int64(ipv4Header)
	if l.plan.target.family == unix.AF_INET6 {
		header = ipv6Header
	}
	var w Wire
	if isQUIC {
		stats := s.peer.QUIC.ConnectionStats()
		header += udpHeader
		w.SegmentsOut, w.SegmentsIn, w.Resent = int64(stats.PacketsSent), int64(stats.PacketsReceived), int64(stats.PacketsLost)
		w.DataSegmentsIn = w.SegmentsIn
		w.BytesOut, w.BytesIn = int64(stats.BytesSent), int64(stats.BytesReceived)
	} else {
		info := &l.wire.info
		linux.TCPInfo(c.fd, info)
		header += tcpHeader
		if info.Options&1 != 0 { // TCPI_OPT_TIMESTAMPS
			header += timestampOption
		}
		w.SegmentsOut, w.SegmentsIn, w.Resent = int64(info.Segs_out), int64(info.Segs_in), int64(info.Total_retrans)
		w.DataSegmentsIn = int64(info.Data_segs_in)
		w.BytesOut, w.BytesIn = int64(info.Bytes_sent), int64(info.Bytes_received)
	}
	w.BytesOut += header * w.SegmentsOut
	w.BytesIn += header * w.SegmentsIn
	for range times {
		l.wire.add(&w)
	}
}
