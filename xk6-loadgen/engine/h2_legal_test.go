package engine

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// h2Options are 40 requests on 2 connections of 5 streams.
func h2Options(s *peerServer) Options {
	o := options(s.url)
	o.Protocol, o.Connections, o.Streams, o.Requests = H2C, 2, 5, 40
	if strings.HasPrefix(s.url, "https") {
		o.Protocol, o.TLS.InsecureSkipVerify = H2, true
	}
	return o
}

// headersIn sends a header block in frames of at most size bytes: HEADERS and CONTINUATION.
func (p *h2peer) headersIn(r *h2stream, size int, end bool, fields ...string) {
	block, decoded := p.encode(fields...)
	p.countHeaders(block, decoded)
	n := min(size, len(block))
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: r.id, BlockFragment: block[:n], EndStream: end, EndHeaders: n == len(block)})
	for block = block[n:]; len(block) > 0; block = block[n:] {
		n = min(size, len(block))
		p.WriteContinuation(r.id, n == len(block), block[:n])
	}
	if end {
		p.done(r)
	}
}

// rawBlock sends a header block as it is; size is what it decodes to.
func (p *h2peer) rawBlock(r *h2stream, end bool, size int64, block ...byte) {
	p.countHeaders(block, size)
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: r.id, BlockFragment: block, EndStream: end, EndHeaders: true})
	if end {
		p.done(r)
	}
}

// okHead are the fields of a response with five bytes.
var okHead = []string{":status", "200", "content-length", "5"}

func TestLegalOddities(t *testing.T) {
	for name, answer := range map[string]func(p *h2peer, r *h2stream){
		"plain": hello,
		"padded": func(p *h2peer, r *h2stream) {
			block, size := p.encode(okHead...)
			p.countHeaders(block, size)
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: r.id, BlockFragment: block, EndHeaders: true, PadLength: 255, Priority: http2.PriorityParam{StreamDep: 1 << 30, Exclusive: true, Weight: 200}})
			for i, part := range []string{"he", "", "llo"} {
				p.WriteDataPadded(r.id, i == 2, []byte(part), make([]byte, 100*i))
			}
			p.server.body.Add(5)
			p.done(r)
		},
		"all padding, in pieces": func(p *h2peer, r *h2stream) {
			p.pieces = 7
			p.headers(r, false, ":status", "200")
			p.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, r.id, make([]byte, 1))
			p.WriteRawFrame(http2.FrameData, http2.FlagDataPadded|http2.FlagDataEndStream, r.id, append([]byte{200}, make([]byte, 200)...))
			p.done(r)
		},
		"CONTINUATION of a byte each": func(p *h2peer, r *h2stream) {
			p.headersIn(r, 1, false, append(okHead, "server", "h2", "x", "y")...)
			p.data(r, "hello", true)
		},
		"empty HEADERS, empty CONTINUATION": func(p *h2peer, r *h2stream) {
			block, size := p.encode(okHead...)
			p.countHeaders(block, size)
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: r.id})
			p.WriteContinuation(r.id, false, nil)
			p.WriteContinuation(r.id, false, block)
			p.WriteContinuation(r.id, true, nil)
			p.data(r, "hello", true)
		},
		"END_STREAM on HEADERS that go on": func(p *h2peer, r *h2stream) {
			p.headersIn(r, 2, true, ":status", "200", "content-length", "0")
		},
		"large headers": func(p *h2peer, r *h2stream) {
			p.headersIn(r, 16384, false, append(okHead, "large", strings.Repeat("\xff", 15_000), "x", "y")...)
			p.data(r, "hello", true)
		},
		"empty DATA": func(p *h2peer, r *h2stream) {
			p.headers(r, false, okHead...)
			for _, part := range []string{"", "hel", "", "", "lo", ""} {
				p.data(r, part, false)
			}
			p.data(r, "", true)
		},
		"trailers": func(p *h2peer, r *h2stream) {
			p.headers(r, false, okHead...)
			p.data(r, "hello", false)
			p.headersIn(r, 3, true, "grpc-status", "0", "grpc-message", "fine")
		},
		"trailers without DATA": func(p *h2peer, r *h2stream) {
			p.headers(r, false, ":status", "200", "content-length", "0")
			p.headers(r, true, "x-sum", "0")
		},
		"1xx first": func(p *h2peer, r *h2stream) {
			p.headers(r, false, ":status", "100")
			p.headersIn(r, 2, false, ":status", "103", "link", "</a.css>", "content-length", "77")
			p.headers(r, false, ":status", "103")
			hello(p, r)
		},
		"unknown frames and flags": func(p *h2peer, r *h2stream) {
			p.WriteRawFrame(0x42, 0xff, 0, make([]byte, 16384))
			p.WriteRawFrame(0xa, 0, r.id, []byte("\x00\x00h2=\":1\""))
			p.WriteRawFrame(0xff, 0, 1<<31-1, nil)
			block, size := p.encode(okHead...)
			p.countHeaders(block, size)
			p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|0xc2, r.id, block)
			p.data(r, "hello", true)
		},
		"the reserved bit set": func(p *h2peer, r *h2stream) {
			block, size := p.encode(okHead...)
			p.countHeaders(block, size)
			p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, r.id|1<<31, block)
			p.WriteRawFrame(http2.FrameData, http2.FlagDataEndStream, r.id|1<<31, []byte("hello"))
			p.server.body.Add(5)
			p.done(r)
		},
		"SETTINGS and PING between": func(p *h2peer, r *h2stream) {
			p.settings()
			p.headers(r, false, okHead...)
			p.settings(http2.Setting{ID: 0xffff, Val: 1<<32 - 1}, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 100}, http2.Setting{ID: http2.SettingEnablePush, Val: 0})
			p.ping()
			p.data(r, "hel", false)
			p.ping()
			p.settings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1<<24 - 1})
			p.data(r, "lo", true)
		},
		"PRIORITY and WINDOW_UPDATE between": func(p *h2peer, r *h2stream) {
			p.WritePriority(r.id, http2.PriorityParam{StreamDep: 0, Weight: 1})
			p.WriteWindowUpdate(0, 1)
			p.headers(r, false, okHead...)
			p.WriteWindowUpdate(r.id, 1000)
			p.data(r, "hello", true)
			p.WriteWindowUpdate(r.id, 1000)
			p.WritePriority(r.id+1000, http2.PriorityParam{StreamDep: r.id})
		},
		"RST_STREAM after the end": func(p *h2peer, r *h2stream) {
			hello(p, r)
			p.WriteRSTStream(r.id, http2.ErrCodeNo)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, answering(answer))
			r := load(t, h2Options(s))
			if r.Responses[0] != 40 || s.requests.Load() != 40 || s.connections.Load() != 2 {
				t.Error(s, r)
			}
			// The peer counts what it sent once the call has returned.
			waitFor(t, func() bool { return s.sent.Load() >= r.ReceivedBytes })
			if r.HeaderBytes != s.headers.Load() || r.HeadersDecodedBytes != s.decoded.Load() || r.BodyTotal() != s.body.Load() {
				t.Errorf("headers %d of %d, decoded %d of %d, body %d of %d", r.HeaderBytes, s.headers.Load(),
					r.HeadersDecodedBytes, s.decoded.Load(), r.BodyTotal(), s.body.Load())
			}
			if n := s.faultGoAways.Load(); n > 0 {
				t.Errorf("the client said GOAWAY %d times", n)
			}
		})
	}
}
