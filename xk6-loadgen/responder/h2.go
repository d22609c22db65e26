package responder

import (
	"slices"

	"golang.org/x/net/http2"
)

const (
	// received takes no more before this much is sent: what a peer that does not read can make us keep.
	maxOutBytes = 256 << 10
	// No header block needs more frames than this: they hold 16 KiB each.
	maxBlockFrames = 64
)

// h2stream is a request that is not answered wholly.
type h2stream struct {
	id uint32
	// ended: the request is there. left is what of the body is not in a frame yet.
	ended bool
	left  int64
	// window is what the peer takes on this stream; it may be below zero.
	window int64
}

// h2 is HTTP/2 (RFC 9113). A request that comes in one frame, and whose response is one DATA frame that the windows have
// room for, is answered at once; others become streams.
type h2 struct {
	answer *h2Answer
	// greeted is how much of the client's preface has come; settled: its SETTINGS too.
	greeted int
	settled bool
	// kept is the beginning of a frame whose end has not come in yet.
	kept []byte
	// dataLeft is what is to come of a DATA frame's payload; dataEnds is the stream that it ends, or 0.
	dataLeft int
	dataEnds uint32
	// blockID is the stream whose header block goes on in CONTINUATION frames; 0: none does.
	blockID     uint32
	blockFrames int
	blockEnds   bool
	// isHead: the connection's first request had the method HEAD, and load is one request over and over.
	isHead, started bool
	// lastID is the last stream that the client has opened. streams are those under way, ascending.
	lastID  uint32
	streams []h2stream
	// window is what the peer takes on the connection, initial what it takes on a new stream.
	window, initial int64
	// taken is what came in of request bodies since the last update of the connection's window.
	taken int64
	// held is what was pending when the transport let go; heldSent of it has left.
	held     []byte
	heldSent int
	// current is the DATA frame that has begun to leave.
	current dataFrame
	ending  bool
}

// dataFrame is a DATA frame of which left bytes, its header included, have not been sent.
type dataFrame struct {
	id     uint32
	length int
	ends   bool
	left   int
}

func (s *h2) reset() {
	*s = h2{
		answer: s.answer, window: initialWindow, initial: initialWindow,
		kept: emptied(s.kept), held: emptied(s.held), streams: s.streams[:0],
	}
}

// take ends a request: it is answered, or waits for its turn.
func (s *h2) take(w *workspace, id uint32) {
	a := s.answer
	place, open := s.find(id)
	window := s.initial
	if open {
		window = s.streams[place].window
	}
	switch n := a.bodyBytes; {
	case s.isHead || n == 0:
		at := len(w.out)
		w.out = append(w.out, a.head...)
		setStream(w.out[at:], id)
	case n <= maxFrameBytes && n <= s.window && n <= window:
		at := len(w.out)
		w.out = append(w.out, a.whole...)
		setStream(w.out[at:], id)
		setStream(w.out[at+a.dataAt:], id)
		s.window -= n
	default:
		at := len(w.out)
		w.out = append(w.out, a.begin...)
		setStream(w.out[at:], id)
		if !open {
			s.streams = append(s.streams, h2stream{id: id, window: window})
		}
		st := &s.streams[place]
		st.ended, st.left = true, n
		return
	}
	if open {
		s.streams = slices.Delete(s.streams, place, place+1)
	}
}

// find is the place of a stream among those under way, or where it would be.
func (s *h2) find(id uint32) (int, bool) {
	if n := len(s.streams); n == 0 || s.streams[n-1].id < id {
		return n, false
	}
	return slices.BinarySearchFunc(s.streams, id, func(st h2stream, id uint32) int { return int(int64(st.id) - int64(id)) })
}

// nextFrame is how long the next DATA frame of a stream may be.
func nextFrame(st *h2stream, window int64) int64 {
	return min(maxFrameBytes, st.left, st.window, window)
}

// ready is the first stream that may send; nil when there is none.
func (s *h2) ready() *h2stream {
	if s.window <= 0 {
		return nil
	}
	for i := range s.streams {
		if st := &s.streams[i]; st.left > 0 && st.window > 0 {
			return st
		}
	}
	return nil
}

func (s *h2) pending(w *workspace) []byte {
	if s.current.left == 0 {
		if s.heldSent < len(s.held) {
			return s.held[s.heldSent:]
		}
		if w.outSent < len(w.out) {
			return w.out[w.outSent:]
		}
	}
	if s.current.left == 0 && len(s.streams) == 0 {
		return nil
	}
	return s.data(w)
}

// data writes the headers of the DATA frames that follow into the workspace's block and returns their part of it: the rest
// of the frame that has begun to leave, and those of the first stream that may send.
func (s *h2) data(w *workspace) []byte {
	if w.frames == nil {
		w.frames = newFrameBlock()
	}
	at, end := 0, 0
	if f := s.current; f.left > 0 {
		putDataHeader(w.frames, f)
		end = frameHeaderBytes + f.length
		at = end - f.left
		if f.length < maxFrameBytes || s.heldSent < len(s.held) || w.outSent < len(w.out) {
			return w.frames[at:end]
		}
	}
	if ready := s.ready(); ready != nil {
		st, window := *ready, s.window
		for n := nextFrame(&st, window); n > 0 && end+slotBytes <= len(w.frames); n = nextFrame(&st, window) {
			st.left, st.window, window = st.left-n, st.window-n, window-n
			putDataHeader(w.frames[end:], dataFrame{id: st.id, length: int(n), ends: st.left == 0})
			end += frameHeaderBytes + int(n)
			if n < maxFrameBytes {
				break
			}
		}
	}
	return w.frames[at:end]
}

func putDataHeader(dst []byte, f dataFrame) {
	var flags http2.Flags
	if f.ends {
		flags = http2.FlagDataEndStream
	}
	appendFrameHeader(dst[:0], f.length, http2.FrameData, flags, f.id)
}

func (s *h2) sent(w *workspace, n int) {
	if s.current.left == 0 {
		if s.heldSent < len(s.held) {
			if s.heldSent += n; s.heldSent == len(s.held) {
				s.held, s.heldSent = emptied(s.held), 0
			}
			return
		}
		if w.outSent < len(w.out) {
			if w.outSent += n; w.outSent == len(w.out) {
				w.out, w.outSent = w.out[:0], 0
			}
			return
		}
	}
	for n > 0 {
		if s.current.left == 0 {
			s.beginFrame()
		}
		part := min(n, s.current.left)
		s.current.left -= part
		n -= part
	}
}

// beginFrame begins the DATA frame that data has put at this place: the stream that was ready is so until it has no more to
// send.
func (s *h2) beginFrame() {
	st := s.ready()
	n := nextFrame(st, s.window)
	st.left, st.window, s.window = st.left-n, st.window-n, s.window-n
	s.current = dataFrame{id: st.id, length: int(n), ends: st.left == 0, left: frameHeaderBytes + int(n)}
	if s.current.ends {
		place, _ := s.find(st.id)
		s.streams = slices.Delete(s.streams, place, place+1)
	}
}

func (s *h2) hold(w *workspace) {
	if w.outSent < len(w.out) {
		s.held = append(s.held, w.out[w.outSent:]...)
	}
	w.out, w.outSent = w.out[:0], 0
}

func (s *h2) ends() bool { return s.ending }
