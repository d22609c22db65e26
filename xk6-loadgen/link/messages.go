package link

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/histogram"
)

// lib/features/network/network.ts explains the messages' fields.

// Order is the first line of the input: the network to make.
type Order struct {
	ToServer Direction          `json:"toServer"`
	ToClient Direction          `json:"toClient"`
	CPUs     ByDirection[[]int] `json:"cpus"` // CPUs are the cores that carry each direction's packets; none: those of the process
	Settings []SettingOrder     `json:"settings"`
	Seed     uint64             `json:"seed"` // Seed says which packets are lost
}

type ByDirection[T any] struct {
	ToServer T `json:"toServer"`
	ToClient T `json:"toClient"`
}

// Direction has limits of 0 for none.
type Direction struct {
	DelayMs        float64 `json:"delayMs"`
	QueuePackets   int64   `json:"queuePackets,omitempty"`
	BytesPerSecond float64 `json:"bytesPerSecond,omitempty"`
	LossShare      float64 `json:"lossShare,omitempty"`
	// LossBurstPackets is how many packets in a row are lost in the mean. 0: each by itself, so 1/(1-LossShare).
	LossBurstPackets float64 `json:"lossBurstPackets,omitempty"`
}

type SettingOrder struct {
	Side  Side   `json:"side"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

type Side string

const Client, Server Side = "client", "server"

// Ready answers the order: where each side is, and which settings did not take effect.
type Ready struct {
	Server         SideReady        `json:"server"`
	Client         SideReady        `json:"client"`
	Settings       []SettingOutcome `json:"settings"`
	ToServerThread int              `json:"toServerThread"` // ToServerThread carries the packets to the server
}

type SideReady struct {
	Netns   string `json:"netns"`
	Address string `json:"address"`
}

// SettingOutcome says why a setting does not hold; Problem is empty if it does.
type SettingOutcome struct {
	SettingOrder
	Problem string `json:"problem,omitempty"`
}

// NetworkUse is what the network carried since the last report.
type NetworkUse struct {
	ToServer        Traffic `json:"toServer"`
	ToClient        Traffic `json:"toClient"`
	Retransmits     Sides   `json:"retransmits"`
	ListenOverflows int64   `json:"listenOverflows"`
	// LinkCPUSeconds are of each direction's thread; ToClient has all other threads of the process, too.
	LinkCPUSeconds ByDirection[float64] `json:"linkCpuSeconds"`
}

// Report is the network's use, once it is quiet.
type Report struct {
	Quiet bool `json:"quiet"`
	NetworkUse
	DeviceDrops int64 `json:"deviceDrops"`
}

type Sides struct {
	Client int64 `json:"client"`
	Server int64 `json:"server"`
}

type Counts struct {
	AtMs float64 `json:"atMs"` // the instant on CLOCK_MONOTONIC
	NetworkUse
}

// Traffic is one direction's: Packets came in, of which some were Delivered, Dropped at a full queue, or Lost by order.
type Traffic struct {
	Packets    int64      `json:"packets"`
	Kinds      KindCounts `json:"kinds"`
	Bytes      int64      `json:"bytes"`
	Delivered  int64      `json:"delivered"`
	Dropped    int64      `json:"dropped"`
	Lost       int64      `json:"lost"`
	LatenessMs Lateness   `json:"latenessMs"`
}

// Lateness is how much later than their delay packets left, in milliseconds: the link's own error.
type Lateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// parseOrder refuses unknown fields: a misspelt limit must not become none.
func parseOrder(line []byte) (order Order, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&order); err != nil {
		err = fmt.Errorf("the order cannot be read: %w", err)
	}
	return order, err
}

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

// came counts a packet that was read from its sender's device, whatever becomes of it.
func (c *counters) came(packet []byte) {
	c.Packets++
	c.Bytes += int64(len(packet))
	*c.Kinds.of(packet)++
}

// left counts a packet that was written to its receiver's device, and how late, in nanoseconds.
func (c *counters) left(late int64) {
	c.Delivered++
	c.latest = max(c.latest, late)
	c.lateness.Record(min(max(late, 0), longestLateness), 1)
}

// traffic is the message about these counts. Times become milliseconds.
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

// KindCounts counts packets by what they do in TCP.
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
