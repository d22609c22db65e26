package engine

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// TestAServerThatDoesEverythingItMay plays whatever is legal in an order nobody thought of. The peer checks every frame that
// the client sends; nothing may hang, and every attempt has to end once.
func TestAServerThatDoesEverythingItMay(t *testing.T) {
	for seed := range uint64(3) {
		for _, x := range transports {
			if x.streams == 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s, seed %d", x.name, seed), func(t *testing.T) {
				t.Parallel()
				var connections, broken atomic.Int64
				s := serveH2TLS(t, x.config(), func(p *h2peer) {
					p.chaos(rand.New(rand.NewPCG(seed, uint64(connections.Add(1)))), &broken)
				})
				o := h2Options(s)
				o.Connections, o.Streams, o.Threads, o.Requests = 6, 20, 2, 1500
				if seed%2 == 1 {
					o.Method, o.Body = "POST", []byte(strings.Repeat("0123456789", 300))
				}
				r := load(t, o)
				// Of the connections that ended in the middle of it, the engine may not have seen the last answers.
				if unseen := s.answered.Load() - r.Responses[0]; unseen < 0 || unseen > broken.Load()*20 {
					t.Error(s, r)
				}
				if r.Errors[ErrRead]+r.Errors[ErrWrite] != r.ErrorTotal() || r.Responses[0] < 500 {
					t.Error(r)
				}
			})
		}
	}
}

// chaos serves until it ends the connection. broken counts those that end without a warning.
func (p *h2peer) chaos(random *rand.Rand, broken *atomic.Int64) {
	p.settings(windowSetting(100+random.Uint32N(5000)), streamsSetting(1+random.Uint32N(30)))
	// half are the streams whose answer has begun.
	var half []*h2stream
	isOpen := func(r *h2stream) bool { return p.streams[r.id] == r }
	take := func(list *[]*h2stream) *h2stream {
		i := random.IntN(len(*list))
		r := (*list)[i]
		*list = append((*list)[:i:i], (*list)[i+1:]...)
		return r
	}
	finish := func(r *h2stream) {
		if isOpen(r) {
			p.data(r, "hello", random.IntN(2) == 0)
			if isOpen(r) {
				p.headersIn(r, 1+random.IntN(20), true, "x-sum", strconv.Itoa(random.IntN(100)))
			}
		}
	}
	for step := 0; ; step++ {
		for len(p.ready)+len(half) == 0 {
			p.read()
		}
		switch action := random.IntN(100); {
		case action < 45 && len(p.ready) > 0:
			p.respond(take(&p.ready), 200, strings.Repeat("x", random.IntN(3000)), "x-"+strconv.Itoa(random.IntN(50)), strings.Repeat("y", random.IntN(200)))
		case action < 60 && len(p.ready) > 0:
			r := take(&p.ready)
			if random.IntN(4) == 0 {
				p.headers(r, false, ":status", "103", "link", "</x>")
			}
			p.headersIn(r, 1+random.IntN(50), false, ":status", "200", "server", "chaos")
			half = append(half, r)
		case action < 75 && len(half) > 0:
			finish(take(&half))
		case action < 78 && len(p.ready) > 0:
			p.rst(take(&p.ready), http2.ErrCode(random.Uint32N(14)))
		case action < 80 && len(half) > 0:
			p.rst(take(&half), http2.ErrCodeInternal)
		case action < 84:
			p.settings([]http2.Setting{windowSetting(100 + random.Uint32N(70_000)), streamsSetting(1 + random.Uint32N(30)), tableSetting(random.Uint32N(5000))}[random.IntN(3)])
		case action < 88:
			p.ping()
		case action < 92:
			p.encoder.SetMaxDynamicTableSize(random.Uint32N(4097))
			p.WriteRawFrame(http2.FrameType(0x20+random.IntN(100)), http2.Flags(random.IntN(256)), random.Uint32N(1<<31), make([]byte, random.IntN(100)))
		case action < 96:
			p.pieces = random.IntN(3) * (1 + random.IntN(500))
		case action == 96 && step > 100:
			p.WriteGoAway(p.lastID-2*min(p.lastID/2, random.Uint32N(10)), http2.ErrCodeNo, nil)
			for _, r := range half {
				finish(r)
			}
			for len(p.ready) > 0 {
				hello(p, take(&p.ready))
			}
			broken.Add(1)
			p.close()
		case action == 97 && step > 200:
			broken.Add(1)
			p.close()
		case action == 98 && step > 200:
			broken.Add(1)
			p.reset()
		}
	}
}
