package engine

import (
	"net"
	"testing"

	"github.com/quic-go/quic-go"
)

// narrowPort does not get datagrams of more than 1,200 bytes once a connection is up.
type narrowPort struct{ net.PacketConn }

func (p narrowPort) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := p.PacketConn.ReadFrom(b)
		if isOfHandshake := b[0]&0x80 != 0; err != nil || n <= 1200 || isOfHandshake {
			return n, from, err
		}
	}
}

func TestH3RequestsPassAHoleForLongDatagrams(t *testing.T) {
	t.Parallel()
	s := serveH3On(t, &quic.Transport{Conn: narrowPort{silentPort(t)}}, nil, answer200)
	o := h3Options(s.url)
	o.Connections, o.Method, o.Body = 1, "POST", make([]byte, 5000)
	wantResponses(t, load(t, o), 40)
}
