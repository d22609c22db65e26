package responder

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	handshakeLimit = 10 * time.Second
	// A read from a TLS connection gives what was in one record.
	recordBytes = 16 << 10
)

// secure answers over TLS: crypto/tls with a goroutine per connection, one write for all that one read asks for.
type secure struct {
	responder *Responder
	listener  net.Listener
	config    *tls.Config
	// workspaces are lent while a read is answered.
	workspaces sync.Pool
	// room has a place for each connection that may be open.
	room chan struct{}
	mu   sync.Mutex
	open map[net.Conn]bool
	done sync.WaitGroup
}

func newSecure(r *Responder, listener net.Listener, certificate tls.Certificate) *secure {
	protocol := string(r.protocol)
	return &secure{
		responder: r, listener: listener,
		config: &tls.Config{
			Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocol},
			// Full records from the start, and no tickets: the least work.
			DynamicRecordSizingDisabled: true, SessionTicketsDisabled: true,
		},
		workspaces: sync.Pool{New: func() any { return new(workspace) }},
		room:       make(chan struct{}, r.maxConnections),
		open:       map[net.Conn]bool{},
	}
}

func (s *secure) run() {
	for {
		s.room <- struct{}{}
		c, err := s.listener.Accept()
		if err != nil {
			<-s.room
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// No file is free, say: others end.
			time.Sleep(pauseMilliseconds * time.Millisecond)
			continue
		}
		s.mu.Lock()
		s.open[c] = true
		s.mu.Unlock()
		s.done.Go(func() {
			s.serve(c)
			c.Close()
			s.mu.Lock()
			delete(s.open, c)
			s.mu.Unlock()
			<-s.room
		})
	}
}

func (s *secure) close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func (s *secure) serve(raw net.Conn) {
	c := tls.Server(raw, s.config)
	raw.SetDeadline(time.Now().Add(handshakeLimit)) //nolint:errcheck // the handshake fails then, too
	if c.Handshake() != nil {
		return
	}
	raw.SetDeadline(time.Time{}) //nolint:errcheck // as above
	if s.responder.protocol == H2 && c.ConnectionState().NegotiatedProtocol != string(H2) {
		return
	}
	speaker, buffer := s.responder.newSpeaker(), make([]byte, recordBytes)
	for {
		n, err := c.Read(buffer)
		if n > 0 && !s.answer(c, speaker, buffer[:n]) {
			// With close_notify, which is not waited for.
			c.Close()
			return
		}
		if err != nil {
			return
		}
	}
}

// answer acts on what was read; it is false when the connection is to be closed.
func (s *secure) answer(c net.Conn, speaker speaker, p []byte) bool {
	w := s.workspaces.Get().(*workspace)
	defer s.workspaces.Put(w)
	defer w.clear()
	for {
		p = p[speaker.received(w, p):]
		for out := speaker.pending(w); len(out) > 0; out = speaker.pending(w) {
			if _, err := c.Write(out); err != nil {
				return false
			}
			speaker.sent(w, len(out))
		}
		if speaker.ends() {
			return false
		}
		if len(p) == 0 {
			return true
		}
	}
}
