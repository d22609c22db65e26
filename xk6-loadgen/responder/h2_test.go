package responder

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

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
