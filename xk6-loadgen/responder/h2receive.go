package responder

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func (s *h2) received(w *workspace, p []byte) int {
	left := p
	for len(left) > 0 && !s.ending {
		switch {
		case len(w.out) > maxOutBytes:
			return len(p) - len(left)
		case s.greeted < len(http2.ClientPreface):
			left = s.greet(w, left)
		case s.dataLeft > 0:
			n := min(s.dataLeft, len(left))
			left = left[n:]
			if s.dataLeft -= n; s.dataLeft == 0 {
				s.dataEnded(w)
			}
		default:
			var frame []byte
			if frame, left = s.frame(left); frame != nil {
				if code := s.act(w, frame); code != http2.ErrCodeNo {
					s.fault(w, code)
				}
			}
		}
	}
	return len(p)
}

// greet compares with the client's preface. What is none is no HTTP/2, and gets no answer.
func (s *h2) greet(w *workspace, p []byte) []byte {
	n := min(len(p), len(http2.ClientPreface)-s.greeted)
	if string(p[:n]) != http2.ClientPreface[s.greeted:s.greeted+n] {
		s.ending = true
		return nil
	}
	if s.greeted += n; s.greeted == len(http2.ClientPreface) {
		w.out = append(w.out, s.answer.greeting...)
	}
	return p[n:]
}

// fault ends the connection (RFC 9113, section 5.4.1).
func (s *h2) fault(w *workspace, code http2.ErrCode) {
	w.out = appendFrameHeader(w.out, 8, http2.FrameGoAway, 0, 0)
	w.out = binary.BigEndian.AppendUint32(w.out, s.lastID)
	w.out = binary.BigEndian.AppendUint32(w.out, uint32(code))
	// What is not answered yet will not be.
	s.ending, s.streams = true, s.streams[:0]
}

// needed is how many bytes a frame takes that begins like this, as far as can be told. Of DATA it is the header alone.
func needed(p []byte) int {
	if len(p) < frameHeaderBytes || http2.FrameType(p[3]) == http2.FrameData {
		return frameHeaderBytes
	}
	if length := frameLength(p); length <= maxFrameBytes {
		return frameHeaderBytes + length
	}
	// It is refused by its header.
	return frameHeaderBytes
}

func frameLength(p []byte) int { return int(p[0])<<16 | int(p[1])<<8 | int(p[2]) }

// frame takes a frame off p, which is valid until the next call; nil: its end has not come in, and all of p is kept.
func (s *h2) frame(p []byte) (frame, rest []byte) {
	if len(s.kept) == 0 {
		if n := needed(p); len(p) >= n {
			return p[:n], p[n:]
		}
		s.kept = append(s.kept, p...)
		return nil, nil
	}
	for len(s.kept) < needed(s.kept) {
		missing := needed(s.kept) - len(s.kept)
		if len(p) < missing {
			s.kept = append(s.kept, p...)
			return nil, nil
		}
		s.kept, p = append(s.kept, p[:missing]...), p[missing:]
	}
	frame, s.kept = s.kept, s.kept[:0]
	return frame, p
}

// act acts on a frame and returns what is wrong with it; ErrCodeNo: nothing.
func (s *h2) act(w *workspace, frame []byte) http2.ErrCode {
	length, kind, flags := frameLength(frame), http2.FrameType(frame[3]), http2.Flags(frame[4])
	id, payload := binary.BigEndian.Uint32(frame[5:])&lastStreamID, frame[frameHeaderBytes:]
	switch {
	case length > maxFrameBytes:
		return http2.ErrCodeFrameSize
	case !s.settled && (kind != http2.FrameSettings || flags.Has(http2.FlagSettingsAck)),
		(s.blockID != 0) != (kind == http2.FrameContinuation), kind == http2.FrameContinuation && id != s.blockID:
		return http2.ErrCodeProtocol
	}
	switch kind {
	case http2.FrameHeaders:
		return s.headers(w, id, flags, payload)
	case http2.FrameContinuation:
		if s.blockFrames++; s.blockFrames > maxBlockFrames {
			return http2.ErrCodeEnhanceYourCalm
		}
		if flags.Has(http2.FlagContinuationEndHeaders) {
			if s.blockID = 0; s.blockEnds {
				s.take(w, id)
			}
		}
	case http2.FrameData:
		return s.requestData(w, id, flags, length)
	case http2.FrameSettings:
		return s.settings(w, id, flags, payload)
	case http2.FrameWindowUpdate:
		return s.windowUpdate(id, payload)
	case http2.FramePing:
		switch {
		case length != 8:
			return http2.ErrCodeFrameSize
		case id != 0:
			return http2.ErrCodeProtocol
		case !flags.Has(http2.FlagPingAck):
			w.out = append(appendFrameHeader(w.out, 8, http2.FramePing, http2.FlagPingAck, 0), payload...)
		}
	case http2.FrameRSTStream:
		switch {
		case length != 4:
			return http2.ErrCodeFrameSize
		case !s.isOpened(id):
			return http2.ErrCodeProtocol
		}
		if place, open := s.find(id); open {
			s.streams = slices.Delete(s.streams, place, place+1)
		}
	case http2.FramePushPromise:
		return http2.ErrCodeProtocol
	}
	// PRIORITY changes nothing, GOAWAY neither: the client closes when it is through. Others are extensions.
	return http2.ErrCodeNo
}

// isOpened tells whether the client has opened this stream, be it under way or not.
func (s *h2) isOpened(id uint32) bool { return id%2 == 1 && id <= s.lastID }

func (s *h2) headers(w *workspace, id uint32, flags http2.Flags, payload []byte) http2.ErrCode {
	ends, whole := flags.Has(http2.FlagHeadersEndStream), flags.Has(http2.FlagHeadersEndHeaders)
	switch place, open := s.find(id); {
	case id%2 == 0:
		return http2.ErrCodeProtocol
	case open && (s.streams[place].ended || !ends):
		// Neither a request nor its trailers.
		return http2.ErrCodeProtocol
	case open:
	case id <= s.lastID:
		// Trailers of a request that was refused or given up.
		ends = false
	default:
		s.lastID = id
		if !s.started {
			s.started, s.isHead = true, whole && isHead(w, flags, payload)
		}
		if len(s.streams) == maxStreams {
			s.giveUp(w, id, http2.ErrCodeRefusedStream)
			ends = false
		} else if !ends {
			s.streams = append(s.streams, h2stream{id: id, window: s.initial})
		}
	}
	if !whole {
		s.blockID, s.blockFrames, s.blockEnds = id, 1, ends
	} else if ends {
		s.take(w, id)
	}
	return http2.ErrCodeNo
}

// isHead tells whether a connection's first header block has the method HEAD. What cannot be read has not.
func isHead(w *workspace, flags http2.Flags, payload []byte) bool {
	if flags.Has(http2.FlagHeadersPadded) {
		if len(payload) == 0 || len(payload) <= int(payload[0]) {
			return false
		}
		payload = payload[1 : len(payload)-int(payload[0])]
	}
	if flags.Has(http2.FlagHeadersPriority) {
		payload = payload[min(5, len(payload)):]
	}
	if !bytes.Equal(payload, w.lastBlock) || len(payload) == 0 {
		w.lastBlock, w.lastIsHead = append(w.lastBlock[:0], payload...), false
		// The table is the connection's, and it is empty at its first block.
		decoder := hpack.NewDecoder(4096, func(f hpack.HeaderField) {
			if f.Name == ":method" {
				w.lastIsHead = f.Value == "HEAD"
			}
		})
		decoder.Write(payload) //nolint:errcheck // then it is no HEAD
	}
	return w.lastIsHead
}

// requestData acts on the header of a DATA frame; what is in it passes by.
func (s *h2) requestData(w *workspace, id uint32, flags http2.Flags, length int) http2.ErrCode {
	if !s.isOpened(id) {
		return http2.ErrCodeProtocol
	}
	if s.taken += int64(length); s.taken > maxWindow {
		return http2.ErrCodeFlowControl
	}
	if s.taken > maxWindow/2 {
		w.out = appendFrameHeader(w.out, 4, http2.FrameWindowUpdate, 0, 0)
		w.out = binary.BigEndian.AppendUint32(w.out, uint32(s.taken))
		s.taken = 0
	}
	s.dataLeft, s.dataEnds = length, 0
	place, open := s.find(id)
	if open && s.streams[place].ended {
		return http2.ErrCodeStreamClosed
	}
	if open && flags.Has(http2.FlagDataEndStream) {
		s.dataEnds = id
		if length == 0 {
			s.dataEnded(w)
		}
	}
	return http2.ErrCodeNo
}

// dataEnded: the last byte of a DATA frame has come in.
func (s *h2) dataEnded(w *workspace) {
	if id := s.dataEnds; id != 0 {
		s.dataEnds = 0
		s.take(w, id)
	}
}

// giveUp tells the client that a stream gets no response.
func (s *h2) giveUp(w *workspace, id uint32, code http2.ErrCode) {
	w.out = appendFrameHeader(w.out, 4, http2.FrameRSTStream, 0, id)
	w.out = binary.BigEndian.AppendUint32(w.out, uint32(code))
}

func (s *h2) settings(w *workspace, id uint32, flags http2.Flags, payload []byte) http2.ErrCode {
	isAck := flags.Has(http2.FlagSettingsAck)
	switch {
	case id != 0:
		return http2.ErrCodeProtocol
	case len(payload)%6 != 0 || isAck && len(payload) > 0:
		return http2.ErrCodeFrameSize
	case isAck:
		return http2.ErrCodeNo
	}
	s.settled = true
	for ; len(payload) > 0; payload = payload[6:] {
		value := binary.BigEndian.Uint32(payload[2:])
		switch http2.SettingID(binary.BigEndian.Uint16(payload)) {
		case http2.SettingInitialWindowSize:
			if value > maxWindow {
				return http2.ErrCodeFlowControl
			}
			// It changes the windows of all streams by the difference (RFC 9113, section 6.9.2).
			difference := int64(value) - s.initial
			s.initial = int64(value)
			for i := range s.streams {
				if s.streams[i].window += difference; s.streams[i].window > maxWindow {
					return http2.ErrCodeFlowControl
				}
			}
		case http2.SettingMaxFrameSize:
			if value < maxFrameBytes || value > 1<<24-1 {
				return http2.ErrCodeProtocol
			}
		}
	}
	w.out = appendFrameHeader(w.out, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	return http2.ErrCodeNo
}

func (s *h2) windowUpdate(id uint32, payload []byte) http2.ErrCode {
	if len(payload) != 4 {
		return http2.ErrCodeFrameSize
	}
	window := &s.window
	if id != 0 {
		place, open := s.find(id)
		switch {
		case !s.isOpened(id):
			return http2.ErrCodeProtocol
		case !open:
			return http2.ErrCodeNo
		}
		window = &s.streams[place].window
	}
	more := int64(binary.BigEndian.Uint32(payload) & lastStreamID)
	if more == 0 {
		return http2.ErrCodeProtocol
	}
	if *window += more; *window > maxWindow {
		return http2.ErrCodeFlowControl
	}
	return http2.ErrCodeNo
}
