package link

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
	"golang.org/x/sys/unix"
)

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

func devicesHere(t testing.TB) (names []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	must(t, err)
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
	ownNamespace, err := os.Readlink("/proc/self/ns/net")
	must(t, err)
	for name, end := range map[string]func(*process){
		"its input ends": func(p *process) { p.in.Close() },
		"TERM":           func(p *process) { p.Process.Signal(syscall.SIGTERM) },
		"KILL":           func(p *process) { p.Process.Kill() },
	} {
		p := startLink(t, Order{ToServer: Direction{DelayMs: 10}}, nil)
		if now, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.Process.Pid)); err != nil || now != ownNamespace {
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

func TestCPUs(t *testing.T) {
	var all unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &all))
	cpus := linux.Cores()
	if len(cpus) < 2 {
		t.Skip("SKIPPED: with one core there is nothing to choose")
	}
	p := startLink(t, Order{CPUs: ByDirection[[]int]{ToServer: cpus[1:2], ToClient: cpus[:1]}}, nil)
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.Process.Pid))
	must(t, err)
	threads := map[string]int{}
	for _, task := range tasks {
		thread, _ := strconv.Atoi(task.Name())
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(thread, &set); err != nil {
			continue // It has ended.
		}
		switch {
		case thread == p.ready.ToServerThread && set.Count() == 1 && set.IsSet(cpus[1]):
			threads["to the server"]++
		case set.Count() == 1 && set.IsSet(cpus[0]):
			threads["to the client"]++
		case set != all:
			t.Errorf("thread %d runs on %v", thread, set)
		}
	}
	if threads["to the server"] != 1 || threads["to the client"] != 1 {
		t.Errorf("%v", threads)
	}
}

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
	client, server := p.sockets()
	sendNumbered(t, client, addressOf(server), 10, 50)
	if r := p.quiet(); r.ToServer.Delivered != 10 || len(numbersAt(t, server)) != 10 {
		t.Errorf("%+v", r)
	}
}
