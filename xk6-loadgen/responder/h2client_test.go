package responder

import (
	"bytes"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2client is a client that keeps account of HTTP/2's windows, and fails the test where the responder does not.
type h2client struct {
	*http2.Framer
	t    testing.TB
	conn *net.TCPConn
	// window is what the responder may send on the connection, initial what it may on a new stream.
	window, initial int64
	streams         map[uint32]*h2response
	resets          map[uint32]http2.ErrCode
	pongs, acks     int
	goAway          *http2.GoAwayFrame
	greeted         bool
	// refill gives windows back as DATA comes.
	refill bool
}

type h2response struct {
	fields []hpack.HeaderField
	body   int
	window int64
	ended  bool
}

func connectH2(t testing.TB, r *Responder, settings ...http2.Setting) *h2client {
	t.Helper()
	conn := dial(t, r)
	c := &h2client{
		Framer: http2.NewFramer(conn, conn), t: t, conn: conn, window: initialWindow, initial: initialWindow,
		streams: map[uint32]*h2response{}, resets: map[uint32]http2.ErrCode{},
	}
	c.AllowIllegalWrites = true
	for _, s := range settings {
		if s.ID == http2.SettingInitialWindowSize {
			c.initial = int64(s.Val)
		}
	}
	io.WriteString(conn, http2.ClientPreface)
	c.WriteSettings(settings...)
	return c
}

// block is a header block without Huffman coding or the dynamic table.
func block(method string) []byte {
	b := append([]byte{0x02, byte(len(method))}, method...)
	// :scheme http, :path / and an :authority.
	return append(append(b, 0x86, 0x84, 0x01, 9), "localhost"...)
}

func (c *h2client) request(id uint32, method string) {
	c.opened(id)
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(method), EndHeaders: true, EndStream: true})
}

func (c *h2client) opened(id uint32) { c.streams[id] = &h2response{window: c.initial} }

// setInitial changes the window of all streams: a larger one holds at once, a smaller one from its acknowledgement on.
func (c *h2client) setInitial(size int64) {
	c.t.Helper()
	change := func() {
		for _, s := range c.streams {
			s.window += size - c.initial
		}
		c.initial = size
	}
	if size > c.initial {
		change()
	}
	acks := c.acks
	c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(size)})
	c.until(func() bool { return c.acks > acks })
	if size < c.initial {
		change()
	}
}

func (c *h2client) more(id uint32, n int64) {
	if id == 0 {
		c.window += n
	} else {
		c.streams[id].window += n
	}
	c.WriteWindowUpdate(id, uint32(n))
}

// read acts on one frame; false at the connection's end.
func (c *h2client) read() bool {
	c.t.Helper()
	f, err := c.ReadFrame()
	if err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() {
			c.t.Fatal("nothing more comes")
		}
		return false
	}
	if first, isSettings := f.(*http2.SettingsFrame); !c.greeted && (!isSettings || first.IsAck()) {
		c.t.Fatalf("the first frame is %s", f)
	}
	c.greeted = true
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			c.acks++
		} else {
			c.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if f.IsAck() && f.Data == [8]byte{1, 2, 3, 4, 5, 6, 7, 8} {
			c.pongs++
		}
	case *http2.GoAwayFrame:
		copied := *f
		c.goAway = &copied
	case *http2.RSTStreamFrame:
		c.resets[f.StreamID] = f.ErrCode
	case *http2.HeadersFrame:
		s := c.stream(f.StreamID)
		if s.fields != nil {
			c.t.Fatalf("stream %d has headers twice", f.StreamID)
		}
		if s.fields, err = hpack.NewDecoder(0, nil).DecodeFull(f.HeaderBlockFragment()); err != nil {
			c.t.Fatal(err)
		}
		s.ended = f.StreamEnded()
	case *http2.DataFrame:
		s, n := c.stream(f.StreamID), int64(f.Length)
		if s.fields == nil {
			c.t.Fatalf("stream %d has DATA before headers", f.StreamID)
		}
		if s.window -= n; s.window < 0 && n > 0 {
			c.t.Fatalf("stream %d is sent %d bytes more than its window", f.StreamID, -s.window)
		}
		if c.window -= n; c.window < 0 && n > 0 {
			c.t.Fatalf("%d bytes more than the connection's window are sent", -c.window)
		}
		if other := bytes.Trim(f.Data(), "x"); len(other) > 0 {
			c.t.Fatalf("in a body is %q", other)
		}
		s.body += len(f.Data())
		s.ended = f.StreamEnded()
		if c.refill && n > 0 {
			c.more(0, n)
			if !s.ended {
				c.more(f.StreamID, n)
			}
		}
	}
	return true
}

func (c *h2client) stream(id uint32) *h2response {
	c.t.Helper()
	s := c.streams[id]
	if s == nil || s.ended {
		c.t.Fatalf("stream %d is answered, which is not open", id)
	}
	return s
}

// until reads frames until something holds.
func (c *h2client) until(holds func() bool) {
	c.t.Helper()
	for !holds() {
		if !c.read() {
			c.t.Fatalf("the connection ends (%v)", c.goAway)
		}
	}
}

// sync waits until all that was sent has been acted on.
func (c *h2client) sync() {
	c.t.Helper()
	pongs := c.pongs
	c.WritePing(false, [8]byte{1, 2, 3, 4, 5, 6, 7, 8})
	c.until(func() bool { return c.pongs > pongs })
}

// wantAll waits until every stream is answered wholly.
func (c *h2client) wantAll(bodyBytes int) {
	c.t.Helper()
	for id, s := range c.streams {
		c.until(func() bool { return s.ended })
		if s.body != bodyBytes {
			c.t.Errorf("stream %d has %d bytes, want %d", id, s.body, bodyBytes)
		}
	}
}

// wantGoAway waits for the connection's end. What was not read when it is closed makes the kernel reset it, so that the
// reason may be lost.
func (c *h2client) wantGoAway(name string, code http2.ErrCode) {
	c.t.Helper()
	for c.read() {
	}
	if c.goAway == nil || c.goAway.ErrCode != code {
		c.t.Errorf("%s: the connection ends with %v, want %v", name, c.goAway, code)
	}
}
