package engine

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// announced keeps the transport parameters that clients have sent to a server.
type announced struct {
	mu  sync.Mutex
	all []qlog.ParametersSet
}

func (a *announced) AddProducer() qlogwriter.Recorder { return a }
func (a *announced) SupportsSchemas(string) bool      { return false }
func (a *announced) Close() error                     { return nil }

func (a *announced) RecordEvent(e qlogwriter.Event) {
	if p, isParameters := e.(qlog.ParametersSet); isParameters && p.Initiator == qlog.InitiatorRemote {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all = append(a.all, p)
	}
}

func TestH3TheWindowsOfTheLoadAreAnnouncedAndRenewed(t *testing.T) {
	t.Parallel()
	for _, w := range []ReceiveWindow{{}, {Stream: 1}, {Stream: 1000, Connection: 700}, {Stream: 65535}, {Connection: 65535}} {
		stream, connection := w.Stream, w.Connection
		if stream == 0 {
			stream = 1<<30 - 1
		}
		if connection == 0 {
			connection = 1<<30 - 1
		}
		length := min(10*min(stream, connection), 10<<20)
		parameters := &announced{}
		config := &quic.Config{Tracer: func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return parameters }}
		s := serveH3(t, config, func(st *h3PeerStream) { st.answer(answer{status: 200, body: strings.Repeat("x", int(length))}) })
		o := h3Options(s.url)
		o.Window, o.Connections, o.Streams, o.Requests = w, 1, 1, 3
		r := load(t, o)
		if r.Responses[0] != 3 || r.BodyTotal() != 3*length {
			t.Errorf("%+v: responses %v, %d bytes of %d: %s", w, r.Responses, r.BodyTotal(), 3*length, r.ErrorExample)
		}
		parameters.mu.Lock()
		if p := parameters.all; len(p) != 1 || int64(p[0].InitialMaxStreamDataBidiLocal) != stream || int64(p[0].InitialMaxData) != connection {
			t.Errorf("%+v: the client announced %+v", w, p)
		}
		parameters.mu.Unlock()
	}
}
