package link

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be a link.
func TestMain(m *testing.M) {
	if os.Getenv("BE_LINK") != "" {
		runtime.GOMAXPROCS(4)
		KeepPrecedence()
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

// process is a link as a process of its own.
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
	if err != nil {
		t.Fatal(err)
	}
	p.answers = bufio.NewReader(out)
	// As the runner starts it; without the right to that it is as others.
	linux.OnOwnThread(func() {
		unix.Setpriority(unix.PRIO_PROCESS, 0, -15)
		err = p.Start()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	if order.Settings == nil {
		order.Settings = []SettingOrder{}
	}
	line, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	p.ask(string(line), &p.ready)
	return p
}

// ask writes a line and reads the answer.
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

// report asks for a report, of which some things always hold.
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
	if err != nil {
		t.Fatal(err)
	}
}

// udp is a socket in a namespace, with a time limit for all that follows.
func udp(t testing.TB, side SideReady, port int) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	var err error
	inside(t, side, func() { c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(side.Address), Port: port}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(60 * time.Second))
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// So that it does not drop what the link has delivered.
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func addressOf(c *net.UDPConn) *net.UDPAddr { return c.LocalAddr().(*net.UDPAddr) }

// sendNumbered sends datagrams of this size, each with its number.
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

// numbersAt are those that have arrived.
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

// kernelCounter reads one of the Tcp counters of a namespace.
func kernelCounter(t testing.TB, side SideReady, group, name string) (value int64) {
	t.Helper()
	var err error
	inside(t, side, func() {
		var k kernelCounters
		if k, err = openKernelCounters(); err == nil {
			value, err = k.field(k.snmp, group, name)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// connect makes a TCP connection from client to server.
func connect(t testing.TB, ready Ready) (client, server *net.TCPConn) {
	t.Helper()
	var listener *net.TCPListener
	var err error
	inside(t, ready.Server, func() { listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(ready.Server.Address)}) })
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	inside(t, ready.Client, func() { client, err = net.DialTCP("tcp4", nil, listener.Addr().(*net.TCPAddr)) })
	if err != nil {
		t.Fatal(err)
	}
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

// echo sends back what comes, until the socket is closed.
func echo(c *net.UDPConn) {
	for datagram := make([]byte, mtu); ; {
		n, from, err := c.ReadFromUDP(datagram)
		if err != nil {
			return
		}
		c.WriteToUDP(datagram[:n], from)
	}
}

// None comes back too early, and the quickest as soon as it may. How late the others are is the machine's to say, too: a test of
// whole runs, which has it to itself, asks for the p99.
func TestRoundTrip(t *testing.T) {
	const delay, trips = 100 * time.Millisecond, 20
	p := startLink(t, Order{ToServer: Direction{DelayMs: float64(delay.Milliseconds())}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	go echo(server)
	quickest := time.Hour
	for i := range trips {
		begin := time.Now()
		if _, err := client.WriteToUDP([]byte{byte(i)}, addressOf(server)); err != nil {
			t.Fatal(err)
		}
		var answer [2]byte
		if n, _, err := client.ReadFromUDP(answer[:]); err != nil || n != 1 || answer[0] != byte(i) {
			t.Fatalf("answer %d is %d bytes (%v)", i, n, err)
		}
		took := time.Since(begin)
		if took < delay {
			t.Errorf("one came back after %s", took)
		}
		quickest = min(quickest, took)
	}
	if quickest >= delay+2*time.Millisecond {
		t.Errorf("the quickest came back after %s", quickest)
	}
	if r := p.quiet(); r.ToServer.Delivered != trips || r.ToClient.Delivered != trips || r.ToServer.Kinds.Other != trips {
		t.Errorf("%+v", r)
	}
}

// Each direction has its own delay.
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
			client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
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

// Of a burst the first ones find room in the queue; the others do not arrive, and are counted.
func TestQueueLimit(t *testing.T) {
	limit := int64(1000)
	p := startLink(t, Order{ToServer: Direction{DelayMs: 1500, QueuePackets: &limit}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	const sent = 3000
	begin := time.Now()
	sendNumbered(t, client, addressOf(server), sent, 100)
	if took := time.Since(begin); took > 1400*time.Millisecond {
		t.Skipf("SKIPPED: sending %d datagrams took %s: the first had left the queue before the last came", sent, took)
	}
	r := p.quiet()
	if d := r.ToServer; d.Packets != sent || d.Delivered != limit || d.Dropped != sent-limit || d.Lost != 0 || d.Bytes != sent*(100+28) {
		t.Errorf("%+v", d)
	}
	got := numbersAt(t, server)
	if len(got) != int(limit) {
		t.Errorf("%d arrived", len(got))
	}
	for i, number := range got {
		if number != i {
			t.Fatalf("datagram %d arrived in place %d", number, i)
		}
	}
	if r.ToClient != (Traffic{}) {
		t.Errorf("%+v", r.ToClient)
	}
}

// What is lost is lost at random, and counted: what was sent is what arrived and what was lost.
func TestLossShare(t *testing.T) {
	share := 0.1
	p := startLink(t, Order{ToServer: Direction{DelayMs: 5, LossShare: &share}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	const sent = 20_000
	sendNumbered(t, client, addressOf(server), sent, 50)
	d := p.quiet().ToServer
	if arrived := int64(len(numbersAt(t, server))); d.Packets != sent || d.Dropped != 0 || d.Delivered != arrived || d.Lost != sent-arrived {
		t.Errorf("%d arrived: %+v", arrived, d)
	}
	// Six standard deviations of the binomial distribution.
	if spread := 6 * math.Sqrt(sent*share*(1-share)); math.Abs(float64(d.Lost)-sent*share) > spread {
		t.Errorf("%d of %d were lost", d.Lost, sent)
	}
}

// Bytes take their time one after the other.
func TestBytesPerSecond(t *testing.T) {
	rate := 100_000.0
	p := startLink(t, Order{ToClient: Direction{DelayMs: 20, BytesPerSecond: &rate}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	const sent, size = 50, 1000
	begin := time.Now()
	sendNumbered(t, server, addressOf(client), sent, size-28)
	for i := range sent {
		if _, _, err := client.ReadFromUDP(make([]byte, mtu)); err != nil {
			t.Fatal(err)
		}
		if least := 20*time.Millisecond + time.Duration(i+1)*10*time.Millisecond; time.Since(begin) < least {
			t.Errorf("datagram %d arrived after %s, before %s", i, time.Since(begin), least)
		}
	}
	if d := p.quiet().ToClient; d.Delivered != sent || d.Bytes != sent*size {
		t.Errorf("%+v", d)
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
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 1) })
	if err != nil {
		t.Fatal(err)
	}
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

	// A connection that is reset, and packets that are no TCP.
	client, _ = connect(t, p.ready)
	client.SetLinger(0)
	client.Close()
	from, to := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	if _, err := from.WriteToUDP(make([]byte, mtu-28), addressOf(to)); err != nil {
		t.Fatal(err)
	}
	r = p.quiet()
	if k := r.ToServer.Kinds; k != (KindCounts{Syn: 1, Ack: 1, Reset: 1, Other: 1}) {
		t.Errorf("to the server: %+v", k)
	}
	if k := r.ToClient.Kinds; k != (KindCounts{SynAck: 1}) {
		t.Errorf("to the client: %+v", k)
	}
	if r := p.quiet(); r.ToServer != (Traffic{}) || r.ToClient != (Traffic{}) {
		t.Errorf("of what was reported there is again: %+v", r)
	}
}

// Segments that are lost are sent again, which the kernel counts, and all arrives.
func TestRetransmits(t *testing.T) {
	share := 0.2
	p := startLink(t, Order{ToServer: Direction{DelayMs: 1, LossShare: &share}, ToClient: Direction{DelayMs: 1}}, nil)
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

// Connections that the accept queue has no room for are counted.
func TestListenOverflows(t *testing.T) {
	p := startLink(t, Order{ToServer: Direction{DelayMs: 1}, Settings: []SettingOrder{
		{Server, "net.core.somaxconn", "1"}, {Server, "net.ipv4.tcp_syncookies", "0"},
	}}, nil)
	var listener *net.TCPListener
	var err error
	inside(t, p.ready.Server, func() { listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(p.ready.Server.Address)}) })
	if err != nil {
		t.Fatal(err)
	}
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

// Settings are of the namespace they are asked for, and only of that; what does not hold says why.
func TestSettings(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(settingFile(name))
		if err != nil {
			return err.Error()
		}
		return strings.Join(strings.Fields(string(text)), " ")
	}
	// What is not of a namespace is asked for as it is: a link that wrote it all the same would change nothing.
	orders := []struct {
		SettingOrder
		problem string
	}{
		{SettingOrder{Server, "net.core.somaxconn", "77"}, ""},
		{SettingOrder{Client, "net.core.somaxconn", "78"}, ""},
		{SettingOrder{Server, "net.ipv4.tcp_rmem", "4096 349520 16777216"}, ""},
		{SettingOrder{Client, "net.ipv4.ip_local_port_range", "1024 65535"}, ""},
		{SettingOrder{Server, "net.ipv4.tcp_fin_timeout", "11"}, ""},
		{SettingOrder{Server, "net.ipv4.tcp_fin_timeout", "12"}, ""},
		{SettingOrder{Client, "net.ipv4.tcp_wmem", "4096 16000 2000000"}, ""},
		// Of three figures one is written: what holds is something else.
		{SettingOrder{Client, "net.ipv4.tcp_wmem", "5000"}, "the kernel made it 5000 16000 2000000"},
		{SettingOrder{Server, "net.ipv4.tcp_timestamps", "x"}, "refused: invalid argument"},
		{SettingOrder{Server, "net.ipv4.tcp_congestion_control", "nosuch"}, "refused: no such file or directory"},
		{SettingOrder{Server, "net.ipv4.tcp_tw_recycle", "1"}, "this kernel does not have it"},
		{SettingOrder{Server, "net.core.netdev_max_backlog", read("net.core.netdev_max_backlog")}, "of the whole machine, not of a namespace"},
		{SettingOrder{Server, "kernel.hostname", read("kernel.hostname")}, "of the whole machine, not of a namespace"},
		{SettingOrder{Client, "kernel.no_such_setting", "1"}, "this kernel does not have it"},
		{SettingOrder{Server, "net.ipv4", "1"}, "this kernel does not have it"},
	}
	var settings []SettingOrder
	before := map[string]string{}
	for _, o := range orders {
		settings = append(settings, o.SettingOrder)
		before[o.Name] = read(o.Name)
	}
	p := startLink(t, Order{Settings: settings}, nil)
	if len(p.ready.Settings) != len(orders) {
		t.Fatalf("%+v", p.ready.Settings)
	}
	for i, got := range p.ready.Settings {
		if want := orders[i]; got.SettingOrder != want.SettingOrder || got.Problem != want.problem {
			t.Errorf("%+v, want %q", got, want.problem)
		}
	}
	for _, c := range []struct {
		side        SideReady
		name, value string
	}{
		{p.ready.Server, "net.core.somaxconn", "77"},
		{p.ready.Client, "net.core.somaxconn", "78"},
		{p.ready.Server, "net.ipv4.tcp_rmem", "4096 349520 16777216"},
		{p.ready.Client, "net.ipv4.ip_local_port_range", "1024 65535"},
		{p.ready.Server, "net.ipv4.tcp_fin_timeout", "12"},
		{p.ready.Server, "net.ipv6.conf.all.disable_ipv6", "1"},
		{p.ready.Client, "net.ipv6.conf.link.disable_ipv6", "1"},
	} {
		inside(t, c.side, func() {
			if held := read(c.name); held != c.value && !strings.Contains(held, "no such file") {
				t.Errorf("%s is %s", c.name, held)
			}
		})
	}
	for name, value := range before {
		if now := read(name); now != value {
			t.Errorf("the machine's own %s was %s and is %s", name, value, now)
		}
	}
}

// Settings that a namespace shows and does not let anybody change: which they are, the kernel decides.
func TestReadOnlySettings(t *testing.T) {
	p := startLink(t, Order{Settings: []SettingOrder{{Server, "net.core.rmem_max", "16777216"}, {Server, "net.core.wmem_max", "16777216"}}}, nil)
	for _, s := range p.ready.Settings {
		inside(t, p.ready.Server, func() {
			info, err := os.Stat(settingFile(s.Name))
			want := problemGlobal
			if err == nil {
				want = problemReadOnly
				if info.Mode()&0o200 != 0 {
					want = ""
				}
			}
			if s.Problem != want {
				t.Errorf("%s: %q, want %q", s.Name, s.Problem, want)
			}
		})
	}
}

// devicesHere are those of the calling thread's namespace.
func devicesHere(t testing.TB) (names []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, _, found := strings.Cut(line, ":"); found {
			names = append(names, strings.TrimSpace(name))
		}
	}
	slices.Sort(names)
	return names
}

// However the process ends, its devices go, also where something still runs inside.
func TestNothingIsLeft(t *testing.T) {
	needNamespaces(t)
	devices := devicesHere(t)
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(*process){
		"its input ends": func(p *process) { p.in.Close() },
		"TERM":           func(p *process) { p.Process.Signal(syscall.SIGTERM) },
		"KILL":           func(p *process) { p.Process.Kill() },
	} {
		p := startLink(t, Order{ToServer: Direction{DelayMs: 10}}, nil)
		if now, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.Process.Pid)); err != nil || now != own {
			t.Errorf("the process itself is in %s (%v)", now, err)
		}
		if now := devicesHere(t); !slices.Equal(now, devices) {
			t.Errorf("the machine's devices are %s while it runs, and were %s", now, devices)
		}
		inside(t, p.ready.Server, func() {
			if there := devicesHere(t); !slices.Equal(there, []string{"link", "lo"}) {
				t.Errorf("the server's devices are %s", there)
			}
			end(p)
			p.Wait()
			// This thread still is in there.
			for deadline := time.Now().Add(20 * time.Second); !slices.Equal(devicesHere(t), []string{"lo"}); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Errorf("after %s the server's devices are %s", name, devicesHere(t))
					break
				}
			}
		})
		if _, err := os.Stat(p.ready.Client.Netns); err == nil {
			t.Errorf("after %s there is %s", name, p.ready.Client.Netns)
		}
	}
	if now := devicesHere(t); !slices.Equal(now, devices) {
		t.Errorf("the machine's devices were %s and are %s", devices, now)
	}
}

// Two links at a time know nothing of each other.
func TestTwoLinks(t *testing.T) {
	a, b := startLink(t, Order{}, nil), startLink(t, Order{}, nil)
	client, serverA, serverB := udp(t, a.ready.Client, 0), udp(t, a.ready.Server, 5000), udp(t, b.ready.Server, 5000)
	sendNumbered(t, client, addressOf(serverA), 10, 50)
	if r := a.quiet(); r.ToServer.Delivered != 10 || len(numbersAt(t, serverA)) != 10 {
		t.Errorf("%+v", r)
	}
	if r := b.quiet(); r.ToServer != (Traffic{}) || len(numbersAt(t, serverB)) != 0 {
		t.Errorf("%+v", r)
	}
}

// Packets from the smallest to the longest arrive as they were sent.
func TestSizes(t *testing.T) {
	p := startLink(t, Order{ToServer: Direction{DelayMs: 2}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
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
	// A longer one goes in pieces, which are not TCP either.
	sendNumbered(t, client, addressOf(server), 1, 4000)
	if d := p.quiet().ToServer; d.Packets != 5+3 || d.Kinds.Other != 8 {
		t.Errorf("%+v", d)
	}
}

// What the devices drop is counted: with the server's device down, all; and what does not fit in their queue.
func TestDeviceDrops(t *testing.T) {
	p := startLink(t, Order{ToServer: Direction{DelayMs: 1}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	p.Process.Signal(syscall.SIGSTOP)
	awaitStop(t, p.Process.Pid)
	const beyond = 300
	sendNumbered(t, client, addressOf(server), deviceQueue+beyond, 4)
	p.Process.Signal(syscall.SIGCONT)
	r := p.report()
	if r.DeviceDrops != beyond || r.ToServer.Delivered != deviceQueue {
		t.Errorf("%d were dropped: %+v", r.DeviceDrops, r.ToServer)
	}

	inside(t, p.ready.Server, func() {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			defer unix.Close(socket)
			_, err = onDevice(socket, device, unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(0); return nil })
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

// awaitStop waits until all threads of a process stand still.
func awaitStop(t testing.TB, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(tasks, func(task os.DirEntry) bool {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
			_, rest, _ := strings.Cut(string(stat), ") ")
			return !strings.HasPrefix(rest, "T")
		}) {
			return
		}
	}
	t.Fatal("it does not stop")
}

// A report waits for what is on its way, and says so where that does not end.
func TestReportWaitsForQuiet(t *testing.T) {
	t.Parallel()
	p := startLink(t, Order{ToServer: Direction{DelayMs: 400}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	sendNumbered(t, client, addressOf(server), 5, 50)
	if r := p.quiet(); r.ToServer.Delivered != 5 {
		t.Errorf("%+v", r)
	}

	// Also for the answer of a server that takes its time.
	go func() {
		datagram := make([]byte, mtu)
		for range 5 {
			server.ReadFromUDP(datagram)
		}
		if _, from, err := server.ReadFromUDP(datagram); err == nil {
			time.Sleep(150 * time.Millisecond)
			server.WriteToUDP(datagram[:50], from)
		}
	}()
	sendNumbered(t, client, addressOf(server), 1, 50)
	if r := p.quiet(); r.ToServer.Delivered != 1 || r.ToClient.Delivered != 1 {
		t.Errorf("%+v", r)
	}

	sendNumbered(t, client, addressOf(server), 1, 50)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				client.WriteToUDP([]byte("more"), addressOf(server))
			}
		}
	}()
	begin := time.Now()
	r := p.report()
	if r.Quiet || r.ToServer.Packets == 0 || time.Since(begin) < longestQuest {
		t.Errorf("after %s: %+v", time.Since(begin), r)
	}
	close(stop)
	<-ended
	// What was on its way then is delivered now.
	if later := p.report(); !later.Quiet || later.ToServer.Delivered-later.ToServer.Packets != r.ToServer.Packets-r.ToServer.Delivered {
		t.Errorf("%+v, then %+v", r.ToServer, later.ToServer)
	}
}

// A report that is under way, and words that wait for it, do not keep it from ending.
func TestEndWithinAReport(t *testing.T) {
	const delay = 3 * time.Second
	p := startLink(t, Order{ToServer: Direction{DelayMs: float64(delay.Milliseconds())}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	begin := time.Now()
	sendNumbered(t, client, addressOf(server), 1, 50)
	io.WriteString(p.in, "report\ncounts\nreport\n")
	p.in.Close()
	answers, err := io.ReadAll(p.answers)
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	// A report takes longer than the packet that is on its way.
	if took := time.Since(begin); len(answers) > 0 || err != nil || took >= delay {
		t.Errorf("after %s it ended with %q (%v)", took, answers, err)
	}
}

// Counts are those of now, and stay in the next report; a mark parts lateness alone.
func TestCounts(t *testing.T) {
	t.Parallel()
	limit := int64(4)
	p := startLink(t, Order{ToServer: Direction{DelayMs: 700, QueuePackets: &limit}}, nil)
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	begin := time.Now()
	sendNumbered(t, client, addressOf(server), 10, 72)
	var c Counts
	for c.ToServer.Packets < 10 && time.Since(begin) < 10*time.Second {
		p.ask("counts", &c)
	}
	if took := time.Since(begin); took > 600*time.Millisecond {
		t.Skipf("SKIPPED: it took %s to send and count: they may have arrived by now", took)
	}
	want := Traffic{Packets: 10, Kinds: KindCounts{Other: 10}, Bytes: 1000, Dropped: 6}
	at := time.UnixMicro(int64(c.AtMs * 1e3))
	if c.ToServer != want || c.ToClient != (Traffic{}) || at.Before(begin) || at.After(time.Now()) || c.LinkCPUSeconds.ToServer <= 0 || c.LinkCPUSeconds.ToClient <= 0 {
		t.Errorf("%+v", c)
	}
	for c.ToServer.Delivered < 4 && time.Since(begin) < 10*time.Second {
		p.ask("counts", &c)
	}
	var marked, later Counts
	p.ask("mark", &marked)
	p.ask("counts", &later)
	want.Delivered = 4
	if r := p.quiet(); marked.ToServer.LatenessMs.Max <= 0 || marked.ToServer != c.ToServer || later.ToServer != want || r.ToServer != want {
		t.Errorf("%+v, marked as %+v, then %+v; at rest %+v", c.ToServer, marked.ToServer, later.ToServer, r.ToServer)
	}
	if p.ask("counts", &c); c.ToServer != (Traffic{}) {
		t.Errorf("after a report: %+v", c)
	}
}

// Each direction runs where it is told to, and the rest of the process where it was.
func TestCPUs(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for cpu := 0; len(cpus) < all.Count(); cpu++ {
		if all.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	if len(cpus) < 2 {
		t.Skip("SKIPPED: with one core there is nothing to choose")
	}
	p := startLink(t, Order{CPUs: &CPUs{ToServer: cpus[1:2], ToClient: cpus[:1]}}, nil)
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, task := range tasks {
		thread, _ := strconv.Atoi(task.Name())
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(thread, &set); err != nil {
			continue // It has ended.
		}
		switch {
		case thread == p.ready.ToServerThread && set.Count() == 1 && set.IsSet(cpus[1]):
			found["to the server"]++
		case set.Count() == 1 && set.IsSet(cpus[0]):
			found["to the client"]++
		case set != all:
			t.Errorf("thread %d runs on %v", thread, set)
		}
	}
	if found["to the server"] != 1 || found["to the client"] != 1 {
		t.Errorf("%v", found)
	}
}

// Root in a user namespace of its own is enough.
func TestUserNamespace(t *testing.T) {
	needNamespaces(t)
	p := startLink(t, Order{ToServer: Direction{DelayMs: 1}, Settings: []SettingOrder{{Server, "net.core.somaxconn", "99"}}}, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	})
	if problem := p.ready.Settings[0].Problem; problem != "" {
		t.Error(problem)
	}
	client, server := udp(t, p.ready.Client, 0), udp(t, p.ready.Server, 0)
	sendNumbered(t, client, addressOf(server), 10, 50)
	if r := p.quiet(); r.ToServer.Delivered != 10 || len(numbersAt(t, server)) != 10 {
		t.Errorf("%+v", r)
	}
}
