package engine

import (
	"bytes"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// flood repeats what unit makes until the client closes, reads nothing more, and measures the heap now and then.
func (p *h2peer) flood(to io.Writer, most *atomic.Int64, unit func() []byte) {
	p.deafen()
	for sent, measured := 0, 0; ; {
		n, err := to.Write(unit())
		if err != nil {
			panic(gone{})
		}
		if sent += n; sent-measured > 4<<20 {
			measured = sent
			most.Store(max(most.Load(), heapInUse()))
		}
	}
}

func repeated(write func(*http2.Framer)) func() []byte {
	var unit bytes.Buffer
	for unit.Len() < 64<<10 {
		write(http2.NewFramer(&unit, nil))
	}
	return unit.Bytes
}

// wantBoundedFlood makes one request of a server that floods it, and checks that it ends soon, in one of these errors and in little
// memory, of which the server notes the most.
func wantBoundedFlood(t *testing.T, serve func(most *atomic.Int64) *peerServer, kinds ...ErrorKind) {
	t.Helper()
	var most atomic.Int64
	before := heapInUse()
	o := h2Options(serve(&most))
	o.Connections, o.Streams, o.Requests, o.Timeout = 1, 1, 1, 400*ms
	r := load(t, o)
	counted := int64(0)
	for _, kind := range kinds {
		counted += r.Errors[kind]
	}
	if counted != 1 || r.Seconds > 5 {
		t.Error(r)
	}
	if grown := most.Load() - before; grown > 16<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func TestFloodsEndInBoundedTimeAndMemory(t *testing.T) {
	frame := func(kind http2.FrameType, flags http2.Flags, id uint32, payload ...byte) func(*http2.Framer) {
		return func(f *http2.Framer) { f.WriteRawFrame(kind, flags, id, payload) }
	}
	openBlock := []byte{0x88, 0x00, 1, 'x', 0}
	for name, test := range map[string]struct {
		// begin is sent once before the flood; kinds are the errors that it may end in.
		begin func(p *h2peer, r *h2stream)
		frame func(*http2.Framer)
		kinds []ErrorKind
	}{
		"CONTINUATION of nothing": {sendFrame(http2.FrameHeaders, 0, openBlock), frame(http2.FrameContinuation, 0, 1), []ErrorKind{ErrProtocol}},
		"CONTINUATION of 16 KiB":  {sendFrame(http2.FrameHeaders, 0, openBlock), frame(http2.FrameContinuation, 0, 1, make([]byte, 16384)...), []ErrorKind{ErrProtocol}},
		"1xx":                     {nil, frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, 0x08, 3, '1', '0', '3'), []ErrorKind{ErrProtocol}},
		"PING":                    {nil, frame(http2.FramePing, 0, 0, make([]byte, 8)...), []ErrorKind{ErrProtocol, ErrTimeout}},
		"DATA":                    {sendBlock200, frame(http2.FrameData, 0, 1, make([]byte, 16384)...), []ErrorKind{ErrProtocol, ErrTimeout}},
		"GOAWAY":                  {nil, frame(http2.FrameGoAway, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0), []ErrorKind{ErrProtocol, ErrTimeout}},
		"a wide table": {nil, func(f *http2.Framer) {
			// Each inserts an entry of 4 kB, and names it again and again: 16 MB decoded.
			block := append([]byte{0x88, 0x40, 1, 'x', 0x7f, 0xa1, 0x1e}, make([]byte, 4000)...)
			block = append(block, bytes.Repeat([]byte{0xbe}, 4000)...)
			f.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, block)
		}, []ErrorKind{ErrProtocol}},
	} {
		t.Run(name, func(t *testing.T) {
			wantBoundedFlood(t, func(most *atomic.Int64) *peerServer {
				return serveH2(t, func(p *h2peer) {
					p.settings()
					r := p.next()
					if test.begin != nil {
						test.begin(p, r)
					}
					p.flood(p.conn, most, repeated(test.frame))
				})
			}, test.kinds...)
		})
	}
}

func sendBlock200(p *h2peer, r *h2stream) { p.headers(r, false, ":status", "200") }

func TestAFloodDoesNotKeepOthersWaiting(t *testing.T) {
	t.Parallel()
	// One of two connections on a thread is flooded with what is legal; the other one has to go on.
	var answered, most atomic.Int64
	var flooded atomic.Bool
	s := serveH2(t, func(p *h2peer) {
		p.settings()
		first := p.next()
		if flooded.CompareAndSwap(false, true) {
			waitFor(t, func() bool { return p.server.connections.Load() >= 2 })
			p.flood(p.conn, &most, repeated(func(f *http2.Framer) { f.WriteRawFrame(0x77, 0, 1, make([]byte, 16384)) }))
		}
		for r := first; ; r = p.next() {
			hello(p, r)
			answered.Add(1)
		}
	})
	o := h2Options(s)
	o.Streams, o.Requests = 1, 0
	r := loadUntil(t, o, func() bool { return flooded.Load() && answered.Load() >= 100 })
	if r.Responses[0] < 20 || r.ErrorTotal() != 0 || r.InFlight < 1 || r.InFlight > 2 {
		t.Error(r)
	}
}
