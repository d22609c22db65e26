package engine

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/h3"
)

// resetCounter counts the RESET_STREAM frames that come in.
type resetCounter struct{ count atomic.Int64 }

func (r *resetCounter) AddProducer() qlogwriter.Recorder { return r }
func (r *resetCounter) SupportsSchemas(string) bool      { return true }
func (r *resetCounter) Close() error                     { return nil }

func (r *resetCounter) RecordEvent(e qlogwriter.Event) {
	if packet, ok := e.(qlog.PacketReceived); ok {
		for _, f := range packet.Frames {
			if _, isReset := f.Frame.(*qlog.ResetStreamFrame); isReset {
				r.count.Add(1)
			}
		}
	}
}

// A reset of each stream would be work for the server, within what is measured.
func TestH3DoesNotResetRequestsThatHaveLeft(t *testing.T) {
	t.Parallel()
	for _, bodyBytes := range []int{0, 100, 2 * h3.PieceBytes} {
		resets := &resetCounter{}
		s := serveH3(t, &quic.Config{
			MaxIncomingStreams: 1000,
			Tracer:             func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return resets },
		}, answer200)
		o := h3Options(s.url)
		if bodyBytes > 0 {
			o.Method, o.Body = "POST", make([]byte, bodyBytes)
		}
		if r := load(t, o); r.Responses[0] != o.Requests || resets.count.Load() > 0 {
			t.Errorf("bodies of %d bytes: responses %v, %d resets: %s", bodyBytes, r.Responses, resets.count.Load(), r.ErrorExample)
		}
	}
}
