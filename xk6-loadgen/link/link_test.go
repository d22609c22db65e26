package link

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestDirections(t *testing.T) {
	for _, c := range []struct{ toServer, toClient time.Duration }{
		{200 * time.Millisecond, 0},
		{0, 200 * time.Millisecond},
		{150 * time.Millisecond, 250 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%s there, %s back", c.toServer, c.toClient), func(t *testing.T) {
			t.Parallel()
			p := startLink(t, Order{
				ToServer: Direction{DelayMs: float64(c.toServer.Milliseconds())}, ToClient: Direction{DelayMs: float64(c.toClient.Milliseconds())},
			}, nil)
			client, server := p.sockets()
			oneWay := func(from, to *net.UDPConn) time.Duration {
				begin := time.Now()
				if _, err := from.WriteToUDP([]byte("x"), addressOf(to)); err != nil {
					t.Fatal(err)
				}
				if _, _, err := to.ReadFromUDP(make([]byte, 2)); err != nil {
					t.Fatal(err)
				}
				return time.Since(begin)
			}
			for name, d := range map[string]struct{ got, want time.Duration }{
				"there": {oneWay(client, server), c.toServer}, "back": {oneWay(server, client), c.toClient},
			} {
				// The other direction's would be 100 ms off at least.
				if d.got < d.want || d.got >= d.want+100*time.Millisecond {
					t.Errorf("%s it took %s", name, d.got)
				}
			}
			p.quiet()
		})
	}
}

// The kinds of a whole exchange: each is known but for acknowledgements, and all together are what the kernels say they sent.
func TestKindsOfAnExchange(t *testing.T) {
	p := startLink(t, Order{ToServer: Direction{DelayMs: 20}}, nil)
	client, server := connect(t, p.ready)
	if _, err := client.Write(make([]byte, 80)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 80)); err != nil {
		t.Fatal(err)
	}
	// As nginx does it without tcp_nopush: the headers, and a body that the end goes with.
	if _, err := server.Write(make([]byte, 200)); err != nil {
		t.Fatal(err)
	}
	raw, err := server.SyscallConn()
	must(t, err)
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
	must(t, err)
	if _, err := server.Write(make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if all, err := io.ReadAll(client); err != nil || len(all) != 800 {
		t.Fatalf("%d bytes (%v)", len(all), err)
	}
	client.Close()
	r := p.quiet()
	there, back := r.ToServer, r.ToClient
	if want := (KindCounts{Syn: 1, Ack: there.Kinds.Ack, Data: 1, Fin: 1}); there.Kinds != want || there.Kinds.Ack < 2 {
		t.Errorf("to the server: %+v", there.Kinds)
	}
	if want := (KindCounts{SynAck: 1, Ack: back.Kinds.Ack, Data: 1, DataFin: 1}); back.Kinds != want || back.Kinds.Ack < 1 {
		t.Errorf("to the client: %+v", back.Kinds)
	}
	for side, d := range map[SideReady]Traffic{p.ready.Client: there, p.ready.Server: back} {
		if segments := kernelCounter(t, side, "Tcp:", "OutSegs"); d.Packets != segments || d.Delivered != segments {
			t.Errorf("%d segments were sent: %+v", segments, d)
		}
	}
	if r.Retransmits != (Sides{}) || r.ListenOverflows != 0 {
		t.Errorf("%+v", r)
	}

	// A connection that is reset.
	client, _ = connect(t, p.ready)
	client.SetLinger(0)
	client.Close()
	r = p.quiet()
	if there, back := r.ToServer.Kinds, r.ToClient.Kinds; there != (KindCounts{Syn: 1, Ack: 1, Reset: 1}) || back != (KindCounts{SynAck: 1}) {
		t.Errorf("%+v and %+v", there, back)
	}
	if r := p.quiet(); r.ToServer != (Traffic{}) || r.ToClient != (Traffic{}) {
		t.Errorf("of what was reported there is again: %+v", r)
	}
}

// Segments that are lost are sent again, which the kernel counts, and all arrives.
func TestRetransmits(t *testing.T) {
	share := 0.2
	p := startLink(t, Order{ToServer: Direction{DelayMs: 1, LossShare: share}, ToClient: Direction{DelayMs: 1}}, nil)
	client, server := connect(t, p.ready)
	const size = 200_000
	go func() {
		client.Write(make([]byte, size))
		client.CloseWrite()
	}()
	if all, err := io.ReadAll(server); err != nil || len(all) != size {
		t.Fatalf("%d bytes (%v)", len(all), err)
	}
	server.Close()
	client.Close()
	sent := func() Sides {
		return Sides{kernelCounter(t, p.ready.Client, "Tcp:", "RetransSegs"), kernelCounter(t, p.ready.Server, "Tcp:", "RetransSegs")}
	}
	// What the kernels count while a report is made is in it or not.
	var reported, before Sides
	lost := int64(0)
	for tries := 0; tries < 10; tries++ {
		before = sent()
		r := p.report()
		reported.Client += r.Retransmits.Client
		reported.Server += r.Retransmits.Server
		lost += r.ToServer.Lost
		if before == sent() {
			break
		}
	}
	if reported != before || reported.Client == 0 || lost == 0 {
		t.Errorf("%+v of %+v were reported, with %d packets lost", reported, before, lost)
	}
}

func TestListenOverflows(t *testing.T) {
	p := startLink(t, Order{ToServer: Direction{DelayMs: 1}, Settings: []SettingOrder{
		{Server, "net.core.somaxconn", "1"}, {Server, "net.ipv4.tcp_syncookies", "0"},
	}}, nil)
	var listener *net.TCPListener
	var err error
	inside(t, p.ready.Server, func() { listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(p.ready.Server.Address)}) })
	must(t, err)
	defer listener.Close()
	// Nobody accepts: two fit.
	for range 6 {
		inside(t, p.ready.Client, func() {
			c, err := net.DialTimeout("tcp4", listener.Addr().String(), 200*time.Millisecond)
			if err == nil {
				t.Cleanup(func() { c.Close() })
			}
		})
	}
	if r := p.report(); r.ListenOverflows < 4 {
		t.Errorf("%+v", r)
	}
}

func TestSizes(t *testing.T) {
	p := startLink(t, Order{ToServer: Direction{DelayMs: 2}}, nil)
	client, server := p.sockets()
	for _, ends := range [][2]*net.UDPConn{{client, server}, {server, client}} {
		for _, size := range []int{0, 1, 64, 1000, mtu - 28} {
			sent := make([]byte, size)
			for i := range sent {
				sent[i] = byte(i * 7)
			}
			if _, err := ends[0].WriteToUDP(sent, addressOf(ends[1])); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 2*mtu)
			if n, _, err := ends[1].ReadFromUDP(got); err != nil || string(got[:n]) != string(sent) {
				t.Errorf("of %d bytes %d arrived (%v)", size, n, err)
			}
		}
	}
	sendNumbered(t, client, addressOf(server), 1, 4000)
	if d := p.quiet().ToServer; d.Packets != 5+3 || d.Kinds.Other != 8 {
		t.Errorf("%+v", d)
	}
}

// What the devices drop is counted: with the server's device down, all; and what does not fit in their queue.
func TestDeviceDrops(t *testing.T) {
	p := startLink(t, Order{ToServer: Direction{DelayMs: 1}}, nil)
	client, server := p.sockets()
	p.Process.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it does not stop: %v (%v)", status, err)
	}
	const beyond = 300
	sendNumbered(t, client, addressOf(server), deviceQueue+beyond, 4)
	p.Process.Signal(syscall.SIGCONT)
	r := p.report()
	if r.DeviceDrops != beyond || r.ToServer.Delivered != deviceQueue {
		t.Errorf("%d were dropped: %+v", r.DeviceDrops, r.ToServer)
	}

	inside(t, p.ready.Server, func() {
		link, err := netlink.LinkByName(device)
		if err == nil {
			err = netlink.LinkSetDown(link)
		}
		if err != nil {
			t.Error(err)
		}
	})
	sendNumbered(t, client, addressOf(server), beyond, 4)
	if r := p.report(); r.DeviceDrops != beyond || r.ToServer.Delivered != beyond {
		t.Errorf("%d were dropped: %+v", r.DeviceDrops, r.ToServer)
	}
}
