package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

func streamsSetting(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: n}
}

func windowSetting(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingInitialWindowSize, Val: n}
}

func tableSetting(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingHeaderTableSize, Val: n}
}

func TestTheServersStreamLimitIsRespected(t *testing.T) {
	for _, limit := range []uint32{1, 3, 7} {
		s := serveH2(t, answering(hello, streamsSetting(limit)))
		o := h2Options(s)
		o.Streams, o.Requests = 20, 400
		r := load(t, o)
		if r.Responses[0] != 400 || r.MaxConcurrentStreams != int64(limit) {
			t.Errorf("limit %d: %s", limit, r)
		}
	}
}

func TestAHundredStreamsAreOpenedBeforeTheServersSettings(t *testing.T) {
	t.Parallel()
	s := serveH2(t, func(p *h2peer) {
		for len(p.ready) < 100 {
			p.read()
		}
		p.settings()
		for len(p.ready) < 500 {
			p.read()
		}
		for range 500 {
			hello(p, p.next())
		}
	})
	o := h2Options(s)
	o.Connections, o.Streams, o.Requests = 1, 500, 500
	r := load(t, o)
	if r.Responses[0] != 500 || s.mostOpen.Load() != 500 || r.MaxConcurrentStreams != 0 {
		t.Error(s, r)
	}
}

func TestTheStreamLimitChangesUnderLoad(t *testing.T) {
	t.Parallel()
	s := serveH2(t, func(p *h2peer) {
		for _, limit := range []uint32{0, 2, 8, 1, 5} {
			p.settings(streamsSetting(limit))
			for acked := p.acked; acked == p.acked; {
				p.read()
			}
			for len(p.streams) > 0 {
				hello(p, p.next())
			}
			for range 3 * limit {
				hello(p, p.next())
			}
		}
		for {
			hello(p, p.next())
		}
	})
	o := h2Options(s)
	o.Streams, o.Requests = 10, 300
	r := load(t, o)
	if r.Responses[0] != 300 || s.connections.Load() != 2 {
		t.Error(s, r)
	}
}

func TestRequestBodiesKeepToTheWindows(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 3000)
	echo := func(p *h2peer, r *h2stream) { p.respond(r, 200, string(r.body)) }
	for name, script := range map[string]func(*h2peer){
		"large": answering(echo, windowSetting(1<<31-1)),
		"small": answering(echo, windowSetting(777)),
		"nothing until a WINDOW_UPDATE": func(p *h2peer) {
			p.refill = false
			p.settings(windowSetting(0))
			for {
				for p.acked == 0 || len(p.streams) == 0 && len(p.ready) == 0 {
					p.read()
				}
				for _, r := range p.streams {
					if !r.ended {
						n := max(0, 5000-r.receive)
						p.give(r, n+1)
						p.give(nil, n+1)
					}
				}
				if p.read(); len(p.ready) > 0 {
					echo(p, p.next())
				}
			}
		},
		"a narrow connection": func(p *h2peer) {
			p.refill = false
			p.settings(windowSetting(1 << 20))
			for {
				p.read()
				if p.receive < 1000 && p.acked > 0 {
					p.give(nil, 1001)
				}
				if len(p.ready) > 0 {
					echo(p, p.next())
				}
			}
		},
		"changed while they are on their way": func(p *h2peer) {
			sizes := []uint32{20_000, 100, 0, 3000, 1, 50_000}
			for i := 0; ; i++ {
				p.settings(windowSetting(sizes[i%len(sizes)]))
				for acked := p.acked; acked == p.acked; {
					p.read()
				}
				for len(p.ready) > 0 {
					echo(p, p.next())
				}
			}
		},
		"frames may be large": answering(echo, windowSetting(1<<20), http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1<<24 - 1}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, func(p *h2peer) { script(p) })
			o := h2Options(s)
			o.Method, o.Body, o.Requests = "POST", body, 20
			r := load(t, o)
			if r.Responses[0] != 20 || r.BodyTotal() != int64(20*len(body)) || s.connections.Load() != 2 {
				t.Error(s, r)
			}
		})
	}
}

func TestAnAnswerBeforeTheWholeBodyIsAResponse(t *testing.T) {
	for name, reset := range map[string]bool{"with RST_STREAM NO_ERROR": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, func(p *h2peer) {
				p.refill = false
				p.settings()
				for {
					p.read()
					for _, r := range p.streams {
						p.respond(r, 413, "too large")
						if reset {
							p.rst(r, http2.ErrCodeNo)
						} else {
							delete(p.streams, r.id)
						}
					}
					if p.receive < 30_000 {
						p.give(nil, 30_000)
					}
				}
			})
			o := h2Options(s)
			o.Method, o.Body = "PUT", make([]byte, 1<<20)
			r := load(t, o)
			if r.Responses[2] != 40 || s.connections.Load() != 2 || r.SentBytes > 20<<20 {
				t.Error(s, r)
			}
			if dropped := s.dropped.Load(); !reset && (dropped < 30 || dropped > 40) {
				t.Errorf("the client reset %d streams", dropped)
			}
		})
	}
}

func TestHeadersAreIndexedFromTheSecondRequestOn(t *testing.T) {
	t.Parallel()
	var first, later atomic.Int64
	s := serveH2(t, func(p *h2peer) {
		answering(func(p *h2peer, r *h2stream) {
			if r.id == 1 {
				first.Add(1)
				if r.block <= len(r.fields) {
					t.Errorf("the first block is %d bytes long for %d fields", r.block, len(r.fields))
				}
			} else if later.Add(1); r.block != len(r.fields) || len(r.fields) != 7 {
				t.Errorf("block of stream %d is %d bytes long for %d fields", r.id, r.block, len(r.fields))
			}
			hello(p, r)
		})(p)
	})
	o := h2Options(s)
	o.URL, o.Headers = s.url+"some/path?query", []Header{{"User-Agent", "bakeoff"}, {"Accept", "*/*"}, {"X-Long", strings.Repeat("x", 500)}}
	if r := load(t, o); r.Responses[0] != 40 || first.Load() != 2 || later.Load() != 38 {
		t.Errorf("%d first, %d later: %s", first.Load(), later.Load(), r)
	}
}

func TestTheServersHeaderTableSizeIsRespected(t *testing.T) {
	headers := []Header{{"User-Agent", "bakeoff"}, {"X-Long", strings.Repeat("x", 500)}}
	for _, sizes := range [][]uint32{{0}, {64}, {700}, {4096}, {65536}, {1<<32 - 1}, {0, 4096}, {4096, 0}, {100, 0, 50, 4096, 0}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			t.Parallel()
			s := serveH2(t, func(p *h2peer) {
				p.settings(tableSetting(sizes[0]))
				for i := 0; ; i++ {
					r := p.next()
					if want := []string{"/a", "/b"}; !slices.Contains(want, r.value(":path")) || r.value("x-long") != headers[1].Value || r.value("user-agent") != "bakeoff" {
						t.Errorf("fields %v", r.fields)
					}
					hello(p, r)
					if i%5 == 4 && i/5+1 < len(sizes) {
						p.settings(tableSetting(sizes[i/5+1]))
					}
				}
			})
			o := h2Options(s)
			o.Mix, o.Headers, o.Requests = []Request{{Target: "/a"}, {Target: "/b"}}, headers, 100
			if r := load(t, o); r.Responses[0] != 100 || s.connections.Load() != 2 {
				t.Error(s, r)
			}
		})
	}
}

func TestAServerIsHeldToTheWindowsOfTheLoad(t *testing.T) {
	t.Parallel()
	for _, w := range []ReceiveWindow{{Stream: 1}, {Stream: 1000}, {Stream: 65535}, {Connection: 65535}, {Stream: 1 << 20, Connection: 100_000}, {2, 65535}, {1<<31 - 1, 1<<31 - 1}} {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			stream, connection := cmp.Or(w.Stream, 1<<30-1), cmp.Or(w.Connection, 1<<30-1)
			length := min(10*min(stream, connection), 10<<20)
			s := serveH2(t, answering(func(p *h2peer, r *h2stream) {
				p.headers(r, false, ":status", "200")
				for left := length; left > 0; {
					for min(p.window, r.window) == 0 {
						p.read()
					}
					if p.window > connection || r.window > stream {
						t.Errorf("windows of %d and %d", p.window, r.window)
					}
					n := min(left, p.window, r.window, 16384)
					left -= n
					p.data(r, strings.Repeat("x", int(n)), left == 0)
				}
			}))
			o := h2Options(s)
			o.Window, o.Connections, o.Streams, o.Requests = w, 1, 1, 3
			r := load(t, o)
			if r.Responses[0] != 3 || r.BodyTotal() != 3*length {
				t.Error(3*length, r)
			}
		})
	}
}

func TestAServerThatExceedsAStreamsWindowIsAtFault(t *testing.T) {
	t.Parallel()
	s := serveH2(t, answering(func(p *h2peer, r *h2stream) {
		p.headers(r, false, ":status", "200")
		p.WriteData(r.id, true, make([]byte, 1001))
		p.done(r)
	}))
	o := h2Options(s)
	o.Window.Stream, o.Connections, o.Streams, o.Requests = 1000, 1, 1, 1
	if r := load(t, o); r.Errors[ErrProtocol] != 1 || !strings.Contains(r.ErrorExample, "more than a stream's window") {
		t.Error(r)
	}
}

func TestOwnRequestsMayWaitForAServerThatReadsSlowly(t *testing.T) {
	t.Parallel()
	s := serveH2(t, answering(hello, streamsSetting(1000)))
	o := h2Options(s)
	o.Connections, o.Streams, o.Requests = 1, 1000, 1000
	// 8 MB at once are more than a socket takes.
	o.Headers = []Header{{"X-Long", strings.Repeat("\\", 8000)}}
	wantResponses(t, load(t, o), 1000)
}
