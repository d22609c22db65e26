package engine

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// datagram is one on its way through a relay.
type datagram struct {
	bytes     []byte
	isServers bool
	client    net.Addr
	pass      func([]byte)
}

// isLong tells whether it begins with a packet of the handshake.
func (d datagram) isLong() bool { return d.bytes[0]&0x80 != 0 }

// relay gives the datagrams between clients and a server to its script.
type relay struct {
	net.PacketConn
	url string
	// rebinds has the server see the clients at new ports from now on.
	rebinds atomic.Bool
}

func relayTo(t *testing.T, url string, script func(*relay, datagram)) *relay {
	server, err := net.ResolveUDPAddr("udp", strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/"))
	must(t, err)
	r := &relay{PacketConn: silentPort(t)}
	r.url = "https://" + r.LocalAddr().String() + "/"
	go func() {
		clients := map[string]*net.UDPConn{}
		for p := make([]byte, 65536); ; {
			n, from, err := r.ReadFrom(p)
			if err != nil {
				return
			}
			if r.rebinds.CompareAndSwap(true, false) {
				clear(clients)
			}
			to := clients[from.String()]
			if to == nil {
				if to, err = net.DialUDP("udp", nil, server); err != nil {
					return
				}
				t.Cleanup(func() { to.Close() })
				clients[from.String()] = to
				go func() {
					for p := make([]byte, 65536); ; {
						n, err := to.Read(p)
						if err != nil {
							return
						}
						script(r, datagram{p[:n], true, from, func(p []byte) { r.WriteTo(p, from) }})
					}
				}()
			}
			script(r, datagram{p[:n], false, from, func(p []byte) { to.Write(p) }})
		}
	}()
	return r
}

func TestH3GarbageBesideTheServersDatagrams(t *testing.T) {
	t.Parallel()
	s := serveH3(t, nil, answer200)
	r := relayTo(t, s.url, func(_ *relay, d datagram) {
		if d.isServers {
			junk := make([]byte, len(d.bytes))
			rand.Read(junk)
			d.pass(junk)
			junk[0] &= 0x7f // as of a connection that is up
			d.pass(junk)
		}
		d.pass(d.bytes)
	})
	o := h3Options(r.url)
	o.Requests = 400
	if r := load(t, o); r.Responses[0] != 400 || s.requests.Load() != 400 {
		t.Error(s, r)
	}
}

func TestH3ALostServerIsATimeOut(t *testing.T) {
	drop := func(*relay, datagram) {}
	other := silentPort(t)
	for name, test := range map[string]struct {
		idle  time.Duration
		after func(*relay, datagram)
	}{
		"its idle time-out": {400 * time.Millisecond, drop},
		"ours":              {10 * time.Second, drop},
		// A server may not move (RFC 9000, section 9).
		"it goes on at another port": {10 * time.Second, func(_ *relay, d datagram) {
			if d.isServers {
				other.WriteTo(d.bytes, d.client)
			} else {
				d.pass(d.bytes)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var isLost atomic.Bool
			s := serveH3(t, &quic.Config{MaxIdleTimeout: test.idle}, func(st *h3PeerStream) {
				if st.server.requests.Load() > 20 {
					isLost.Store(true)
				}
				answer200(st)
			})
			r := relayTo(t, s.url, func(r *relay, d datagram) {
				if isLost.Load() {
					test.after(r, d)
				} else {
					d.pass(d.bytes)
				}
			})
			o := h3Options(r.url)
			o.Connections, o.Requests, o.Timeout = 1, 30, time.Second
			out := load(t, o)
			if out.Errors[ErrTimeout] == 0 || out.Errors[ErrTimeout]+out.Errors[ErrConnect] != out.ErrorTotal() || out.Causes[CauseTimedOut] != out.ErrorTotal() {
				t.Errorf("responses %v, errors %v: %s", out.Responses, out.Errors, out.ErrorExample)
			}
		})
	}
}

func TestH3AClientsAddressMayChange(t *testing.T) {
	t.Parallel()
	s := serveH3(t, nil, answer200)
	var passed atomic.Int64
	r := relayTo(t, s.url, func(r *relay, d datagram) {
		if !d.isLong() && passed.Add(1)%100 == 0 {
			r.rebinds.Store(true)
		}
		d.pass(d.bytes)
	})
	o := h3Options(r.url)
	o.Connections, o.Requests = 1, 2000
	if out := load(t, o); out.Responses[0] != 2000 || s.connections.Load() != 1 || passed.Load() < 200 {
		t.Errorf("responses %v on %d connections: %s", out.Responses, s.connections.Load(), out.ErrorExample)
	}
}

// Datagrams of more than 1,200 bytes vanish once a connection is up.
func TestH3AHoleForLongDatagrams(t *testing.T) {
	for name, test := range map[string]struct {
		serverBytes uint16
		sent        int
		body        string
		works       bool
	}{
		"short answers":                        {1280, 0, "hello", true},
		"long answers in long datagrams":       {1280, 0, strings.Repeat("~", 5000), false},
		"long answers in datagrams that fit":   {1200, 0, strings.Repeat("~", 5000), true},
		"requests that take several datagrams": {1280, 5000, "hello", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH3(t, &quic.Config{InitialPacketSize: test.serverBytes}, func(st *h3PeerStream) {
				st.answer(answer{status: 200, body: test.body})
			})
			var vanished atomic.Int64
			r := relayTo(t, s.url, func(_ *relay, d datagram) {
				if len(d.bytes) > 1200 && !d.isLong() {
					vanished.Add(1)
				} else {
					d.pass(d.bytes)
				}
			})
			o := h3Options(r.url)
			o.Connections, o.Requests = 1, 40
			if test.sent > 0 {
				o.Method, o.Body = "POST", make([]byte, test.sent)
			}
			if !test.works {
				o.Requests, o.Timeout = 8, 500*time.Millisecond
			}
			tried(t, func() string { // A busy machine is late
				vanished.Store(0)
				began := time.Now()
				out := load(t, o)
				took := time.Since(began)
				switch {
				case test.works && out.Responses[0] != 40:
					t.Errorf("responses %v, errors %v: %s", out.Responses, out.Errors, out.ErrorExample)
				case !test.works && out.Errors[ErrTimeout] != 8:
					t.Errorf("errors %v: %s", out.Errors, out.ErrorExample)
				case took > 10*o.Timeout || test.works && vanished.Load() == 0 && took > time.Second:
					return fmt.Sprintf("it took %s, %d datagrams vanished", took, vanished.Load())
				}
				return ""
			})
		})
	}
}

// A server that has lost its connections, as one that was started anew, says so by stateless resets.
func TestH3AServerThatForgetsItsConnections(t *testing.T) {
	t.Parallel()
	// A connection whose last request was acknowledged before the first server ended sends nothing that the second could answer.
	tried(t, func() string { return loadThatIsForgotten(t) })
}

// loadThatIsForgotten returns what is wrong with a load whose server is another one after some 20 requests.
func loadThatIsForgotten(t *testing.T) string {
	port, key := silentPort(t), &quic.StatelessResetKey{1}
	forgets := make(chan struct{})
	var once sync.Once
	before := &quic.Transport{Conn: port, StatelessResetKey: key}
	first := serveH3On(t, before, nil, func(st *h3PeerStream) {
		if st.server.requests.Load() > 20 {
			once.Do(func() { close(forgets) })
			return
		}
		answer200(st)
	})
	second := make(chan *peerServer, 1)
	go func() {
		<-forgets
		before.Close()
		second <- serveH3On(t, &quic.Transport{Conn: port, StatelessResetKey: key}, nil, answer200)
	}()
	o := h3Options(first.url)
	o.Connections, o.Requests, o.Timeout = 2, 100, 10*time.Second
	began := time.Now()
	out := load(t, o)
	took, connections := time.Since(began), (<-second).connections.Load()
	// Between the two servers a connect may be refused.
	lost := out.ErrorTotal()
	if out.Causes[CauseReset] == 0 || lost > 8 || out.Responses[0]+lost != 100 || took > o.Timeout/2 || connections != 2 {
		return fmt.Sprintf("after %s: responses %v, errors %v, causes %v, %d connections to the second server: %s", took, out.Responses, out.Errors, out.Causes, connections, out.ErrorExample)
	}
	return ""
}

func TestH3ServersThatAskBackFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		verify func(net.Addr) bool
		config *quic.Config
	}{
		"for the client's address":   {func(net.Addr) bool { return true }, nil},
		"for another version of RFC": {nil, &quic.Config{Versions: []quic.Version{quic.Version2}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveH3On(t, &quic.Transport{Conn: silentPort(t), VerifySourceAddress: test.verify}, test.config, answer200)
			if r := load(t, h3Options(s.url)); r.Responses[0] != 40 || s.connections.Load() != 4 {
				t.Error(s, r)
			}
		})
	}
}

// initial is the beginning of a client's connection.
type initial struct{ to, from []byte }

func initialOf(p []byte) (initial, bool) {
	if len(p) < 1200 || p[0]&0xc0 != 0xc0 {
		return initial{}, false
	}
	to := p[6 : 6+p[5]]
	from := p[6+len(to)+1:]
	return initial{to, from[:p[6+len(to)]]}, true
}

func withLengths(p []byte, ids ...[]byte) []byte {
	for _, id := range ids {
		p = append(append(p, byte(len(id))), id...)
	}
	return p
}

// versions is an answer that names the versions of the server (RFC 9000, section 17.2.1).
func (i initial) versions(all ...uint32) []byte {
	p := withLengths([]byte{0x80, 0, 0, 0, 0}, i.from, i.to)
	for _, v := range all {
		p = binary.BigEndian.AppendUint32(p, v)
	}
	return p
}

// retry is an answer that sends the client back (RFC 9000, section 17.2.5, and RFC 9001, section 5.8).
func (i initial) retry(t testing.TB) []byte {
	id := make([]byte, 8)
	rand.Read(id)
	p := append(withLengths([]byte{0xf0, 0, 0, 0, 1}, i.from, id), "a token"...)
	block, err := aes.NewCipher([]byte{0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e})
	if err != nil {
		t.Error(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Error(err)
	}
	nonce := []byte{0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb}
	return gcm.Seal(p, nonce, nil, append(withLengths(nil, i.to), p...))
}

// A peer that ends no handshake costs no more than one that says nothing, whatever the time-out.
func TestH3PeersThatNeverConnect(t *testing.T) {
	t.Parallel()
	peer := func(answer func(initial) []byte) string {
		port := silentPort(t)
		go func() {
			for p := make([]byte, 2000); ; {
				n, from, err := port.ReadFrom(p)
				if err != nil {
					return
				}
				if i, isInitial := initialOf(p[:n]); isInitial {
					port.WriteTo(answer(i), from)
				}
			}
		}()
		return "https://" + port.LocalAddr().String() + "/"
	}
	oneWay := relayTo(t, serveH3(t, nil, answer200).url, func(_ *relay, d datagram) {
		if !d.isServers {
			d.pass(d.bytes)
		}
	})
	const reserved = 0x1a2a3a4a
	for name, test := range map[string]struct {
		url     string
		cause   ErrorCause
		example string
	}{
		"it knows no version of ours":       {peer(func(i initial) []byte { return i.versions(reserved) }), CauseOther, "no compatible QUIC version"},
		"it denies a version that it has":   {peer(func(i initial) []byte { return i.versions(reserved, 1) }), CauseTimedOut, noQUIC},
		"it retries without end":            {peer(func(i initial) []byte { return i.retry(t) }), CauseTimedOut, noQUIC},
		"its retry has a false tag":         {peer(func(i initial) []byte { return append(i.retry(t), 0) }), CauseTimedOut, noQUIC},
		"its datagrams are blocked":         {oneWay.url, CauseTimedOut, noQUIC},
		"it sends what the client has sent": {peer(func(i initial) []byte { return withLengths([]byte{0xc0, 0, 0, 0, 1}, i.to, i.from) }), CauseTimedOut, noQUIC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if problem := noConnect(t, test.url, test.cause, test.example); problem != "" {
				t.Error(problem)
			}
		})
	}
}
