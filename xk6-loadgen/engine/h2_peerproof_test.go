package engine

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
)

// TestTheScriptedPeerAgainstGoClient proves the judge: Go's own client and the peer have to agree on every count.
func TestTheScriptedPeerAgainstGoClient(t *testing.T) {
	body := strings.Repeat("0123456789", 30_000)
	for name, over := range map[string]*tls.Config{"h2c": nil, "h2": serverTLS(rsaKey)} {
		for _, pieces := range []int{0, 1000} {
			t.Run(fmt.Sprintf("%s, pieces of %d", name, pieces), func(t *testing.T) {
				t.Parallel()
				s := serveH2TLS(t, over, func(p *h2peer) {
					p.pieces = pieces
					answering(func(p *h2peer, r *h2stream) {
						p.ping()
						p.respond(r, 200, string(r.body), "x-path", r.value(":path"))
					}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 50})(p)
				})
				transport := &http2.Transport{
					AllowHTTP: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
					DialTLSContext: func(ctx context.Context, network, address string, config *tls.Config) (net.Conn, error) {
						if over != nil {
							return tls.Dial(network, address, config)
						}
						return net.Dial(network, address)
					},
				}
				defer transport.CloseIdleConnections()
				var clients sync.WaitGroup
				for i := range 20 {
					clients.Go(func() {
						path := fmt.Sprintf("%s%d", s.url, i)
						response, err := (&http.Client{Transport: transport}).Post(path, "text/plain", strings.NewReader(body))
						if err != nil {
							t.Error(err)
							return
						}
						defer response.Body.Close()
						if got, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(got, []byte(body)) || !strings.HasSuffix(path, response.Header.Get("x-path")) {
							t.Errorf("%d bytes back for %s, %v", len(got), path, err)
						}
					})
				}
				clients.Wait()
				if s.requests.Load() != 20 || s.answered.Load() != 20 || s.connections.Load() != 1 || s.mostOpen.Load() > 100 {
					t.Errorf("%d requests, %d answered, %d connections, %d open", s.requests.Load(), s.answered.Load(), s.connections.Load(), s.mostOpen.Load())
				}
				// What the peer sends it counts after the write, by which time the client may have read it.
				waitFor(t, func() bool { return s.sent.Load() >= int64(20*len(body)) })
				if s.body.Load() != int64(20*len(body)) || s.received.Load() < int64(20*len(body)) {
					t.Errorf("%d bytes of body, %d received", s.body.Load(), s.received.Load())
				}
			})
		}
	}
}
