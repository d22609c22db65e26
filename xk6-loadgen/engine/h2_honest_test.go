package engine

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// TestContractWithGoServer has Go's own server for a peer, which nobody wrote for these tests.
func TestContractWithGoServer(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	onAll(t, func(t *testing.T, x transport) {
		var requests, connections atomic.Int64
		server := &http.Server{
			Protocols: new(http.Protocols), TLSConfig: x.config(),
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				got, err := io.ReadAll(r.Body)
				if err != nil || !bytes.Equal(got, body) {
					t.Errorf("%d bytes came: %v", len(got), err)
				}
				w.Header().Set("Content-Length", strconv.Itoa(len(got)))
				w.Write(got)
			}),
			ConnState: func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			},
		}
		server.Protocols.SetHTTP1(!x.isH2())
		server.Protocols.SetHTTP2(x.isH2())
		server.Protocols.SetUnencryptedHTTP2(x.isH2())
		listener := listen(t, "127.0.0.1:0")
		defer server.Close()
		url := "http://" + listener.Addr().String() + "/echo"
		if x.protocol == H3 {
			url = "https" + url[4:]
			over := http3.Server{Handler: server.Handler, TLSConfig: http3.ConfigureTLSConfig(x.config()), QUICConfig: &quic.Config{HandshakeIdleTimeout: patient}}
			packets, err := net.ListenPacket("udp", listener.Addr().String())
			must(t, err)
			defer packets.Close()
			defer over.Close()
			go over.Serve(packets)
		} else if x.isTLS {
			url = "https" + url[4:]
			go server.ServeTLS(listener, "", "")
		} else {
			go server.Serve(listener)
		}
		o := x.options(url)
		o.Requests, o.Method, o.Body = 20, "POST", body
		r := load(t, o)
		if r.Responses[0] != 20 || requests.Load() != 20 || r.BodyTotal() != int64(20*len(body)) || connections.Load() > 4 {
			t.Errorf("the server saw %d requests on %d connections: %s", requests.Load(), connections.Load(), r)
		}
		if x.isH2() && r.MaxConcurrentStreams != 250 {
			t.Error(r)
		}
	})
}
