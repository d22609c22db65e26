package engine

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// nginxLogging is an nginx with one worker that logs for each request whether its connection's session was resumed: "r", or "." if not. Its
// directives are those of the server block. The test is skipped without nginx, and must not be
// parallel: a process that starts has this one's sockets for a moment, and with them their events in epoll.
func nginxLogging(t *testing.T, directives string) (url string, lines func() []byte) {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	folder, address := t.TempDir(), freeAddress(t)
	certificate := pemFile(t)
	must(t, os.WriteFile(filepath.Join(folder, "nginx.conf"), fmt.Appendf(nil, `
		daemon off; master_process off; pid pid; error_log error.log;
		events {}
		http {
			client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
			log_format resumed $ssl_session_reused;
			access_log access.log resumed;
			server { listen %s ssl http2; ssl_certificate %[2]s; ssl_certificate_key %[2]s; %s location / { return 200 hello; } }
		}`, address, certificate, directives), 0o600))
	launch(t, exec.Command(nginx, "-p", folder, "-c", "nginx.conf", "-e", "error.log"))
	dialSoon(t, address).Close()
	return "https://" + address + "/", func() []byte {
		log, err := os.ReadFile(filepath.Join(folder, "access.log"))
		must(t, err)
		return log
	}
}

const withTickets = "ssl_session_tickets on; ssl_session_cache off;"

// TestConnectionsResumeTheShare holds the engine's count against nginx's, of connections with one request each.
func TestConnectionsResumeTheShare(t *testing.T) {
	for _, version := range []string{"TLSv1.2", "TLSv1.3"} {
		for _, protocol := range []Protocol{HTTP11, H2} {
			for _, share := range []float64{0, 0.3, 0.9, 1} {
				t.Run(fmt.Sprintf("%s, %s, %g", version, protocol, share), func(t *testing.T) {
					url, lines := nginxLogging(t, "ssl_protocols "+version+"; "+withTickets)
					const requests, slots = 204, 4
					o := options(url)
					o.Protocol, o.KeepAlive, o.Requests, o.Connections, o.Threads = protocol, false, requests, slots, 2
					o.TLS = TLSOptions{InsecureSkipVerify: true, Resume: share}
					r := load(t, o)
					wantResponses(t, r, requests)
					waitFor(t, func() bool { return bytes.Count(lines(), []byte("\n")) >= requests })
					seen, handshakes := int64(bytes.Count(lines(), []byte("r"))), int64(bytes.Count(lines(), []byte("\n")))
					if r.Wire.Resumed != seen || r.Wire.Handshakes != handshakes {
						t.Errorf("resumed %d of %d, nginx says %d of %d", r.Wire.Resumed, r.Wire.Handshakes, seen, handshakes)
					}
					// A slot's first connection has nothing to resume. Each of two threads rounds its part down.
					if want := share * (requests - slots); float64(seen) > want || float64(seen) <= want-2 {
						t.Errorf("%d resumed, want %g", seen, want)
					}
				})
			}
		}
	}
}

func TestNothingToResume(t *testing.T) {
	for name, test := range map[string]struct {
		directives string
		keepAlive  bool
		handshakes int64
	}{
		"a server without tickets": {"ssl_session_tickets off; ssl_session_cache off;", false, 20},
		"kept connections":         {withTickets, true, 4},
	} {
		for _, version := range []string{"TLSv1.2", "TLSv1.3"} {
			t.Run(name+", "+version, func(t *testing.T) {
				url, _ := nginxLogging(t, test.directives)
				o := options(url)
				o.KeepAlive, o.Requests = test.keepAlive, 20
				o.TLS = TLSOptions{InsecureSkipVerify: true, Resume: 1, MaxVersion: version}
				r := load(t, o)
				wantResponses(t, r, 20)
				if r.Wire.Resumed != 0 || r.Wire.Handshakes != test.handshakes {
					t.Error(r)
				}
			})
		}
	}
}

func TestNoTicketForAnotherServer(t *testing.T) {
	t.Parallel()
	var key [32]byte
	var servers []*peerServer
	var sides []Side
	for range 2 {
		config := serverTLS(ecdsaKey)
		config.SetSessionTicketKeys([][32]byte{key})
		s := serveH2TLS(t, config, answering(hello))
		o := h2Options(s)
		o.KeepAlive, o.Streams, o.Connections, o.Requests = false, 1, 1, 20
		o.TLS.Resume = 1
		servers, sides = append(servers, s), append(sides, Side{Options: o})
	}
	for i, r := range alternate(t, 0, sides...) {
		states := servers[i].handshakes()
		for j, state := range states {
			if state.DidResume != (j > 0) {
				t.Errorf("server %d, connection %d: resumed %t", i, j, state.DidResume)
			}
		}
		if r.Wire.Resumed != int64(len(states)-1) {
			t.Errorf("resumed %d of %d", r.Wire.Resumed, len(states))
		}
	}
}

// TestAConnectionThatEndsInItsHandshakeLosesItsOwnTicket: crypto/tls takes the ticket back once the handshake is given up, which comes after
// another one of the same loop went on.
func TestAConnectionThatEndsInItsHandshakeLosesItsOwnTicket(t *testing.T) {
	t.Parallel()
	var refused atomic.Pointer[[]byte]
	var offeredAgain atomic.Int64
	others := make(chan struct{}, 100) // handshakes that are done
	s := serve(t, func(s *testServer, c net.Conn) {
		config := serverTLS(ecdsaKey)
		config.MinVersion = tls.VersionTLS13
		config.SetSessionTicketKeys([][32]byte{{}})
		config.UnwrapSession = func(identity []byte, state tls.ConnectionState) (*tls.SessionState, error) {
			ticket := bytes.Clone(identity)
			if refused.CompareAndSwap(nil, &ticket) {
				for len(others) > 0 {
					<-others
				}
				<-others
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
				return nil, errors.New("refused")
			}
			if bytes.Equal(*refused.Load(), ticket) {
				offeredAgain.Add(1)
			}
			return config.DecryptTicket(identity, state)
		}
		over := tls.Server(c, config)
		if over.Handshake() == nil {
			others <- struct{}{}
			always(ok)(s, over)
		}
	})
	o := options(strings.Replace(s.url, "http:", "https:", 1))
	o.TLS.InsecureSkipVerify, o.TLS.Resume = true, 1
	o.KeepAlive, o.Connections, o.Threads, o.Requests = false, 2, 1, 20
	r := load(t, o)
	if r.Causes[CauseReset] != 1 || offeredAgain.Load() != 0 || r.Wire.Resumed == 0 {
		t.Error(offeredAgain.Load(), r)
	}
}

func pemFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server.pem")
	key, err := x509.MarshalPKCS8PrivateKey(ecdsaKey().PrivateKey)
	must(t, err)
	both := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ecdsaKey().Certificate[0]})...)
	must(t, os.WriteFile(file, both, 0o600))
	return file
}

func launch(t *testing.T, command *exec.Cmd) {
	t.Helper()
	must(t, command.Start())
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
}

func dialSoon(t *testing.T, address string) (c net.Conn) {
	waitFor(t, func() bool {
		dialed, err := net.Dial("tcp", address)
		c = dialed
		return err == nil
	})
	return c
}
