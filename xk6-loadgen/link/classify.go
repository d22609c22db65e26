package link

import "encoding/binary"

// kind is what a TCP segment carries.
type kind int

const (
	kindSyn kind = iota
	kindSynAck
	kindAck
	kindData
	kindDataFin
	kindFin
	kindReset
	// kindOther is no TCP over IPv4, or a fragment.
	kindOther
	kinds
)

// KindCounts counts packets by kind, as PacketKind in lib/result/network.ts explains them.
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

func namedKinds(c [kinds]int64) KindCounts {
	return KindCounts{
		Syn: c[kindSyn], SynAck: c[kindSynAck], Ack: c[kindAck], Data: c[kindData],
		DataFin: c[kindDataFin], Fin: c[kindFin], Reset: c[kindReset], Other: c[kindOther],
	}
}

const (
	ipv4Header  = 20
	tcpHeader   = 20
	protocolTCP = 6
	flagFin     = 0x01
	flagSyn     = 0x02
	flagRst     = 0x04
	flagAck     = 0x10
)

// classify looks at an IP packet (RFC 791, RFC 9293). It takes any bytes.
func classify(packet []byte) kind {
	if len(packet) < ipv4Header || packet[0]>>4 != 4 || packet[9] != protocolTCP {
		return kindOther
	}
	// The fragment's offset and the flag that more follow: what is cut has no whole segment in it.
	if binary.BigEndian.Uint16(packet[6:])&0x3fff != 0 {
		return kindOther
	}
	header := int(packet[0]&0x0f) * 4
	total := int(binary.BigEndian.Uint16(packet[2:]))
	if header < ipv4Header || total > len(packet) || header+tcpHeader > total {
		return kindOther
	}
	offset := int(packet[header+12]>>4) * 4
	payload := total - header - offset
	if offset < tcpHeader || payload < 0 {
		return kindOther
	}
	switch flags := packet[header+13]; {
	case flags&flagRst != 0:
		return kindReset
	case flags&flagSyn != 0 && flags&flagAck != 0:
		return kindSynAck
	case flags&flagSyn != 0:
		return kindSyn
	case flags&flagFin != 0 && payload > 0:
		return kindDataFin
	case flags&flagFin != 0:
		return kindFin
	case payload > 0:
		return kindData
	}
	return kindAck
}
