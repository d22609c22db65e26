package link

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv("BE_LINK") != "" {
		runtime.GOMAXPROCS(4)
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// needNamespaces skips where the kernel allows no namespaces or devices to this user. It asks the kernel itself.
func needNamespaces(t *testing.T) {
	t.Helper()
	var refused error
	linux.OnOwnThread(func() { refused = unix.Unshare(unix.CLONE_NEWNET) })
	if refused != nil {
		t.Skipf("SKIPPED: network namespaces are needed, and unshare(CLONE_NEWNET) says: %v", refused)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIPPED: /dev/net/tun is needed, and opening it says: %v", err)
	}
	unix.Close(fd)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type process struct {
	*exec.Cmd
	t       *testing.T
	in      io.WriteCloser
	answers *bufio.Reader
	ready   Ready
	// onTheirWay, by direction, are packets that were reported as come and not yet as anything else.
	onTheirWay [2]int64
}

func startLink(t *testing.T, order Order, attributes *syscall.SysProcAttr) *process {
	t.Helper()
	needNamespaces(t)
	p := &process{Cmd: exec.Command(os.Args[0]), t: t}
	p.Env = append(os.Environ(), "BE_LINK=1")
	p.Stderr = os.Stderr
	p.SysProcAttr = attributes
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	must(t, err)
	p.answers = bufio.NewReader(out)
	// As the runner starts it; without the right to that it is as others.
	linux.OnOwnThread(func() {
		unix.Setpriority(unix.PRIO_PROCESS, 0, -15)
		err = p.Start()
	})
	must(t, err)
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	if order.Settings == nil {
		order.Settings = []SettingOrder{}
	}
	line, err := json.Marshal(order)
	must(t, err)
	p.ask(string(line), &p.ready)
	return p
}

func (p *process) ask(line string, answer any) {
	p.t.Helper()
	fmt.Fprintln(p.in, line)
	text, err := p.answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		p.t.Fatalf("answered with %q (%v)", text, err)
	}
}

func (p *process) report() Report {
	p.t.Helper()
	var r Report
	p.ask("report", &r)
	for i, d := range []Traffic{r.ToServer, r.ToClient} {
		name := []string{"to the server", "to the client"}[i]
		k := d.Kinds
		if d.Packets != k.Syn+k.SynAck+k.Ack+k.Data+k.DataFin+k.Fin+k.Reset+k.Other {
			p.t.Errorf("%s: the kinds' sum is not the packets': %+v", name, d)
		}
		p.onTheirWay[i] += d.Packets - d.Delivered - d.Dropped - d.Lost
		if p.onTheirWay[i] < 0 || r.Quiet && p.onTheirWay[i] != 0 {
			p.t.Errorf("%s: %d packets are missing: %+v", name, p.onTheirWay[i], d)
		}
	}
	for _, seconds := range []float64{r.LinkCPUSeconds.ToServer, r.LinkCPUSeconds.ToClient} {
		if seconds < 0 || seconds > 100 {
			p.t.Errorf("%v s of CPU", seconds)
		}
	}
	return r
}

// quiet is a report of which device drops are no part, and which waits for nothing.
func (p *process) quiet() Report {
	p.t.Helper()
	r := p.report()
	if !r.Quiet || r.DeviceDrops != 0 {
		p.t.Errorf("quiet: %t, dropped by devices: %d", r.Quiet, r.DeviceDrops)
	}
	return r
}

// inside runs f on a thread in a namespace. Sockets that it makes stay there.
func inside(t testing.TB, side SideReady, f func()) {
	t.Helper()
	var err error
	linux.OnOwnThread(func() {
		var fd int
		if fd, err = unix.Open(side.Netns, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		if err = unix.Setns(fd, unix.CLONE_NEWNET); err == nil {
			f()
		}
	})
	must(t, err)
}

func udp(t testing.TB, side SideReady, port int) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	var err error
	inside(t, side, func() { c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(side.Address), Port: port}) })
	must(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(60 * time.Second))
	raw, err := c.SyscallConn()
	must(t, err)
	// So that it does not drop what the link has delivered.
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) })
	must(t, err)
	return c
}

func (p *process) sockets() (client, server *net.UDPConn) {
	p.t.Helper()
	return udp(p.t, p.ready.Client, 0), udp(p.t, p.ready.Server, 0)
}

func addressOf(c *net.UDPConn) *net.UDPAddr { return c.LocalAddr().(*net.UDPAddr) }

func sendNumbered(t testing.TB, from *net.UDPConn, to *net.UDPAddr, n, size int) {
	t.Helper()
	datagram := make([]byte, size)
	for i := range n {
		binary.BigEndian.PutUint32(datagram, uint32(i))
		if _, err := from.WriteToUDP(datagram, to); err != nil {
			t.Fatal(err)
		}
	}
}

func numbersAt(t testing.TB, c *net.UDPConn) (numbers []int) {
	t.Helper()
	datagram := make([]byte, 2*mtu)
	for {
		// What has arrived is there: the report came after it.
		c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, _, err := c.ReadFromUDP(datagram)
		if os.IsTimeout(err) {
			return numbers
		}
		if err != nil || n < 4 {
			t.Fatalf("%d bytes (%v)", n, err)
		}
		numbers = append(numbers, int(binary.BigEndian.Uint32(datagram)))
	}
}

func kernelCounter(t testing.TB, side SideReady, group, name string) (value int64) {
	t.Helper()
	var err error
	inside(t, side, func() {
		var k kernelCounters
		if k, err = openKernelCounters(); err == nil {
			value, err = field(k.snmp, group, name)
		}
	})
	must(t, err)
	return value
}

func connect(t testing.TB, ready Ready) (client, server *net.TCPConn) {
	t.Helper()
	var listener *net.TCPListener
	var err error
	inside(t, ready.Server, func() { listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(ready.Server.Address)}) })
	must(t, err)
	defer listener.Close()
	inside(t, ready.Client, func() { client, err = net.DialTCP("tcp4", nil, listener.Addr().(*net.TCPAddr)) })
	must(t, err)
	t.Cleanup(func() { client.Close() })
	if server, err = listener.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	for _, c := range []*net.TCPConn{client, server} {
		c.SetDeadline(time.Now().Add(60 * time.Second))
	}
	return client, server
}
