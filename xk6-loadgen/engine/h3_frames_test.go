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

// events passes quic-go's log on.
type events func(qlogwriter.Event)

func (e events) AddProducer() qlogwriter.Recorder   { return e }
func (events) SupportsSchemas(string) bool          { return true }
func (events) Close() error                         { return nil }
func (e events) RecordEvent(event qlogwriter.Event) { e(event) }

func (e events) trace(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return e }

// A reset of each stream would be work for the server, within what is measured.
func TestH3DoesNotResetRequestsThatHaveLeft(t *testing.T) {
	t.Parallel()
	for _, bodyBytes := range []int{0, 100, 2 * h3.PieceBytes} {
		var resets atomic.Int64
		count := events(func(e qlogwriter.Event) {
			if packet, ok := e.(qlog.PacketReceived); ok {
				for _, f := range packet.Frames {
					if _, isReset := f.Frame.(*qlog.ResetStreamFrame); isReset {
						resets.Add(1)
					}
				}
			}
		})
		s := serveH3(t, &quic.Config{MaxIncomingStreams: 1000, Tracer: count.trace}, answer200)
		o := h3Options(s.url)
		if bodyBytes > 0 {
			o.Method, o.Body = "POST", make([]byte, bodyBytes)
		}
		if r := load(t, o); r.Responses[0] != o.Requests || resets.Load() > 0 {
			t.Error(bodyBytes, resets.Load(), r)
		}
	}
}
