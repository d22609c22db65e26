package engine

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
)

func TestWireIsWhatTheConnectionsCarried(t *testing.T) {
	const connections = 4
	for name, requests := range map[string]int64{"connections are kept": 400, "one connection per request": 400, "each 16th is read": 4000} {
		keepAlive := name == "connections are kept"
		for _, secure := range []bool{false, true} {
			if secure && requests > 400 {
				// TLS changes nothing in which of them are read, and takes seconds.
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var o Options
				want := Wire{Connections: requests}
				if keepAlive {
					want.Connections = connections
				}
				if secure {
					config := serverTLS(ecdsaKey)
					s := serve(t, func(s *testServer, c net.Conn) { always(ok)(s, tls.Server(c, config)) })
					o = options(strings.Replace(s.url, "http", "https", 1))
					o.TLS.InsecureSkipVerify = true
					want.Handshakes = want.Connections
				} else {
					o = options(serve(t, always(ok)).url)
				}
				o.Connections, o.KeepAlive, o.Requests = connections, keepAlive, requests
				r := load(t, o)
				got := r.Wire
				if got.Connections != want.Connections || got.Handshakes != want.Handshakes || got.Resent != 0 {
					t.Errorf("got %+v, want %+v", got, want)
				}
				// At least a SYN, an ACK of its answer and a request; at most an ACK more for each segment.
				if least, most := requests+2*want.Connections, 3*(requests+4*want.Connections); got.SegmentsOut < least || got.SegmentsOut > most {
					t.Errorf("%d segments out, want %d to %d", got.SegmentsOut, least, most)
				}
				if secure {
					return
				}
				if got.DataSegmentsIn != requests {
					t.Errorf("%d segments with data in, want one for each of %d answers", got.DataSegmentsIn, requests)
				}
				// A FIN counts as a byte. Timestamps may be off.
				for _, way := range []struct {
					name                    string
					bytes, payload, segment int64
				}{{"out", got.BytesOut, r.SentBytes, got.SegmentsOut}, {"in", got.BytesIn, int64(len(ok)) * requests, got.SegmentsIn}} {
					if headers := way.bytes - way.payload; headers < 40*way.segment || headers > 52*way.segment+want.Connections {
						t.Errorf("%s: %d bytes of headers for %d segments", way.name, headers, way.segment)
					}
				}
			})
		}
	}
}

func TestRefusedConnectionsAreNotOnTheWire(t *testing.T) {
	t.Parallel()
	o := options("http://" + freeAddress(t) + "/")
	o.Requests = 8
	if r := load(t, o); r.Wire != (Wire{}) {
		t.Error(r)
	}
}

func TestWireHasTheHeadersOfIPv6(t *testing.T) {
	t.Parallel()
	if l, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6")
	} else {
		l.Close()
	}
	o := options(serveAt(t, "[::1]:0", always(ok)).url)
	o.Requests = 100
	r := load(t, o)
	if headers := r.Wire.BytesOut - r.SentBytes; headers < 60*r.Wire.SegmentsOut || headers > 72*r.Wire.SegmentsOut {
		t.Errorf("%d bytes of headers for %d segments", headers, r.Wire.SegmentsOut)
	}
}
