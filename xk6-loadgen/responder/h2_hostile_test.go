package responder

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

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
