package link

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func segment(ipOptions, tcpOptions int, flags byte, payload int) []byte {
	header := ipv4Header + ipOptions
	packet := make([]byte, header+tcpHeader+tcpOptions+payload)
	packet[0] = 4<<4 | byte(header/4)
	packet[9] = protocolTCP
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	packet[header+12] = byte((tcpHeader+tcpOptions)/4) << 4
	packet[header+13] = flags
	return packet
}

func changed(packet []byte, change func(p []byte)) []byte {
	change(packet)
	return packet
}

func TestKinds(t *testing.T) {
	const psh = 0x08
	for name, c := range map[string]struct {
		packet []byte
		want   KindCounts
	}{
		"SYN with options":            {segment(0, 20, flagSyn, 0), KindCounts{Syn: 1}},
		"SYN with data":               {segment(0, 20, flagSyn, 7), KindCounts{Syn: 1}},
		"SYN and ACK":                 {segment(0, 20, flagSyn|flagAck, 0), KindCounts{SynAck: 1}},
		"ACK":                         {segment(0, 0, flagAck, 0), KindCounts{Ack: 1}},
		"ACK with options":            {segment(0, 12, flagAck, 0), KindCounts{Ack: 1}},
		"ACK behind IP options":       {segment(8, 12, flagAck, 0), KindCounts{Ack: 1}},
		"data":                        {segment(0, 12, flagAck|psh, 1), KindCounts{Data: 1}},
		"a whole packet of data":      {segment(0, 12, flagAck, mtu-52), KindCounts{Data: 1}},
		"data behind IP options":      {segment(40, 40, flagAck, 1), KindCounts{Data: 1}},
		"data and FIN":                {segment(0, 12, flagAck|flagFin|psh, 1), KindCounts{DataFin: 1}},
		"FIN":                         {segment(0, 12, flagAck|flagFin, 0), KindCounts{Fin: 1}},
		"reset":                       {segment(0, 0, flagRst, 0), KindCounts{Reset: 1}},
		"reset and ACK":               {segment(0, 0, flagRst|flagAck, 0), KindCounts{Reset: 1}},
		"not to be fragmented":        {changed(segment(0, 0, flagAck, 0), func(p []byte) { p[6] = 0x40 }), KindCounts{Ack: 1}},
		"the first fragment":          {changed(segment(0, 0, flagAck, 8), func(p []byte) { p[6] = 0x20 }), KindCounts{Other: 1}},
		"a later fragment":            {changed(segment(0, 0, flagAck, 8), func(p []byte) { p[7] = 1 }), KindCounts{Other: 1}},
		"UDP":                         {changed(segment(0, 0, flagAck, 0), func(p []byte) { p[9] = 17 }), KindCounts{Other: 1}},
		"IPv6":                        {changed(segment(0, 0, flagAck, 0), func(p []byte) { p[0] = 6 << 4 }), KindCounts{Other: 1}},
		"an IP header too short":      {changed(segment(0, 0, flagAck, 0), func(p []byte) { p[0] = 4<<4 | 4 }), KindCounts{Other: 1}},
		"a TCP header too short":      {changed(segment(0, 0, flagAck, 0), func(p []byte) { p[ipv4Header+12] = 4 << 4 }), KindCounts{Other: 1}},
		"a TCP header beyond the end": {changed(segment(0, 0, flagAck, 0), func(p []byte) { p[ipv4Header+12] = 6 << 4 }), KindCounts{Other: 1}},
		"a length beyond the end":     {changed(segment(0, 0, flagAck, 0), func(p []byte) { p[3]++ }), KindCounts{Other: 1}},
		"no room for TCP":             {changed(segment(0, 0, flagAck, 0), func(p []byte) { p[3] -= 4 }), KindCounts{Other: 1}},
		"padding behind the segment":  {append(segment(0, 0, flagAck, 0), 0, 0, 0, 0), KindCounts{Ack: 1}},
		"nothing":                     {nil, KindCounts{Other: 1}},
	} {
		var got KindCounts
		if *got.of(c.packet)++; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestAnyBytesHaveAKind(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		packet := segment(4*random.IntN(11), 4*random.IntN(11), byte(random.Uint32()), random.IntN(20))
		for range random.IntN(4) {
			packet[random.IntN(len(packet))] = byte(random.Uint32())
		}
		var k KindCounts
		*k.of(packet[:random.IntN(len(packet)+1)])++
		if k.Syn+k.SynAck+k.Ack+k.Data+k.DataFin+k.Fin+k.Reset+k.Other != 1 {
			t.Fatalf("%+v of %x", k, packet)
		}
	}
}
