package engine

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h2"
)

// loneSession is an HTTP/2 session without a network: what it sends can be read at far.
type loneSession struct {
	*loop
	*h2Session
	far int
}

// newLoneSession has 5 streams under way, and 15 attempts after them. One loop serves many, one after the other.
func newLoneSession(t testing.TB, l *loop) loneSession {
	sockets, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	l.window.phase, l.open, l.counts.outstanding, l.counts.responses, l.backoffs.slots, l.counts.example = measuring, 1, 0, 0, nil, ""
	l.counts.current.Counts, l.starts.ring, l.h2 = Counts{}, newConnRing(1), h2.Shared{}
	c := &l.conns[0]
	*c = conn{loop: l, fd: sockets[0], state: established, left: l.plan.Requests, generation: 1}
	s := loneSession{l, &h2Session{streaming: streaming{conn: c}}, sockets[1]}
	s.own = s.h2Session
	c.session = s.h2Session
	s.connected()
	return s
}

// feed gives the session what came in, in pieces of at most n bytes, and returns what was counted.
func (s loneSession) feed(data []byte, n int) Counts {
	c := s.h2Session.conn
	for len(data) > 0 && c.fd >= 0 {
		piece := data[:min(n, len(data))]
		data = data[len(piece):]
		s.received(piece)
		if c.fd >= 0 {
			s.flush()
		}
	}
	counts := s.loop.counts.current.Counts
	// What leaves before the end of a piece does not, when the connection ends in it.
	counts.SentBytes = 0
	return counts
}

// sent is what the session has sent; it closes the sockets.
func (s loneSession) sent() []byte {
	s.h2Session.conn.close()
	defer syscall.Close(s.far)
	var all []byte
	for buffer := make([]byte, 1<<16); ; {
		n, err := syscall.Read(s.far, buffer)
		if n <= 0 || err != nil {
			return all
		}
		all = append(all, buffer[:n]...)
	}
}

// FuzzH2Frames feeds a session with what a server may send. However it is cut into pieces, it has to mean the same, every
// attempt has to end once, and what the session sends has to be HTTP/2.
func FuzzH2Frames(f *testing.F) {
	o := options("http://127.0.0.1:9/")
	o.Protocol, o.Streams, o.Connections, o.Requests = H2C, 5, 1, 20
	get := idleLoop(f, o)
	o.Method, o.Body = "POST", bytes.Repeat([]byte("x"), 40_000)
	post := idleLoop(f, o)
	frames := func(write ...func(f *http2.Framer)) []byte {
		var b bytes.Buffer
		framer := http2.NewFramer(&b, nil)
		framer.AllowIllegalWrites = true
		framer.WriteSettings(windowSetting(65535))
		framer.WriteSettingsAck()
		for _, w := range write {
			w(framer)
		}
		return b.Bytes()
	}
	head := func(id uint32, end bool, block ...byte) func(*http2.Framer) {
		return func(f *http2.Framer) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: end})
		}
	}
	data := func(id uint32, end bool, body string) func(*http2.Framer) {
		return func(f *http2.Framer) { f.WriteData(id, end, []byte(body)) }
	}
	for _, posts := range []bool{false, true} {
		f.Add(frames(head(1, false, 0x88, 0x5c, 1, '5'), data(1, true, "hello"), head(3, true, 0x88), head(5, true, 0x89)), posts, 3)
		f.Add(frames(head(1, false, 0x48, 3, '1', '0', '3'), head(1, false, 0x88), data(1, false, "x"), head(1, true, 0x40, 1, 'x', 1, 'y'), head(3, true, 0x88, 0xbe)), posts, 7)
		f.Add(frames(func(f *http2.Framer) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, PadLength: 5, Priority: http2.PriorityParam{StreamDep: 3}})
			f.WriteContinuation(1, false, nil)
			f.WriteContinuation(1, true, []byte{0x5c, 1, '3'})
			f.WriteDataPadded(1, true, []byte("abc"), make([]byte, 20))
			f.WriteRSTStream(3, http2.ErrCodeRefusedStream)
			f.WritePing(false, [8]byte{1})
			f.WriteWindowUpdate(0, 100_000)
			f.WriteWindowUpdate(5, 100_000)
			f.WriteGoAway(5, http2.ErrCodeNo, []byte("bye"))
		}, head(5, true, 0x88)), posts, 1)
		f.Add(frames(func(f *http2.Framer) {
			f.WriteSettings(streamsSetting(2), tableSetting(0), windowSetting(10), http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20})
			f.WriteSettings(windowSetting(1<<31 - 1))
			f.WritePriority(7, http2.PriorityParam{})
			f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2})
			f.WriteRawFrame(0x42, 0xff, 9, []byte("new"))
		}), posts, 5)
		f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), posts, 2)
	}
	f.Fuzz(func(t *testing.T, stream []byte, posts bool, n int) {
		if len(stream) > 1<<16 {
			return
		}
		l := get
		if posts {
			l = post
		}
		var counts [2]Counts
		pieces := max(1, n&0xff)
		for i, size := range []int{1 << 16, pieces} {
			s := newLoneSession(t, l)
			counts[i] = s.feed(stream, size)
			c, got := s.h2Session.conn, counts[i]
			under, taken := s.underWay(), l.plan.Requests-c.left
			if got.Requests+under != taken || s.counts.outstanding != under || got.Requests != got.Responses[0]+got.Responses[1]+got.Responses[2]+got.Responses[3]+got.ErrorTotal() {
				t.Errorf("%d taken, %d under way and waiting, outstanding %d, counted %+v", taken, under, s.counts.outstanding, got)
			}
			if got.Errors[ErrProtocol]+got.Errors[ErrRead] != got.ErrorTotal() || got.ErrorTotal() > 0 && s.counts.example == "" {
				t.Errorf("errors %v: %q", got.Errors, s.counts.example)
			}
			checkFrames(t, s.sent())
		}
		// How much of a body is sent, and so what its window takes, depends on the pieces.
		if !posts && counts[0] != counts[1] {
			t.Errorf("whole: %+v, in pieces of %d: %+v", counts[0], pieces, counts[1])
		}
	})
}

// checkFrames holds that what has left is whole frames in a row, of which the last may be cut off, and that the requests are those of the loop
// on streams in their order.
func checkFrames(t *testing.T, sent []byte) {
	rest, isClient := bytes.CutPrefix(sent, []byte(http2.ClientPreface))
	if !isClient {
		t.Fatalf("the preface is %q", sent[:min(24, len(sent))])
	}
	framer := http2.NewFramer(nil, bytes.NewReader(rest))
	framer.SetMaxReadFrameSize(16384)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for last := uint32(0); ; {
		frame, err := framer.ReadFrame()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
		if err != nil {
			t.Fatalf("sent what is no HTTP/2: %v", err)
		}
		if headers, isHeaders := frame.(*http2.MetaHeadersFrame); isHeaders {
			if headers.StreamID <= last || headers.StreamID%2 == 0 || headers.PseudoValue("authority") != "127.0.0.1:9" {
				t.Fatalf("sent %v after stream %d", headers, last)
			}
			last = headers.StreamID
		}
	}
}
