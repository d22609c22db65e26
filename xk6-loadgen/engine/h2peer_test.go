package engine

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

type h2stream struct {
	id     uint32
	fields []hpack.HeaderField
	block  int
	body   []byte
	ended  bool
	// window is what the peer may send on it, receive what the client may.
	window, receive int64
}

func (r *h2stream) value(name string) string {
	for _, f := range r.fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// h2peer is a server's end of a connection. It holds what the client sends against RFC 9113, fails the test where the two
// disagree, and answers SETTINGS and PING by itself. What it writes goes out with the next flush or read.
type h2peer struct {
	*http2.Framer
	t       testing.TB
	server  *peerServer
	conn    net.Conn
	pump    *pump
	out     bytes.Buffer
	block   bytes.Buffer
	encoder *hpack.Encoder
	decoder *hpack.Decoder
	pieces  int

	streams map[uint32]*h2stream
	resets  map[uint32]http2.ErrCode
	ready   []*h2stream
	lastID  uint32
	// window is what the peer may send on the connection, receive what the client may; both can fall below zero.
	window, receive int64
	theirInitial    int64
	theirs          map[http2.SettingID]uint32
	ours            [][]http2.Setting
	acked           int
	// greeted: the peer has sent SETTINGS. owed are acknowledgements that wait for them.
	greeted      bool
	owed         int
	pings, pongs int
	// limit is MAX_CONCURRENT_STREAMS, initial INITIAL_WINDOW_SIZE as the client knows them.
	limit, initial int64
	// refill gives the client's window back as its DATA comes.
	refill bool
	// clientTable is the size of the client's dynamic table; mustShrink: its next header block has to make it smaller.
	clientTable uint32
	mustShrink  bool
}

type gone struct{}

func (p *h2peer) play(script func(*h2peer)) {
	defer func() {
		if r := recover(); r != nil && r != (gone{}) {
			panic(r)
		}
	}()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(countingReader{p.conn, &p.server.received}, preface); err != nil {
		return
	}
	if string(preface) != http2.ClientPreface {
		p.t.Errorf("the client's preface is %q", preface)
		return
	}
	script(p)
	for {
		p.read()
	}
}

// settings sends SETTINGS; they hold for the client from its acknowledgement on. Nothing but them may come first.
func (p *h2peer) settings(settings ...http2.Setting) {
	p.WriteSettings(settings...)
	p.ours = append(p.ours, settings)
	p.greeted = true
	for ; p.owed > 0; p.owed-- {
		p.WriteSettingsAck()
	}
}

func answering(answer func(p *h2peer, r *h2stream), settings ...http2.Setting) func(*h2peer) {
	return func(p *h2peer) {
		p.settings(settings...)
		for {
			answer(p, p.next())
		}
	}
}

func hello(p *h2peer, r *h2stream) { p.respond(r, 200, "hello") }

func (p *h2peer) next() *h2stream {
	for len(p.ready) == 0 {
		p.read()
	}
	r := p.ready[0]
	p.ready = p.ready[1:]
	return r
}

func (p *h2peer) flush() {
	b := p.out.Bytes()
	p.out.Reset()
	for len(b) > 0 {
		n := len(b)
		if p.pieces > 0 {
			n = min(n, p.pieces)
		}
		n, err := p.conn.Write(b[:n])
		p.server.sent.Add(int64(n))
		if err != nil {
			panic(gone{})
		}
		b = b[n:]
	}
}

func (p *h2peer) deafen() {
	p.flush()
	p.pump.deaf.Store(true)
}

func (p *h2peer) reset() {
	p.flush()
	c, isTCP := p.conn.(*net.TCPConn)
	if !isTCP {
		c = p.conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn)
	}
	c.SetLinger(0)
	c.Close()
	panic(gone{})
}

// close closes the connection in order: the client gets all that was sent, then the end.
func (p *h2peer) close() {
	p.flush()
	p.conn.(interface{ CloseWrite() error }).CloseWrite()
	io.Copy(io.Discard, p.conn)
	panic(gone{})
}

// encode is a header block of the fields, name and value in turn; size is what it decodes to.
func (p *h2peer) encode(fields ...string) (block []byte, size int64) {
	p.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		size += int64(len(fields[i]) + len(fields[i+1]))
	}
	return bytes.Clone(p.block.Bytes()), size
}

func (p *h2peer) headers(r *h2stream, end bool, fields ...string) {
	block, size := p.encode(fields...)
	p.countHeaders(block, size)
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: r.id, BlockFragment: block, EndStream: end, EndHeaders: true})
	if end {
		p.done(r)
	}
}

func (p *h2peer) countHeaders(block []byte, size int64) {
	p.server.headers.Add(int64(len(block)))
	p.server.decoded.Add(size)
}

// data sends DATA frames within the client's windows, waiting for them where they are too small.
func (p *h2peer) data(r *h2stream, body string, end bool) {
	for {
		room := min(p.window, r.window, 16384)
		if n := min(int64(len(body)), max(0, room)); n > 0 || body == "" {
			rest := body[n:]
			p.WriteData(r.id, end && rest == "", []byte(body[:n]))
			p.window -= n
			r.window -= n
			p.server.body.Add(n)
			if body = rest; body == "" {
				break
			}
			if p.out.Len() > 1<<18 {
				p.flush()
			}
			continue
		}
		if _, open := p.streams[r.id]; !open {
			return
		}
		p.read()
	}
	if end {
		p.done(r)
	}
}

func (p *h2peer) respond(r *h2stream, status int, body string, fields ...string) {
	all := append([]string{":status", strconv.Itoa(status), "content-length", strconv.Itoa(len(body))}, fields...)
	p.headers(r, body == "", all...)
	if body != "" {
		p.data(r, body, true)
	}
}

func (p *h2peer) done(r *h2stream) {
	p.server.answered.Add(1)
	if r.ended {
		delete(p.streams, r.id)
	}
}

func (p *h2peer) wrong(format string, arguments ...any) {
	p.t.Errorf("the client sent "+format, arguments...)
	panic(gone{})
}

func (p *h2peer) read() {
	p.flush()
	frame, err := p.ReadFrame()
	if err != nil {
		if isFault(err) {
			p.wrong("what is no HTTP/2: %v (%v)", err, p.ErrorDetail())
		}
		if timeout, isNet := err.(net.Error); isNet && timeout.Timeout() {
			p.t.Errorf("a connection was open for %s", 2*patient)
		}
		panic(gone{})
	}
	if _, isSettings := frame.(*http2.SettingsFrame); !isSettings && p.theirs == nil {
		p.wrong("%v before its SETTINGS", frame)
	}
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		p.readSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			p.WritePing(true, f.Data)
		} else if want := pingData(p.pongs); p.pongs == p.pings || f.Data != want {
			p.wrong("a PING's answer %v, of %d sent and %d answered", f.Data, p.pings, p.pongs)
		} else {
			p.pongs++
		}
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			p.window += int64(f.Increment)
		} else if r := p.streams[f.StreamID]; r != nil {
			r.window += int64(f.Increment)
		}
		if p.window > 1<<31-1 {
			p.wrong("a connection window of %d", p.window)
		}
	case *http2.HeadersFrame:
		p.readHeaders(f)
	case *http2.DataFrame:
		p.readData(f)
	case *http2.RSTStreamFrame:
		if f.StreamID > p.lastID {
			p.wrong("RST_STREAM on idle stream %d", f.StreamID)
		}
		p.resets[f.StreamID] = f.ErrCode
		p.server.dropped.Add(1)
		delete(p.streams, f.StreamID)
		p.ready = slices.DeleteFunc(p.ready, func(r *h2stream) bool { return r.id == f.StreamID })
	case *http2.GoAwayFrame:
		if f.ErrCode == http2.ErrCodeNo {
			p.server.orderlyGoAways.Add(1)
		} else {
			p.server.faultGoAways.Add(1)
		}
	case *http2.PriorityFrame:
	default:
		p.wrong("%v", frame)
	}
}

func (p *h2peer) ping() {
	p.WritePing(false, pingData(p.pings))
	p.pings++
}

func pingData(n int) (data [8]byte) {
	copy(data[:], strconv.Itoa(n)+"\xff\x00ping")
	return data
}
