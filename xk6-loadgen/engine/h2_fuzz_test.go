package engine

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// packed are byte strings in one, each with its length before it; unpack undoes it.
func packed(parts ...string) []byte {
	var b []byte
	for _, part := range parts {
		b = append(append(b, byte(len(part))), part...)
	}
	return b
}

func unpack(b []byte) (parts [][]byte) {
	for len(b) > 0 {
		n := min(int(b[0]), len(b)-1)
		parts = append(parts, b[1:1+n])
		b = b[1+n:]
	}
	return parts
}

// meaning is what a response's fields mean by RFC 9113, section 8: what an hpackDecoder has to make of them.
func meaning(fields []hpack.HeaderField) (b block) {
	b.length = -1
	bad := func(f hpack.HeaderField) bool {
		if f.Name == ":status" {
			n, err := strconv.ParseUint(f.Value, 10, 16)
			twiceOrLate := b.status != 0 || b.hasRegular
			b.status = int(n)
			return err != nil || len(f.Value) != 3 || twiceOrLate || n < 100 || n > 599
		}
		b.hasRegular = true
		if f.Name == "content-length" {
			n, err := strconv.ParseUint(f.Value, 10, lengthBits)
			differs := b.length >= 0 && b.length != int64(n)
			b.length = int64(n)
			return err != nil || differs
		}
		return f.Name == "" || f.Name[0] == ':' || slices.ContainsFunc([]byte(f.Name), func(c byte) bool { return c <= ' ' || c >= 0x7f || c >= 'A' && c <= 'Z' })
	}
	for _, f := range fields {
		b.decodedBytes += int64(len(f.Name) + len(f.Value))
		if b.malformed == "" && bad(f) {
			b.malformed = "so it is"
		}
	}
	return b
}

// FuzzHPACK holds the decoder against that of golang.org/x/net: header blocks of one connection, each of them twice, so
// that what is remembered of a block is tried too.
func FuzzHPACK(f *testing.F) {
	var buffer bytes.Buffer
	encoder := hpack.NewEncoder(&buffer)
	encoded := func(fields ...string) string {
		buffer.Reset()
		for i := 0; i < len(fields); i += 2 {
			encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: fields[i] == "set-cookie"})
		}
		return buffer.String()
	}
	f.Add(packed(encoded(":status", "200", "server", "nginx", "content-length", "612"), encoded(":status", "200", "server", "nginx", "content-length", "612")))
	f.Add(packed(encoded(":status", "404", "x", strings.Repeat("y", 100)), encoded(":status", "404", "x", "", "set-cookie", "a=b")))
	encoder.SetMaxDynamicTableSize(64)
	f.Add(packed(encoded(":status", "299", "a", "b", "c", "d", "e", "f"), encoded(":status", "299", "c", "d")))
	f.Add(packed("\x3f\x21\x88\x40\x01x\x1f"+strings.Repeat("y", 31), "\x88\xbe"))
	f.Add(packed("\x88", "\x88\x80", "\x88\xbe"))
	f.Add(packed("\x88\x40\x01x\x01y", "\x20\x88\xbe"))
	f.Add(packed("\x3f\xe1\x1f\x20\x88", "\x3f\xe2\x1f\x88", "\x88\x20"))
	f.Add(packed("\x88\x5c\x0112", "\x88\x0f\x0d\x03612\x5c\x03613", "\x40\x01A\x00\x88", "\x08\x03099"))
	f.Add(packed("\x88\x00\x01a\x84\xff\xff\xff\xff", "\x88\x00\x01a\x81\x18", "\x88\x00\x81\x1f\x82\x1f\xff"))
	f.Add(packed("\xff\x80\x80\x80\x80\x00", "\x7f\x00\x01x", "\x00\x7f\xff\xff\xff\xff\x07"))
	// A block fills the table with 17 entries; a reference to the oldest of them, and another block, follow.
	short, long := "\x88\x40\x01z\x01w", "\x88\x40\x01x\x7f\x49"+strings.Repeat("y", 200)
	f.Add(packed(append(append([]string{short}, slices.Repeat([]string{long}, 11)...), "\x88\xce")...))
	f.Add(packed(append(slices.Repeat([]string{long}, 11), short, "\x88\xbe")...))
	f.Fuzz(func(t *testing.T, data []byte) {
		mine, theirs, cache := hpackDecoder{maxBytes: hpackTableBytes, strings: &hpackStrings{}}, hpack.NewDecoder(hpackTableBytes, nil), &blockCache{}
		other := hpackDecoder{maxBytes: hpackTableBytes, strings: &hpackStrings{}} // of another connection, which has the same cache and is the first to get every other block
		for i, part := range unpack(data) {
			if i%2 > 0 {
				other.decode(part, cache)
			}
			for range 2 {
				got, fault := mine.decode(bytes.Clone(part), cache)
				fields, err := theirs.DecodeFull(part)
				switch {
				case err == nil && fault == "a table size update is not allowed":
					// After a field it has to be refused (RFC 7541, section 4.2), which x/net does not do while its table is
					// empty.
					return
				case fault == "" && err != nil && strings.Contains(err.Error(), "size update MUST occur"):
					// Two at a block's start are allowed (section 4.2), x/net takes one.
					return
				case err == nil && fault != "" && bytes.Contains(part, []byte("\x80\x80")):
					// An integer longer than it need be may be refused (section 5.1).
					return
				}
				if (fault != "") != (err != nil) {
					t.Fatalf("block %d, %x: %q, x/net says %v", i, part, fault, err)
				}
				if err != nil {
					return
				}
				want := meaning(fields)
				if got.malformed != "" {
					got.malformed = want.malformed
					if want.malformed == "" {
						t.Fatalf("block %d, %x: malformed, but it says %v", i, part, fields)
					}
				}
				if want.malformed != "" && got.malformed != "" {
					got.status, got.length, got.hasRegular = want.status, want.length, want.hasRegular
				}
				if got != want {
					t.Fatalf("block %d, %x: %+v, want %+v of %v", i, part, got, want, fields)
				}
			}
		}
	})
}

// loneSession is an HTTP/2 session without a network: what it sends can be read at peer.
type loneSession struct {
	*loop
	*h2
	peer int
}

// newLoneSession has 5 streams under way, and 15 attempts after them. One loop serves many, one after the other.
func newLoneSession(t testing.TB, l *loop) loneSession {
	sockets, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.window.phase, l.open, l.counts.outstanding, l.counts.responses, l.backoffs.slots, l.counts.example = measuring, 1, 0, 0, nil, ""
	l.counts.current.Counts, l.starts.ring, l.caches.block = Counts{}, newConnRing(1), blockCache{}
	c := &l.conns[0]
	*c = conn{loop: l, fd: sockets[0], state: established, left: l.plan.Requests, generation: 1}
	s := loneSession{l, &h2{streaming: streaming{conn: c}}, sockets[1]}
	s.h2.own = s.h2
	c.session = s.h2
	s.connected()
	return s
}

// feed gives the session what came in, in pieces of at most n bytes, and returns what was counted.
func (s loneSession) feed(data []byte, n int) Counts {
	c := s.h2.conn
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
	s.h2.conn.close()
	defer syscall.Close(s.peer)
	var all []byte
	for buffer := make([]byte, 1<<16); ; {
		n, err := syscall.Read(s.peer, buffer)
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
			c, got := s.h2.conn, counts[i]
			under, taken := int64(s.active+len(s.waiting)), l.plan.Requests-c.left
			if got.Requests+under != taken || s.counts.outstanding != under || got.Requests != got.Responses[0]+got.Responses[1]+got.Responses[2]+got.Responses[3]+got.ErrorTotal() {
				t.Errorf("%d taken, %d under way and waiting, outstanding %d, counted %+v", taken, under, s.counts.outstanding, got)
			}
			if got.Errors[ErrProtocol]+got.Errors[ErrRead] != got.ErrorTotal() || got.ErrorTotal() > 0 && s.counts.example == "" {
				t.Errorf("errors %v: %q", got.Errors, s.counts.example)
			}
			checkSent(t, s.sent())
		}
		// How much of a body is sent, and so what its window takes, depends on the pieces.
		if !posts && counts[0] != counts[1] {
			t.Errorf("whole: %+v, in pieces of %d: %+v", counts[0], pieces, counts[1])
		}
	})
}

// checkSent holds what a client sent against RFC 9113; it may be cut off.
func checkSent(t *testing.T, sent []byte) {
	rest, isClient := bytes.CutPrefix(sent, []byte(http2.ClientPreface))
	if !isClient {
		t.Fatalf("the preface is %q", sent[:min(24, len(sent))])
	}
	framer := http2.NewFramer(nil, bytes.NewReader(rest))
	framer.SetMaxReadFrameSize(16384)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	last := uint32(0)
	for {
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
