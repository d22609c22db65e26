package link

import (
	"encoding/binary"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/histogram"
)

const longestLateness = int64(10 * time.Minute)

// counters of one direction since the last report.
type counters struct {
	Traffic
	refused  int64 // refused packets were not taken by the device, which does not count them
	lateness *histogram.Histogram
	latest   int64
}

func newCounters() *counters {
	return &counters{lateness: histogram.New(longestLateness, 2)} // Two digits: within 1 %
}

func (c *counters) came(packet []byte) {
	c.Packets++
	c.Bytes += int64(len(packet))
	*c.Kinds.of(packet)++
}

func (c *counters) left(late int64) {
	c.Delivered++
	c.latest = max(c.latest, late)
	c.lateness.Record(min(max(late, 0), longestLateness), 1)
}

func (c *counters) traffic() Traffic {
	milliseconds := func(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }
	percentiles := c.lateness.Percentiles(50, 99)
	t := c.Traffic
	t.LatenessMs = Lateness{
		// A class's upper end may be above the greatest value.
		P50: milliseconds(min(percentiles[0], c.latest)), P99: milliseconds(min(percentiles[1], c.latest)), Max: milliseconds(c.latest),
	}
	return t
}

type KindCounts struct {
	Syn     int64 `json:"syn"`
	SynAck  int64 `json:"synAck"`
	Ack     int64 `json:"ack"`
	Data    int64 `json:"data"`
	DataFin int64 `json:"dataFin"`
	Fin     int64 `json:"fin"`
	Reset   int64 `json:"reset"`
	Other   int64 `json:"other"`
}

const (
	ipv4Header, tcpHeader, protocolTCP = 20, 20, 6
	flagFin, flagSyn, flagRst, flagAck = 0x01, 0x02, 0x04, 0x10
)

// of returns the counter of an IP packet's kind (RFC 791, RFC 9293). Other is no TCP over IPv4, or a fragment.
func (c *KindCounts) of(packet []byte) *int64 {
	const fragment = 0x3fff // the offset and the flag that more follow
	if len(packet) < ipv4Header || packet[0]>>4 != 4 || packet[9] != protocolTCP || binary.BigEndian.Uint16(packet[6:])&fragment != 0 {
		return &c.Other
	}
	header := int(packet[0]&0x0f) * 4
	total := int(binary.BigEndian.Uint16(packet[2:]))
	if header < ipv4Header || total > len(packet) || header+tcpHeader > total {
		return &c.Other
	}
	offset := int(packet[header+12]>>4) * 4
	payload := total - header - offset
	if offset < tcpHeader || payload < 0 {
		return &c.Other
	}
	switch flags := packet[header+13]; {
	case flags&flagRst != 0:
		return &c.Reset
	case flags&flagSyn != 0 && flags&flagAck != 0:
		return &c.SynAck
	case flags&flagSyn != 0:
		return &c.Syn
	case flags&flagFin != 0 && payload > 0:
		return &c.DataFin
	case flags&flagFin != 0:
		return &c.Fin
	case payload > 0:
		return &c.Data
	}
	return &c.Ack
}
