//gosec:disable G115 -- the numbers are small
package engine

import (
	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// Wire is what all connections of a load had on the wire, warm-up and edges of turns included, each as of its close. Bytes are with
// the headers of IP and TCP or UDP. Resent segments are in SegmentsOut too. No handshake resumes a session. Packets of QUIC are its
// segments. Connections and handshakes are exact; beyond readEach connections of a thread the rest is that of every readOneIn-th.
type Wire struct {
	Connections, Handshakes, SegmentsOut, SegmentsIn, Resent, BytesOut, BytesIn int64
}

func (w *Wire) add(other *Wire) {
	w.Connections += other.Connections
	w.Handshakes += other.Handshakes
	w.SegmentsOut += other.SegmentsOut
	w.SegmentsIn += other.SegmentsIn
	w.Resent += other.Resent
	w.BytesOut += other.BytesOut
	w.BytesIn += other.BytesIn
}

// To read the kernel's counts is 2 % of the work for a connection with one request.
const readEach, readOneIn = 1024, 16

const ipv4Header, ipv6Header, udpHeader, tcpHeader, timestampOption = 20, 40, 8, 20, 12

// countWire reads the kernel's counts of a connection that is about to close: at most one call for a connection, none for a request.
func (c *conn) countWire() {
	l := c.loop
	if c.state == connecting {
		return
	}
	s, isQUIC := c.session.(*h3)
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
		stats := s.quic.conn.ConnectionStats()
		header += udpHeader
		w.SegmentsOut, w.SegmentsIn, w.Resent = int64(stats.PacketsSent), int64(stats.PacketsReceived), int64(stats.PacketsLost)
		w.BytesOut, w.BytesIn = int64(stats.BytesSent), int64(stats.BytesReceived)
	} else {
		info := &l.tcpInfo
		linux.TCPInfo(c.fd, info)
		header += tcpHeader
		if info.Options&1 != 0 { // TCPI_OPT_TIMESTAMPS
			header += timestampOption
		}
		w.SegmentsOut, w.SegmentsIn, w.Resent = int64(info.Segs_out), int64(info.Segs_in), int64(info.Total_retrans)
		w.BytesOut, w.BytesIn = int64(info.Bytes_sent), int64(info.Bytes_received)
	}
	w.BytesOut += header * w.SegmentsOut
	w.BytesIn += header * w.SegmentsIn
	for range times {
		l.wire.add(&w)
	}
}
