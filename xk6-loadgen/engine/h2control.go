package engine

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// noTable sets the size of the dynamic table to 0.
var noTable = []byte{0x20}

// updateWindow gives the server its window back when half of it is used, and returns what is used then.
func (s *h2) updateWindow(id uint32, used int64) int64 {
	if used <= windowBytes/2 {
		return used
	}
	l := s.conn.loop
	l.out = appendFrameHeader(l.out, 4, http2.FrameWindowUpdate, 0, id)
	l.out = binary.BigEndian.AppendUint32(l.out, uint32(used))
	return 0
}

func (s *h2) rstStream(f *frame) fault {
	if f.length != 4 || f.id == 0 {
		return malformed("an RST_STREAM frame is malformed", f.length != 4)
	}
	st := s.find(f.id)
	if st == nil {
		return s.unopened(f.id)
	}
	code := http2.ErrCode(binary.BigEndian.Uint32(f.payload))
	if code == http2.ErrCodeRefusedStream && f.id < s.earlyID {
		// It was opened before the server had said how many it takes.
		s.requeue(st)
	} else {
		l, example := s.conn.loop, ""
		// Made for the first error only: no other one is shown, and a flood of them allocates nothing.
		if l.example == "" {
			example = "the server reset the stream (" + code.String() + ")"
		}
		l.failure(s.conn, ErrRead, CauseReset, example, st.due)
		s.remove(st)
	}
	s.refill()
	return fault{}
}

func (s *h2) settings(f *frame) fault {
	if f.id != 0 || f.length%6 != 0 || f.flags.Has(http2.FlagSettingsAck) && f.length != 0 {
		return malformed("a SETTINGS frame is malformed", f.id == 0)
	}
	if f.flags.Has(http2.FlagSettingsAck) {
		return fault{}
	}
	l := s.conn.loop
	if !s.greeted {
		// Without a word on it, the server takes any number of streams.
		s.greeted, s.earlyID, s.limit = true, s.nextID, l.plan.Streams
	}
	for p := f.payload; len(p) > 0; p = p[6:] {
		value := binary.BigEndian.Uint32(p[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(p)) {
		case http2.SettingHeaderTableSize:
			if value < hpackTableBytes {
				// It wants no table of our size: from now on it has none (RFC 7541, section 6.3).
				s.update, s.shared, s.later = noTable, l.plan.h2.plain, l.plan.h2.plain
			}
		case http2.SettingEnablePush:
			if value != 0 {
				return protocolFault("SETTINGS allow a push by the client")
			}
		case http2.SettingMaxConcurrentStreams:
			s.limit = int(min(value, uint32(l.plan.Streams)))
			if n := int64(value); l.maxConcurrentStreams == 0 || n < l.maxConcurrentStreams {
				l.maxConcurrentStreams = n
			}
		case http2.SettingInitialWindowSize:
			if value > maxWindowBytes {
				return fault{http2.ErrCodeFlowControl, "SETTINGS have a window that is too large"}
			}
			if fault := s.setInitialWindow(int64(value)); fault.text != "" {
				return fault
			}
		case http2.SettingMaxFrameSize:
			if value < maxFrameBytes || value > 1<<24-1 {
				return protocolFault("SETTINGS have a frame size that is not allowed")
			}
		}
	}
	l.out = appendFrameHeader(l.out, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	s.refill()
	return fault{}
}

// setInitialWindow changes the windows of all streams by the difference (RFC 9113, section 6.9.2).
func (s *h2) setInitialWindow(size int64) fault {
	difference := size - s.initialWindow
	s.initialWindow = size
	for i := range s.streams {
		if st := &s.streams[i]; st.id != 0 {
			if st.window += difference; st.window > maxWindowBytes {
				return fault{http2.ErrCodeFlowControl, "a stream's window is too large"}
			}
		}
	}
	return fault{}
}

func (s *h2) ping(f *frame) fault {
	if f.length != 8 || f.id != 0 {
		return malformed("a PING frame is malformed", f.length != 8)
	}
	if !f.flags.Has(http2.FlagPingAck) {
		l := s.conn.loop
		l.out = append(appendFrameHeader(l.out, 8, http2.FramePing, http2.FlagPingAck, 0), f.payload...)
	}
	return fault{}
}

// goAway: the server takes no new streams, and has not looked at those above the last one it names.
func (s *h2) goAway(f *frame) fault {
	if f.length < 8 || f.id != 0 {
		return malformed("a GOAWAY frame is malformed", f.length < 8)
	}
	last := binary.BigEndian.Uint32(f.payload) & lastStreamID
	s.draining, s.tolerant = true, true
	s.goneAway, s.goAwayCode = true, http2.ErrCode(binary.BigEndian.Uint32(f.payload[4:]))
	for i := range s.streams {
		if st := &s.streams[i]; st.id > last {
			s.requeue(st)
		}
	}
	s.refill()
	return fault{}
}

func (s *h2) windowUpdate(f *frame) fault {
	if f.length != 4 {
		return malformed("a WINDOW_UPDATE frame is malformed", true)
	}
	more := int64(binary.BigEndian.Uint32(f.payload) & lastStreamID)
	if f.id == 0 {
		const text = "the connection's window is not raised as allowed"
		if s.sendWindow += more; more == 0 {
			return protocolFault(text)
		} else if s.sendWindow > maxWindowBytes {
			return fault{http2.ErrCodeFlowControl, text}
		}
		return fault{}
	}
	st := s.find(f.id)
	switch {
	case st == nil:
		return s.unopened(f.id)
	case more == 0 || st.window+more > maxWindowBytes:
		s.fault(st, "a stream's window is not raised as allowed")
	default:
		st.window += more
	}
	return fault{}
}
