package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// narrowNetwork is a namespace in which an address has so many ports to connect from. What listens there is to do so on
// another one.
func narrowNetwork(t *testing.T, ports int) string {
	t.Helper()
	path := newNamespace(t)
	within(t, path, func() {
		must(t, os.WriteFile(portRangeFile, fmt.Appendf(nil, "40000 %d", 40000+ports-1), 0))
	})
	return path
}

func TestMoreConnectionsThanAnAddressHasPorts(t *testing.T) {
	path := narrowNetwork(t, 100)
	for _, keepAlive := range []bool{true, false} {
		t.Run(fmt.Sprintf("keepAlive %t", keepAlive), func(t *testing.T) {
			var s *testServer
			var mu sync.Mutex
			from := map[string]int{}
			within(t, path, func() {
				s = serveAt(t, "127.0.0.1:8080", func(s *testServer, c net.Conn) {
					host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
					mu.Lock()
					from[host]++
					mu.Unlock()
					for r := bufio.NewReader(c); s.readRequest(r); {
						// All are open at once before the first is answered.
						waitFor(t, func() bool { return s.connections.Load() >= 1000 })
						io.WriteString(c, ok)
					}
				})
			})
			o := options(s.url)
			o.Connections, o.Requests, o.KeepAlive, o.NetNS = 1000, 1000, keepAlive, path
			wantResponses(t, load(t, o), 1000)
			mu.Lock()
			defer mu.Unlock()
			// Half of the ports of each address.
			if len(from) != 20 {
				t.Errorf("connections from %d addresses: %v", len(from), from)
			}
			for host, n := range from {
				if n != 50 || !strings.HasPrefix(host, "127.0.0.") {
					t.Errorf("%d connections from %s", n, host)
				}
			}
		})
	}
}

func TestAsManyConnectionsAsPortsComeFromOneAddress(t *testing.T) {
	path := narrowNetwork(t, 30)
	var s *testServer
	within(t, path, func() {
		s = serveAt(t, "127.0.0.1:8080", func(s *testServer, c net.Conn) {
			if host, _, _ := net.SplitHostPort(c.RemoteAddr().String()); host != "127.0.0.1" {
				t.Errorf("a connection from %s", host)
			}
			always(ok)(s, c)
		})
	})
	o := options(s.url)
	o.Connections, o.Requests, o.NetNS = 30, 300, path
	wantResponses(t, load(t, o), 300)
}

func TestConnectionsThatNoPortsAreForAreRefusedEarly(t *testing.T) {
	path := narrowNetwork(t, 30)
	for _, host := range []string{"[::1]", "192.0.2.1", "10.0.0.1"} {
		o := options("http://" + host + ":8080/")
		o.Connections, o.Duration, o.NetNS = 31, time.Second, path
		_, err := Run(context.Background(), o, nil)
		if err == nil || !strings.Contains(err.Error(), "connections: 31 are more than the 30 ports") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", host, err)
		}
		o.Connections = 30
		if p, err := newPlan(context.Background(), o); err != nil {
			t.Errorf("%s: %v", host, err)
		} else {
			p.network.close()
		}
	}
}

func TestTheLastOfAMillionSources(t *testing.T) {
	s := sources(2 * maxConnections)
	for connection, want := range map[int]string{0: "127.0.0.1", 254: "127.0.0.255", 255: "127.0.1.0", 2*maxConnections - 1: "127.30.132.128"} {
		from := s.address(connection)
		if got := from.Addr().String(); got != want {
			t.Errorf("connection %d comes from %s, want %s", connection, got, want)
		}
	}
}
