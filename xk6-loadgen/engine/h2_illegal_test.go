package engine

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// illegalAnswers end a connection: each is sent in answer to a request.
var illegalAnswers = map[string]func(p *h2peer, r *h2stream){
	"HPACK: index 0":                   sendBlock(0x88, 0x80),
	"HPACK: table larger than allowed": sendBlock(0x3f, 0xe2, 0x1f, 0x88),
	"HPACK: table size after a field":  sendBlock(0x88, 0x20),
	"a frame longer than allowed":      sendFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, make([]byte, 16385)),
	"a length of 16 MiB":               sendRaw("\xff\xff\xff\x00\x00\x00\x00\x00\x01"),

	"HEADERS on stream 0":       sendFrameOn(0, http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0x88),
	"HEADERS on an idle stream": sendFrameOn(0x7fffffff, http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0x88),
	"HEADERS on an even stream": sendFrameOn(2, http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0x88),

	"DATA before HEADERS":               sendFrame(http2.FrameData, http2.FlagDataEndStream, []byte("hello")),
	"DATA on stream 0":                  sendFrameOn(0, http2.FrameData, 0, 'x'),
	"DATA padded beyond its end":        after200(sendFrame(http2.FrameData, http2.FlagDataPadded, []byte{5, 0, 0, 0, 0})),
	"DATA without its padding's length": after200(sendFrame(http2.FrameData, http2.FlagDataPadded, nil)),

	"HEADERS padded beyond their end":     sendFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, []byte{9, 0x88}),
	"HEADERS without padding's length":    sendFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, nil),
	"HEADERS cut off within the priority": sendFrame(http2.FrameHeaders, http2.FlagHeadersPriority|http2.FlagHeadersEndHeaders, []byte{0, 0, 0}),
	"HEADERS padded over the priority":    sendFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersPriority|http2.FlagHeadersEndHeaders, []byte{2, 0, 0, 0, 0, 0, 0x88}),

	"RST_STREAM on stream 0":       sendFrameOn(0, http2.FrameRSTStream, 0, 0, 0, 0, 0),
	"RST_STREAM on an idle stream": sendFrameOn(99999, http2.FrameRSTStream, 0, 0, 0, 0, 0),
	"RST_STREAM of 3 bytes":        sendFrame(http2.FrameRSTStream, 0, make([]byte, 3)),

	"SETTINGS on a stream":           sendFrame(http2.FrameSettings, 0, nil),
	"SETTINGS of 5 bytes":            sendFrameOn(0, http2.FrameSettings, 0, 0, 1, 0, 0, 0),
	"SETTINGS ACK with a payload":    sendFrameOn(0, http2.FrameSettings, http2.FlagSettingsAck, 0, 3, 0, 0, 0, 1),
	"SETTINGS that allow a push":     sendSetting(http2.SettingEnablePush, 1),
	"SETTINGS with a window of 2^31": sendSetting(http2.SettingInitialWindowSize, 1<<31),
	"SETTINGS with frames of 16383":  sendSetting(http2.SettingMaxFrameSize, 16383),
	"SETTINGS with frames of 2^24":   sendSetting(http2.SettingMaxFrameSize, 1<<24),

	"PING on a stream": sendFrame(http2.FramePing, 0, make([]byte, 8)),
	"PING of 7 bytes":  sendFrameOn(0, http2.FramePing, 0, make([]byte, 7)...),

	"PRIORITY of 4 bytes":  sendFrame(http2.FramePriority, 0, make([]byte, 4)),
	"PRIORITY on stream 0": sendFrameOn(0, http2.FramePriority, 0, make([]byte, 5)...),

	"GOAWAY of 7 bytes":  sendFrameOn(0, http2.FrameGoAway, 0, make([]byte, 7)...),
	"GOAWAY on a stream": sendFrame(http2.FrameGoAway, 0, make([]byte, 8)),
	"a push":             sendFrame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, []byte{0, 0, 0, 2, 0x82, 0x84, 0x86, 0x41, 1, 'x'}),

	"WINDOW_UPDATE of 3 bytes":         sendFrameOn(0, http2.FrameWindowUpdate, 0, 0, 0, 1),
	"WINDOW_UPDATE of nothing":         sendFrameOn(0, http2.FrameWindowUpdate, 0, 0, 0, 0, 0),
	"WINDOW_UPDATE of nothing, stream": sendFrame(http2.FrameWindowUpdate, 0, make([]byte, 4)),
	"WINDOW_UPDATE on an idle stream":  sendFrameOn(99999, http2.FrameWindowUpdate, 0, 0, 0, 0, 1),
	"WINDOW_UPDATE beyond 2^31-1":      sendFrameOn(0, http2.FrameWindowUpdate, 0, 0x7f, 0xff, 0xff, 0xff),
	"WINDOW_UPDATE beyond, stream":     sendFrame(http2.FrameWindowUpdate, 0, []byte{0x7f, 0xff, 0xff, 0xff}),
	"a stream's window beyond, by SETTINGS": func(p *h2peer, r *h2stream) {
		p.WriteWindowUpdate(r.id, 1000)
		p.WriteSettings(windowSetting(1<<31 - 1))
	},

	"CONTINUATION without HEADERS":   sendFrame(http2.FrameContinuation, http2.FlagContinuationEndHeaders, []byte{0x88}),
	"CONTINUATION of another stream": unended(func(p *h2peer, r *h2stream) { p.WriteContinuation(r.id+2, true, nil) }),

	"DATA within a header block": unended(sendFrame(http2.FrameData, 0, nil)),
	"a header block longer than 64 KiB": func(p *h2peer, r *h2stream) {
		p.headersIn(r, 16384, true, ":status", "200", "x", strings.Repeat("\xff", 70_000))
	},

	"HTTP/1.1 in the middle of it all":    sendRaw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
	"no :status":                          sendFields("content-length", "0"),
	"an empty header block":               sendBlock(),
	"no :status, then a response":         func(p *h2peer, r *h2stream) { p.headers(r, false, "server", "x"); hello(p, r) },
	"a name in upper case":                sendFields(":status", "200", "Server", "x"),
	"switching protocols":                 sendFields(":status", "101"),
	"1xx that ends the stream":            sendFields(":status", "103"),
	"less than content-length":            sendBody("6"),
	"more than content-length":            sendBody("4"),
	"content-length without a body":       sendFields(":status", "200", "content-length", "1"),
	"a second header without END_STREAM":  after200(func(p *h2peer, r *h2stream) { p.headers(r, false, "x", "y") }),
	"a second response on a stream":       after200(func(p *h2peer, r *h2stream) { p.headers(r, true, ":status", "200") }),
	"trailers with a pseudo-header":       after200(func(p *h2peer, r *h2stream) { p.headers(r, true, ":path", "/") }),
	"trailers with a name in upper case":  after200(func(p *h2peer, r *h2stream) { p.headers(r, true, "X-Sum", "1") }),
	"trailers too early for their length": func(p *h2peer, r *h2stream) { p.headers(r, false, okHead...); p.headers(r, true, "x", "y") },
}

func sendRaw(bytes string) func(*h2peer, *h2stream) {
	return func(p *h2peer, _ *h2stream) { p.out.WriteString(bytes) }
}

func sendBlock(block ...byte) func(*h2peer, *h2stream) {
	return func(p *h2peer, r *h2stream) { p.rawBlock(r, true, 0, block...) }
}

func sendFields(fields ...string) func(*h2peer, *h2stream) {
	return func(p *h2peer, r *h2stream) { p.headers(r, true, fields...) }
}

func sendBody(length string) func(*h2peer, *h2stream) {
	return func(p *h2peer, r *h2stream) {
		p.headers(r, false, ":status", "200", "content-length", length)
		p.data(r, "hello", true)
	}
}

func sendFrameOn(id uint32, kind http2.FrameType, flags http2.Flags, payload ...byte) func(*h2peer, *h2stream) {
	return func(p *h2peer, _ *h2stream) { p.WriteRawFrame(kind, flags, id, payload) }
}

func sendFrame(kind http2.FrameType, flags http2.Flags, payload []byte) func(*h2peer, *h2stream) {
	return func(p *h2peer, r *h2stream) { p.WriteRawFrame(kind, flags, r.id, payload) }
}

func sendSetting(id http2.SettingID, value uint32) func(*h2peer, *h2stream) {
	return func(p *h2peer, _ *h2stream) { p.WriteSettings(http2.Setting{ID: id, Val: value}) }
}

func after200(then func(*h2peer, *h2stream)) func(*h2peer, *h2stream) {
	return func(p *h2peer, r *h2stream) {
		p.headers(r, false, ":status", "200")
		then(p, r)
	}
}

func unended(then func(*h2peer, *h2stream)) func(*h2peer, *h2stream) {
	return func(p *h2peer, r *h2stream) {
		p.WriteHeaders(http2.HeadersFrameParam{StreamID: r.id, BlockFragment: []byte{0x88}})
		then(p, r)
	}
}

func TestIllegalAnswersAreProtocolErrors(t *testing.T) {
	for name, answer := range illegalAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, answering(answer))
			o := h2Options(s)
			o.Connections, o.Streams, o.Requests = 3, 1, 3
			r := load(t, o)
			wantErrors(t, r, ErrProtocol, 3)
			if r.ErrorExample == "" {
				t.Error("no example of the error")
			}
		})
	}
}

func TestAMalformedResponseLeavesTheOthersAlone(t *testing.T) {
	for _, name := range []string{"no :status", "a name in upper case", "less than content-length", "more than content-length", "1xx that ends the stream", "trailers with a pseudo-header"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bad atomic.Int64
			s := serveH2(t, answering(func(p *h2peer, r *h2stream) {
				if r.id%8 == 1 {
					bad.Add(1)
					illegalAnswers[name](p, r)
					return
				}
				hello(p, r)
			}))
			o := h2Options(s)
			o.Requests = 100
			r := load(t, o)
			wantErrors(t, r, ErrProtocol, bad.Load())
			if r.Responses[0] != 100-bad.Load() || s.connections.Load() != 2 {
				t.Errorf("responses %v on %d connections, %d malformed", r.Responses, s.connections.Load(), bad.Load())
			}
		})
	}
}

// These come after a response that was whole: what is under way then may end, or go on.
func TestFramesAfterTheEndOfAStream(t *testing.T) {
	for name, after := range map[string]func(*h2peer, *h2stream){
		"HEADERS":          sendBlock(0x88),
		"DATA":             sendFrame(http2.FrameData, http2.FlagDataEndStream, []byte("more")),
		"endless DATA":     sendFrame(http2.FrameData, 0, make([]byte, 16384)),
		"HEADERS that end": sendBlock(0x88, 0x80),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, answering(func(p *h2peer, r *h2stream) {
				hello(p, r)
				if r.id%8 == 1 {
					after(p, r)
				}
			}))
			r := load(t, h2Options(s))
			if r.Responses[0]+r.Errors[ErrProtocol] != 40 || r.Responses[0] < 8 {
				t.Error(r)
			}
		})
	}
}

func TestAServerThatDoesNotSpeakHTTP2(t *testing.T) {
	write := func(bytes string) func(p *h2peer) { return func(p *h2peer) { io.WriteString(p.conn, bytes) } }
	for name, test := range map[string]struct {
		script func(*h2peer)
		hint   string
	}{
		"HTTP/1.1":            {write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), "HTTP/1"},
		"SSH":                 {write("SSH-2.0-OpenSSH_9.2\r\n"), ""},
		"a TLS alert":         {write("\x15\x03\x01\x00\x02\x02\x46"), "https"},
		"nothing but zeros":   {write(strings.Repeat("\x00", 5000)), ""},
		"an ACK first":        {func(p *h2peer) { p.WriteSettingsAck() }, ""},
		"a PING first":        {func(p *h2peer) { p.ping() }, ""},
		"SETTINGS of a byte":  {write("\x00\x00\x01\x04\x00\x00\x00\x00\x00\x00"), ""},
		"a response at first": {func(p *h2peer) { hello(p, p.next()) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, func(p *h2peer) {
				p.greeted = true
				test.script(p)
			})
			o := h2Options(s)
			o.Connections, o.Streams, o.Requests = 3, 1, 3
			r := load(t, o)
			wantErrors(t, r, ErrProtocol, 3)
			if !strings.Contains(r.ErrorExample, test.hint) {
				t.Error(r)
			}
		})
	}
}

func TestConnectionsThatEndTooSoonAreReadErrors(t *testing.T) {
	head := []byte{0x88, 0x5c, 1, '5'}
	for name, script := range map[string]func(*h2peer){
		"at once":         func(p *h2peer) { p.close() },
		"after SETTINGS":  func(p *h2peer) { p.settings(); p.close() },
		"when asked":      func(p *h2peer) { p.settings(); p.next(); p.close() },
		"within a frame":  answering(func(p *h2peer, r *h2stream) { p.out.WriteString("\x00\x00\x20\x01"); p.close() }),
		"within a block":  answering(unended(func(p *h2peer, _ *h2stream) { p.close() })),
		"after the head":  answering(after200(func(p *h2peer, _ *h2stream) { p.close() })),
		"within the body": answering(func(p *h2peer, r *h2stream) { p.rawBlock(r, false, 0, head...); p.data(r, "hel", false); p.close() }),
		"within DATA": answering(func(p *h2peer, r *h2stream) {
			p.rawBlock(r, false, 0, head...)
			p.out.WriteString("\x00\x00\x05\x00\x01\x00\x00\x00\x01hel")
			p.close()
		}),
		"by a reset": answering(func(p *h2peer, r *h2stream) { p.headers(r, false, okHead...); p.reset() }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, script)
			o := h2Options(s)
			o.Connections, o.Streams, o.Requests = 3, 1, 3
			r := load(t, o)
			if r.Errors[ErrRead]+r.Errors[ErrWrite] != 3 {
				t.Error(r)
			}
			cause := CauseShort
			if name == "by a reset" {
				cause = CauseReset
			}
			wantCause(t, r, cause, 3)
		})
	}
}

func TestHalfAFrameIsWaitedFor(t *testing.T) {
	// Bytes that never become a frame are a time-out, whatever they begin.
	for name, bytes := range map[string]string{"head": "\x00\x00", "payload": "\x00\x00\x08\x06\x00\x00\x00\x00\x00\x01\x02", "block": "\x00\x00\x01\x01\x00\x00\x00\x00\x01\x88"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, func(p *h2peer) {
				p.settings()
				p.gather(5)
				p.out.WriteString(bytes)
			})
			o := h2Options(s)
			o.Requests, o.Timeout = 10, 300*ms
			wantErrors(t, load(t, o), ErrTimeout, 10)
		})
	}
}
