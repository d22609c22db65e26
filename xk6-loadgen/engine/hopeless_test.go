package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// refusesTLS ends each handshake by an alert, as a server without a certificate for the client's name.
func refusesTLS(t *testing.T) (overTCP, overQUIC string) {
	handshakes := serve(t, func(_ *testServer, c net.Conn) {
		c.Read(make([]byte, 64<<10))
		c.Write([]byte{21, 3, 3, 0, 2, 2, 80}) // a fatal alert: internal_error
	})
	config := &tls.Config{NextProtos: []string{"h3"}, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, fmt.Errorf("no certificate for %q", hello.ServerName)
	}}
	listener, err := (&quic.Transport{Conn: silentPort(t)}).Listen(config, nil)
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	return "https" + strings.TrimPrefix(handshakes.url, "http"), "https://" + listener.Addr().String() + "/"
}

func TestALoadWithoutAnyAnswerEndsWithItsReason(t *testing.T) {
	t.Parallel()
	overTCP, overQUIC := refusesTLS(t)
	for name, test := range map[string]struct {
		url      string
		protocol Protocol
		rate     float64
		warmup   time.Duration
		reason   string
	}{
		"refused":      {"http://" + freeAddress(t) + "/", HTTP11, 0, 0, "connection refused"},
		"in a warm-up": {"http://" + freeAddress(t) + "/", HTTP11, 0, time.Hour, "connection refused"},
		"at a rate":    {"http://" + freeAddress(t) + "/", HTTP11, 10, time.Second, "connection refused"},
		"TLS":          {overTCP, H2, 0, 0, "internal error (the load has no name for SNI"},
		"QUIC":         {overQUIC, H3, 0, 0, "internal error (the load has no name for SNI"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(test.url)
			o.Protocol, o.Connections, o.Threads, o.Rate, o.Warmup = test.protocol, 6, 2, test.rate, test.warmup
			o.TLS.InsecureSkipVerify, o.patience = strings.HasPrefix(test.url, "https"), 0
			o.Requests = 1_000_000 // of which each takes up to half a second, on six connections
			r, err := Run(t.Context(), o, nil)
			if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "each of its 6 connections") || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("error %v", err)
			}
			if r.ResponseTotal() != 0 || test.warmup == 0 && r.ErrorTotal() < 12 {
				t.Error(r)
			}
		})
	}
}

func TestAHopelessSideEndsAllAndIsNamed(t *testing.T) {
	t.Parallel()
	good, bad := options(serve(t, always(ok)).url), options("http://"+freeAddress(t)+"/")
	good.Duration, bad.Duration, bad.patience = time.Hour, time.Hour, 0
	results, err := Alternate(t.Context(), []Side{{Options: good}, {Options: bad}}, Turns{Slice: 50 * ms})
	if !errors.Is(err, ErrNoAnswer) || !strings.HasPrefix(err.Error(), "sides[1]: ") {
		t.Errorf("error %v", err)
	}
	if results[1].ErrorTotal() == 0 {
		t.Errorf("errors %v", results[1].Errors)
	}
}

func TestALoadWithAnAnswerIsNotHopeless(t *testing.T) {
	t.Parallel()
	// The server is away for good after some answers, in the warm-up or in the window; of two connections one gets answers throughout.
	for name, test := range map[string]struct {
		warmup time.Duration
		serves func(n int64) bool
	}{
		"dies in the window":  {0, func(n int64) bool { return n < 20 }},
		"dies in the warm-up": {time.Second, func(n int64) bool { return n < 20 }},
		"answers every third": {0, func(n int64) bool { return n%3 == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int64
			s := serve(t, func(s *testServer, c net.Conn) {
				if test.serves(connections.Add(1)) {
					once(ok)(s, c)
				}
			})
			o := options(s.url)
			o.KeepAlive, o.Connections, o.patience = false, 2, time.Nanosecond
			o.Warmup, o.Duration = test.warmup, 1500*ms
			r, err := Run(context.Background(), o, nil)
			if err != nil || r.ErrorTotal() < 2 {
				t.Errorf("errors %v: %v", r.Errors, err)
			}
		})
	}
}
