package engine

import (
	"cmp"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

func TestH3TheWindowsOfTheLoadAreAnnouncedAndRenewed(t *testing.T) {
	t.Parallel()
	for _, w := range []ReceiveWindow{{}, {Stream: 1}, {Stream: 1000, Connection: 700}, {Stream: 65535}, {Connection: 65535}} {
		stream, connection := cmp.Or(w.Stream, 1<<30-1), cmp.Or(w.Connection, 1<<30-1)
		length := min(10*min(stream, connection), 10<<20)
		announced := make(chan qlog.ParametersSet, 10)
		log := events(func(e qlogwriter.Event) {
			if p, isParameters := e.(qlog.ParametersSet); isParameters && p.Initiator == qlog.InitiatorRemote {
				announced <- p
			}
		})
		config := &quic.Config{Tracer: log.trace}
		s := serveH3(t, config, func(st *h3PeerStream) { st.answer(answer{status: 200, body: strings.Repeat("x", int(length))}) })
		o := h3Options(s.url)
		o.Window, o.Connections, o.Streams, o.Requests = w, 1, 1, 3
		r := load(t, o)
		if r.Responses[0] != 3 || r.BodyTotal() != 3*length {
			t.Error(w, 3*length, r)
		}
		if p := <-announced; len(announced) > 0 || int64(p.InitialMaxStreamDataBidiLocal) != stream || int64(p.InitialMaxData) != connection {
			t.Errorf("%+v: the client announced %+v", w, p)
		}
	}
}
