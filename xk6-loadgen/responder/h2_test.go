package responder

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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

func TestTheResponseInHTTP2(t *testing.T) {
	for _, bodyBytes := range []int{0, 5, 20_000} {
		c := connectH2(t, start(t, Options{Protocol: H2C, BodyBytes: int64(bodyBytes)}))
		c.request(1, "GET")
		c.wantAll(bodyBytes)
		want := []hpack.HeaderField{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "text/html"}, {Name: "content-length", Value: strconv.Itoa(bodyBytes)}}
		if !slices.Equal(c.streams[1].fields, want) {
			t.Errorf("headers %v, want %v", c.streams[1].fields, want)
		}
	}
}

func TestHEADInHTTP2(t *testing.T) {
	r := start(t, Options{Protocol: H2C, BodyBytes: 612})
	for name, p := range map[string]http2.HeadersFrameParam{
		"plain":       {},
		"padded":      {PadLength: 200},
		"prioritised": {Priority: http2.PriorityParam{StreamDep: 7, Weight: 3}},
		"both":        {PadLength: 1, Priority: http2.PriorityParam{Weight: 3}},
	} {
		// The second one is known from the first.
		for range 2 {
			c := connectH2(t, r)
			c.opened(1)
			p.StreamID, p.BlockFragment, p.EndHeaders, p.EndStream = 1, block("HEAD"), true, true
			c.WriteHeaders(p)
			c.wantAll(0)
			if got := c.streams[1].fields[2].Value; got != "612" {
				t.Errorf("%s: content-length %s", name, got)
			}
			p.BlockFragment = block("GET")
			get := connectH2(t, r)
			get.opened(1)
			get.WriteHeaders(p)
			get.wantAll(612)
		}
	}
}

func TestRequestsOfManyFrames(t *testing.T) {
	c := connectH2(t, start(t, Options{Protocol: H2C, BodyBytes: 10}))
	b := block("POST")
	c.opened(1)
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:3], PadLength: 9})
	c.WriteContinuation(1, false, b[3:5])
	c.WriteContinuation(1, true, b[5:])
	c.WritePriority(3, http2.PriorityParam{StreamDep: 1, Weight: 9})
	c.WriteRawFrame(0x77, 0xff, 1, []byte("an extension"))
	c.WriteDataPadded(1, false, []byte("hello"), make([]byte, 255))
	c.WriteData(1, false, nil)
	c.sync()
	if c.streams[1].fields != nil {
		t.Error("a request is answered before its end")
	}
	c.WriteData(1, false, make([]byte, maxFrameBytes))
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x00, 1, 'a', 1, 'b'}, EndHeaders: true, EndStream: true})
	c.wantAll(10)
	// Ends in its headers, which end in another frame.
	c.opened(3)
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: b, EndStream: true})
	c.WriteContinuation(3, true, nil)
	c.wantAll(10)
	c.opened(5)
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: b, EndHeaders: true})
	c.WriteData(5, true, nil)
	c.wantAll(10)
}

func TestFramesInPieces(t *testing.T) {
	r := start(t, Options{Protocol: H2C, BodyBytes: 10})
	var all bytes.Buffer
	all.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&all, nil)
	f.WriteSettings(http2.Setting{ID: http2.SettingEnablePush})
	const n = 50
	for id := uint32(1); id < 2*n; id += 2 {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block("POST"), EndHeaders: true})
		f.WriteDataPadded(id, id%3 == 0, make([]byte, int(id)*3), make([]byte, id))
		f.WritePing(false, [8]byte{1, 2, 3, 4, 5, 6, 7, 8})
		if id%3 != 0 {
			f.WriteData(id, true, nil)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for _, most := range []int{1, 10, 100, 1000} {
		conn := dial(t, r)
		conn.SetNoDelay(true)
		c := &h2client{Framer: http2.NewFramer(io.Discard, conn), t: t, conn: conn, window: 1 << 20, initial: 1 << 20, streams: map[uint32]*h2response{}}
		for id := uint32(1); id < 2*n; id += 2 {
			c.opened(id)
		}
		go func() {
			for left := all.Bytes(); len(left) > 0; {
				n := min(len(left), 1+random.IntN(most))
				conn.Write(left[:n])
				left = left[n:]
			}
		}()
		c.wantAll(10)
		c.until(func() bool { return c.pongs == n })
	}
}

// Windows of all sizes, given in all ways: never a byte more is sent, and never one less.
func TestWindowsAreHonoured(t *testing.T) {
	for _, bodyBytes := range []int{100, maxFrameBytes, 100_000, 1_000_000} {
		r := start(t, Options{Protocol: H2C, BodyBytes: int64(bodyBytes)})
		random := rand.New(rand.NewPCG(5, uint64(bodyBytes)))
		for range 10 {
			c := connectH2(t, r, http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(random.IntN(bodyBytes))})
			const n = 8
			for id := uint32(1); id < 2*n; id += 2 {
				c.request(id, "GET")
			}
			ended := func() bool {
				for _, s := range c.streams {
					if !s.ended {
						return false
					}
				}
				return true
			}
			for !ended() {
				c.sync()
				id := uint32(1 + 2*random.IntN(n))
				switch s := c.streams[id]; random.IntN(4) {
				case 0:
					c.setInitial(int64(random.IntN(bodyBytes)))
				case 1:
					c.more(0, int64(1+random.IntN(2*bodyBytes)))
				case 2:
					if !s.ended && s.window < int64(2*bodyBytes) {
						c.more(id, int64(1+random.IntN(2*bodyBytes)))
					}
				default:
					if c.window < int64(bodyBytes) {
						c.more(0, int64(bodyBytes))
					}
				}
			}
			c.wantAll(bodyBytes)
		}
	}
}

func TestStreamsWaitForTheirWindow(t *testing.T) {
	c := connectH2(t, start(t, Options{Protocol: H2C, BodyBytes: 50_000}), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for id := uint32(1); id <= 7; id += 2 {
		c.request(id, "GET")
	}
	c.sync()
	// The third one has room, the others have not.
	c.more(5, 50_000)
	c.until(func() bool { return c.streams[5].ended })
	c.WriteRSTStream(3, http2.ErrCodeCancel)
	delete(c.streams, 3)
	c.more(7, 20_000)
	// What the connection's window has left.
	c.until(func() bool { return c.streams[7].body == initialWindow-50_000 })
	c.more(0, 1<<20)
	c.more(1, 50_000)
	c.more(7, 30_000)
	c.wantAll(50_000)
	c.request(9, "GET")
	c.more(9, 50_000)
	c.wantAll(50_000)
}

func TestAWindowIsNotRaisedBeyondItsLimit(t *testing.T) {
	r := start(t, Options{Protocol: H2C, BodyBytes: 1_000_000})
	for name, raise := range map[string]func(c *h2client){
		"of the connection": func(c *h2client) { c.WriteWindowUpdate(0, maxWindow) },
		"of a stream": func(c *h2client) {
			c.WriteWindowUpdate(1, maxWindow)
			c.WriteWindowUpdate(1, maxWindow)
		},
		"of all streams": func(c *h2client) {
			c.WriteWindowUpdate(1, 1<<30)
			c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
		},
	} {
		c := connectH2(t, r, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		c.request(1, "GET")
		c.sync()
		c.streams[1].window = 2 * maxWindow
		raise(c)
		c.wantGoAway(name, http2.ErrCodeFlowControl)
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

func TestFramesThatAreNotAllowed(t *testing.T) {
	r := start(t, Options{Protocol: H2C, BodyBytes: 50_000})
	for name, one := range map[string]struct {
		code http2.ErrCode
		send func(c *h2client)
	}{
		"a frame that is too long":         {http2.ErrCodeFrameSize, func(c *h2client) { c.conn.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1}) }},
		"a PING on a stream":               {http2.ErrCodeProtocol, func(c *h2client) { c.WriteRawFrame(http2.FramePing, 0, 1, make([]byte, 8)) }},
		"a PING of 7 bytes":                {http2.ErrCodeFrameSize, func(c *h2client) { c.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 7)) }},
		"SETTINGS on a stream":             {http2.ErrCodeProtocol, func(c *h2client) { c.WriteRawFrame(http2.FrameSettings, 0, 1, nil) }},
		"SETTINGS of 5 bytes":              {http2.ErrCodeFrameSize, func(c *h2client) { c.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5)) }},
		"an acknowledgement with settings": {http2.ErrCodeFrameSize, func(c *h2client) { c.WriteRawFrame(http2.FrameSettings, http2.FlagSettingsAck, 0, make([]byte, 6)) }},
		"a window that is too large":       {http2.ErrCodeFlowControl, func(c *h2client) { c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}) }},
		"a frame size that is too small":   {http2.ErrCodeProtocol, func(c *h2client) { c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 10}) }},
		"HEADERS on stream 0":              {http2.ErrCodeProtocol, func(c *h2client) { c.WriteRawFrame(http2.FrameHeaders, 5, 0, block("GET")) }},
		"HEADERS on an even stream":        {http2.ErrCodeProtocol, func(c *h2client) { c.request(2, "GET") }},
		"HEADERS twice": {http2.ErrCodeProtocol, func(c *h2client) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block("GET"), EndHeaders: true})
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block("GET"), EndHeaders: true})
		}},
		"DATA on an idle stream":          {http2.ErrCodeProtocol, func(c *h2client) { c.WriteData(99, true, nil) }},
		"DATA on stream 0":                {http2.ErrCodeProtocol, func(c *h2client) { c.WriteData(0, true, nil) }},
		"DATA after the request's end":    {http2.ErrCodeStreamClosed, func(c *h2client) { c.WriteData(1, true, nil) }},
		"RST_STREAM on an idle stream":    {http2.ErrCodeProtocol, func(c *h2client) { c.WriteRSTStream(99, 0) }},
		"RST_STREAM of 3 bytes":           {http2.ErrCodeFrameSize, func(c *h2client) { c.WriteRawFrame(http2.FrameRSTStream, 0, 1, make([]byte, 3)) }},
		"WINDOW_UPDATE on an idle stream": {http2.ErrCodeProtocol, func(c *h2client) { c.WriteWindowUpdate(99, 1) }},
		"WINDOW_UPDATE of nothing":        {http2.ErrCodeProtocol, func(c *h2client) { c.WriteWindowUpdate(0, 0) }},
		"WINDOW_UPDATE of 5 bytes":        {http2.ErrCodeFrameSize, func(c *h2client) { c.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 5)) }},
		"PUSH_PROMISE":                    {http2.ErrCodeProtocol, func(c *h2client) { c.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2}) }},
		"CONTINUATION of nothing":         {http2.ErrCodeProtocol, func(c *h2client) { c.WriteContinuation(1, true, nil) }},
		"another frame in a header block": {http2.ErrCodeProtocol, func(c *h2client) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block("GET")})
			c.WritePing(false, [8]byte{})
		}},
		"another stream's CONTINUATION": {http2.ErrCodeProtocol, func(c *h2client) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block("GET")})
			c.WriteContinuation(1, true, nil)
		}},
		"CONTINUATION without end": {http2.ErrCodeEnhanceYourCalm, func(c *h2client) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block("GET")})
			for range maxBlockFrames {
				c.WriteContinuation(3, false, nil)
			}
		}},
	} {
		c := connectH2(t, r, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		c.request(1, "GET")
		c.sync()
		one.send(c)
		c.wantGoAway(name, one.code)
	}
	for name, text := range map[string]string{
		"HTTP/1":                        get,
		"a preface that is not one":     http2.ClientPreface[:20] + "nonsense",
		"a TLS handshake":               "\x16\x03\x01",
		"no SETTINGS after the preface": http2.ClientPreface + "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678",
		"their acknowledgement instead": http2.ClientPreface + "\x00\x00\x00\x04\x01\x00\x00\x00\x00",
	} {
		c := dial(t, r)
		io.WriteString(c, text)
		all := mustEnd(t, c)
		if isHTTP2 := strings.HasPrefix(text, http2.ClientPreface); !isHTTP2 && all != "" || isHTTP2 && !strings.HasSuffix(all, "\x00\x00\x00\x01") {
			t.Errorf("%s is answered with %q", name, all)
		}
	}
	eventually(t, func() bool { return r.connections() == 0 }, "connections stay open")
}

func TestMoreStreamsThanMayBeOpenAreRefused(t *testing.T) {
	c := connectH2(t, start(t, Options{Protocol: H2C, BodyBytes: 10}), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	var all bytes.Buffer
	f := http2.NewFramer(&all, nil)
	for id := uint32(1); id <= 2*maxStreams+5; id += 2 {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block("GET"), EndHeaders: true, EndStream: true})
	}
	f.WritePing(false, [8]byte{1, 2, 3, 4, 5, 6, 7, 8})
	go c.conn.Write(all.Bytes())
	for id := uint32(1); id < 2*maxStreams; id += 2 {
		c.opened(id)
	}
	c.until(func() bool { return c.pongs == 1 })
	if len(c.resets) != 3 || c.resets[2*maxStreams+1] != http2.ErrCodeRefusedStream {
		t.Errorf("streams that are refused: %v", c.resets)
	}
	// What still comes on them is of no account.
	c.WriteWindowUpdate(2*maxStreams+1, 1)
	c.WriteData(2*maxStreams+1, true, []byte("x"))
	c.setInitial(100)
	c.wantAll(10)
}

// What a socket does not take at once follows when it can, byte by byte as it was.
func TestManyAnswersForASlowReader(t *testing.T) {
	for _, bodyBytes := range []int{0, 612, maxFrameBytes, 25_000, 100_000} {
		c := connectH2(t, start(t, Options{Protocol: H2C, BodyBytes: int64(bodyBytes)}), http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
		c.more(0, maxWindow-initialWindow)
		var all bytes.Buffer
		f := http2.NewFramer(&all, nil)
		const n = 900
		for id := uint32(1); id < 2*n; id += 2 {
			c.opened(id)
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block("GET"), EndHeaders: true, EndStream: true})
			f.WritePing(false, [8]byte{1, 2, 3, 4, 5, 6, 7, 8})
		}
		c.conn.SetReadBuffer(20_000)
		go c.conn.Write(all.Bytes())
		c.wantAll(bodyBytes)
		c.until(func() bool { return c.pongs == n })
	}
}

// What a client that was answered has not taken is nobody else's.
func TestWhatIsLeftOfAConnectionGoesNowhere(t *testing.T) {
	r := start(t, Options{Protocol: H2C, BodyBytes: 612})
	var all bytes.Buffer
	all.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&all, nil)
	f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
	f.WriteWindowUpdate(0, maxWindow-initialWindow)
	for id := uint32(1); id < 3000; id += 2 {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block("GET"), EndHeaders: true, EndStream: true})
	}
	for range 100 {
		leaving := dial(t, r)
		leaving.Write(all.Bytes())
		leaving.SetLinger(0)
		leaving.Close()
		c := connectH2(t, r)
		c.request(1, "GET")
		c.wantAll(612)
		c.conn.Close()
	}
}

// Floods of what has to be answered, by a client that does not read, cost a bounded amount of memory.
func TestHTTP2ClientsThatNeverRead(t *testing.T) {
	for name, bodyBytes := range map[string]int64{"small": 612, "large": 1 << 30} {
		r := start(t, Options{Protocol: H2C, BodyBytes: bodyBytes})
		before := heapBytes()
		const clients = 20
		var floods sync.WaitGroup
		for range clients {
			c := connectH2(t, r, http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
			c.WriteWindowUpdate(0, maxWindow-initialWindow)
			floods.Go(func() {
				var all bytes.Buffer
				f := http2.NewFramer(&all, nil)
				for id := uint32(1); ; all.Reset() {
					for range 1000 {
						// The shortest requests make the most answers.
						f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x82}, EndHeaders: true, EndStream: true})
						f.WriteHeaders(http2.HeadersFrameParam{StreamID: id + 2, BlockFragment: []byte{0x82}, EndHeaders: true, EndStream: true})
						if id%100 == 1 {
							f.WritePing(false, [8]byte{})
							f.WriteSettings()
						}
						id += 4
					}
					c.conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
					if _, err := c.conn.Write(all.Bytes()); err != nil {
						if e, ok := err.(net.Error); !ok || !e.Timeout() {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		floods.Wait()
		if more := heapBytes() - before; more > clients*(2*maxOutBytes+readBufferBytes) {
			t.Errorf("%s: %d clients cost %d bytes", name, clients, more)
		}
		r.Close()
	}
}

// A client that goes away while it is answered leaves nothing behind.
func TestClientsThatLeave(t *testing.T) {
	for _, o := range []Options{{Protocol: HTTP11}, {Protocol: H2C}, {Protocol: H2, Certificate: certificateFile(t)}, {Protocol: HTTP11, Certificate: certificateFile(t)}} {
		o.BodyBytes, o.Threads = 1<<30, 2
		r := start(t, o)
		for i := range 30 {
			c := dial(t, r)
			switch {
			case o.Certificate != "" && i%2 == 0:
				// A handshake that is not finished.
				c.Write([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"))
			case o.Protocol == H2C:
				io.WriteString(c, http2.ClientPreface)
				f := http2.NewFramer(c, nil)
				f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
				f.WriteWindowUpdate(0, maxWindow-initialWindow)
				f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block("GET"), EndHeaders: true, EndStream: true})
			default:
				io.WriteString(c, get)
			}
			if o.Certificate == "" {
				mustReadSome(t, c)
			}
			if i%3 == 0 {
				c.SetLinger(0)
			}
			c.Close()
		}
		eventually(t, func() bool { return r.connections() == 0 }, "connections stay open")
	}
}

func mustReadSome(t testing.TB, c io.Reader) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1000)); n == 0 || errors.Is(err, io.EOF) {
		t.Fatalf("nothing comes: %v", err)
	}
}

// The windows that the client of HTTP/2 has for its request bodies are large from the start, and given back.
func TestTheGreeting(t *testing.T) {
	c := connectH2(t, start(t, Options{Protocol: H2C, BodyBytes: 10}))
	f, err := c.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings := f.(*http2.SettingsFrame)
	streams, _ := settings.Value(http2.SettingMaxConcurrentStreams)
	window, _ := settings.Value(http2.SettingInitialWindowSize)
	if streams != maxStreams || window != maxWindow {
		t.Errorf("%d streams with windows of %d bytes", streams, window)
	}
	if f, err = c.ReadFrame(); err != nil {
		t.Fatal(err)
	}
	if more := f.(*http2.WindowUpdateFrame); more.StreamID != 0 || more.Increment != maxWindow-initialWindow {
		t.Errorf("the connection's window is raised by %d", more.Increment)
	}
	if f, err = c.ReadFrame(); err != nil || !f.(*http2.SettingsFrame).IsAck() {
		t.Errorf("%v (%v) is no acknowledgement of SETTINGS", f, err)
	}
}
